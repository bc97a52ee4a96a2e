//! `wasm-bindgen` with the options that cargo-leptos passes.

use std::path::PathBuf;

use clap::Parser;
use wasm_bindgen_cli_support::Bindgen;

#[derive(Parser)]
#[command(name = "wasm-bindgen", version)]
struct Args {
    input: PathBuf,
    #[arg(long, value_parser = ["web"])]
    target: String,
    #[arg(long)]
    out_name: String,
    #[arg(long)]
    out_dir: PathBuf,
    #[arg(long)]
    keep_lld_exports: bool,
    #[arg(long)]
    no_demangle: bool,
    #[arg(long)]
    debug: bool,
    #[arg(long)]
    keep_debug: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    Bindgen::new()
        .input_path(&args.input)
        .web(args.target == "web")?
        .out_name(&args.out_name)
        .typescript(true)
        .keep_lld_exports(args.keep_lld_exports)
        .demangle(!args.no_demangle)
        .debug(args.debug)
        .keep_debug(args.keep_debug)
        .generate(&args.out_dir)
}
