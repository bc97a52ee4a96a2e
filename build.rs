//! Puts the built site (style sheet, script, WebAssembly, icon, each also compressed) into the server.
//!
//! Only release builds of the server carry it: they are the ones that leave the checkout. cargo-leptos must
//! have built the site before (`make build` does); without it the server looks for `target/site` when it starts.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut list = String::new();
    // The browser half must not depend on the site that is made from it.
    if env::var_os("CARGO_FEATURE_SSR").is_some() {
        // `sqlx::migrate!` reads this folder while compiling.
        println!("cargo::rerun-if-changed=migrations");
        if env::var("PROFILE").as_deref() == Ok("release") {
            println!("cargo::rerun-if-changed=target/site");
            let root =
                Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("target/site");
            if root.is_dir() {
                embed(&root, &root, &mut list)?;
            }
        }
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("site.rs"), format!("&[\n{list}]"))
}

fn embed(root: &Path, folder: &Path, list: &mut String) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            embed(root, &path, list)?;
        } else if let (Ok(name), false) = (
            path.strip_prefix(root),
            path.to_string_lossy().contains(".d.ts"),
        ) {
            let name = name.to_string_lossy().replace('\\', "/");
            list.push_str(&format!(
                "({name:?}, include_bytes!({:?})),\n",
                path.display().to_string()
            ));
        }
    }
    Ok(())
}
