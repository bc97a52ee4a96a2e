//! Programs that some tests need, and that are not installed everywhere.

use std::path::PathBuf;

/// The program `name` in the PATH, or where `scripts/unpack.sh` has unpacked `package`; `None` if it is not installed.
pub fn program(package: &str, name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain([unpacked(package).join("bin")]);
    let found = places.map(|place| place.join(name)).find(|it| it.is_file());
    if found.is_none() {
        println!("skipped: {name} is not installed; scripts/unpack.sh {package} installs it");
    }
    found
}

/// Where `scripts/unpack.sh` puts the files of `/usr`.
pub fn unpacked(package: &str) -> PathBuf {
    let tools = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.tools"));
    tools.join(package).join("usr")
}
