//! Tells the program its compiler, and with the feature `embed-site` puts the built site (style sheet, script,
//! WebAssembly, icon, each also compressed) into it. cargo-leptos must have built the site before (`make build` does).

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut list = String::new();
    if env::var_os("CARGO_FEATURE_SSR").is_some() {
        println!("cargo::rustc-env=SWITCHYARD_RUSTC={}", compiler()?);
    }
    // Implies the feature `ssr`: the browser half must not depend on the site that is built from it.
    if env::var_os("CARGO_FEATURE_EMBED_SITE").is_some() {
        let package = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        // A published package contains the site in `site` (scripts/crate.sh).
        let packaged = Path::new(&package).join("site");
        let root = match packaged.is_dir() {
            true => packaged,
            false => Path::new(&package).join("target/site"),
        };
        println!("cargo::rerun-if-changed={}", root.display());
        embed(&root, &root, &mut list)?;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("site.rs"), format!("&[\n{list}]"))
}

/// The compiler and its version, as `rustc 1.95.0 (59807616e 2026-04-14)`.
fn compiler() -> io::Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
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
