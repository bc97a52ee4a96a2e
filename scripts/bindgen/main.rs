//! `bindgen INPUT.wasm FOLDER` writes the script and the WebAssembly for the browser to the folder.

use std::error::Error;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(input), Some(folder), None) = (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: bindgen INPUT.wasm FOLDER".into());
    };
    Bindgen::new()
        .input_path(input)
        .web(true)?
        .typescript(false)
        .generate(folder)?;
    Ok(())
}
