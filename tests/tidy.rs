//! Checks the architectural rules of `ARCHITECTURE.md` by reading the source files.

#![cfg(test)]

#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/logs.rs"]
mod logs;
#[path = "tidy/migrations.rs"]
mod migrations;
#[path = "tidy/promises.rs"]
mod promises;
#[path = "tidy/requests.rs"]
mod requests;
#[path = "tidy/statements.rs"]
mod statements;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A file. Its path is relative to the repository, with `/` as the separator.
struct Source {
    path: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All text files in these files and folders.
fn sources(places: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    for place in places {
        collect(&root().join(place), &mut found);
    }
    assert!(!found.is_empty(), "nothing in {places:?}");
    found
}

fn collect(path: &Path, found: &mut Vec<Source>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), found);
        }
    } else if let Ok(text) = fs::read_to_string(path) {
        let path = path.strip_prefix(root()).unwrap().to_string_lossy();
        found.push(Source {
            path: path.replace('\\', "/"),
            text,
        });
    }
}

fn is_in(path: &str, modules: &[&str]) -> bool {
    modules.iter().any(|module| {
        path == format!("src/{module}.rs") || path.starts_with(&format!("src/{module}/"))
    })
}

/// The lines of code that contain one of these words; comments are skipped. The crate for SQLite's grammar and its log
/// target do not count as the database driver, and every module may use `crate::budget`.
fn mentions<'a>(source: &'a Source, words: &'a [&str]) -> impl Iterator<Item = String> + 'a {
    let code = |line: &str| !line.trim_start().starts_with("//");
    let holds = |line: &str, word: &str| match word {
        "sqlite3" => line
            .replace("sqlite3_parser", "")
            .replace("sqlite3Parser", "")
            .contains(word),
        "crate::" => line.replace("crate::budget", "").contains(word),
        _ => line.contains(word),
    };
    source
        .text
        .lines()
        .enumerate()
        .filter(move |(_, line)| code(line) && words.iter().any(|word| holds(line, word)))
        .map(|(number, line)| format!("{}:{}: {}", source.path, number + 1, line.trim()))
}

#[track_caller]
fn assert_none(wrong: &[String], rule: &str) {
    assert!(wrong.is_empty(), "{rule}:\n{}", wrong.join("\n"));
}

/// Checks that these modules do not mention these words.
#[track_caller]
fn forbid(modules: &[&str], words: &[&str], rule: &str) {
    let sources = sources(&["src"]);
    let inside = sources.iter().filter(|source| is_in(&source.path, modules));
    let wrong: Vec<String> = inside.flat_map(|source| mentions(source, words)).collect();
    assert_none(&wrong, rule);
}

/// Checks that only these modules mention these words.
#[track_caller]
fn confine(modules: &[&str], words: &[&str], rule: &str) {
    let sources = sources(&["src"]);
    let outside = sources
        .iter()
        .filter(|source| !is_in(&source.path, modules));
    let wrong: Vec<String> = outside.flat_map(|source| mentions(source, words)).collect();
    assert_none(&wrong, rule);
}

#[test]
fn the_engine_and_the_store_mention_neither_http_nor_pages() {
    let words = ["axum", "leptos", "hyper", "tower", "http::", "StatusCode"];
    forbid(
        &["engine", "store"],
        &words,
        "the engine and the store must not use HTTP",
    );
}

/// The allowed imports of each module: the table under "Modules" in `ARCHITECTURE.md`.
fn allowed_imports() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, table) = text
        .split_once("| module | may import |")
        .expect("the table of modules");
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let names = |cell: &str| -> BTreeSet<String> {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let rows = rows.flat_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let [modules, imports] = cells[..] else {
            panic!("not a row: {line}");
        };
        let imports = names(imports);
        names(modules)
            .into_iter()
            .map(move |module| (module, imports.clone()))
    });
    rows.collect()
}

/// The imports of each module from other modules, each with one place of the import.
fn imports() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut imports: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for source in sources(&["src"]) {
        let path = source.path.trim_start_matches("src/");
        let module = path.trim_end_matches(".rs").split('/').next().unwrap();
        if module == "lib" {
            continue;
        }
        let found = imports.entry(module.to_owned()).or_default();
        for (number, line) in source.text.lines().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for root in ["crate::", "switchyard::"] {
                for rest in line.split(root).skip(1) {
                    let is_word = |c: char| c.is_alphanumeric() || c == '_';
                    let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                    let place = format!("{}:{}", source.path, number + 1);
                    assert!(end > 0, "{place}: import each module on a line of its own");
                    let (other, _) = rest.split_at(end);
                    if other != module {
                        found.entry(other.to_owned()).or_insert(place);
                    }
                }
            }
        }
    }
    imports
}

#[test]
fn modules_import_only_the_modules_that_the_architecture_allows() {
    let (allowed, imports) = (allowed_imports(), imports());
    let modules: Vec<&String> = imports.keys().collect();
    assert_eq!(modules, allowed.keys().collect::<Vec<_>>(), "the modules");
    let mut wrong = Vec::new();
    for (module, found) in &imports {
        let allowed = &allowed[module];
        for (other, place) in found {
            if !allowed.contains(other) {
                wrong.push(format!("{place}: {module} must not import {other}"));
            }
        }
        for other in allowed {
            if !found.contains_key(other) {
                wrong.push(format!("{module} may import {other}, but does not"));
            }
        }
    }
    assert_none(&wrong, "imports differ from ARCHITECTURE.md");
}

#[test]
fn modules_import_each_other_without_cycles() {
    let mut left = allowed_imports();
    while !left.is_empty() {
        let modules: BTreeSet<String> = left.keys().cloned().collect();
        let is_free = |imports: &BTreeSet<String>| imports.is_disjoint(&modules);
        let before = left.len();
        left.retain(|_, imports| !is_free(imports));
        assert!(left.len() < before, "a cycle among {:?}", left.keys());
    }
}

/// Pages show view models, so that they can be understood without the engine.
#[test]
fn only_the_load_modules_of_pages_call_the_engine() {
    let mut wrong = Vec::new();
    for source in sources(&["src/ui/pages", "src/ui/components"]) {
        let is_loading = source.path.contains("/load/")
            || source.path.ends_with("/load.rs")
            || source.path.ends_with("/export.rs");
        if !is_loading {
            wrong.extend(mentions(&source, &["crate::engine", "crate::store"]));
        }
    }
    assert_none(&wrong, "only load modules may use the engine");
}

#[test]
fn the_engine_treats_bodies_as_opaque_text() {
    let words = ["serde_json::Value", "serde_json::{", "json!(", "RawValue"];
    forbid(
        &["engine", "store"],
        &words,
        "the engine must not parse bodies",
    );
}

#[test]
fn only_the_store_names_the_database_driver() {
    confine(
        &["store"],
        &["sqlx", "sqlite3", "rusqlite"],
        "only the store may name the database driver",
    );
}

#[test]
fn only_the_handshakes_name_the_tls_library() {
    confine(
        &["http/tls", "client/tls"],
        &["rustls"],
        "only http/tls and client/tls may name the TLS library",
    );
}

#[test]
fn only_queries_use_the_grammar_of_sqlite() {
    confine(
        &["query"],
        &["sqlite3_parser"],
        "only queries may use the grammar of SQLite",
    );
}

/// Queries and searches are only languages: other modules run them and use the results.
#[test]
fn the_query_and_search_languages_import_no_other_module() {
    let words = [
        "crate::",
        "axum",
        "hyper",
        "tower",
        "http::",
        "StatusCode",
        "leptos",
        "tokio",
        "async ",
        "std::fs",
        "std::net",
        "SystemTime",
        "Instant",
    ];
    let rule = "the query and search languages must not use other modules";
    forbid(&["query", "search"], &words, rule);
}

#[test]
fn only_the_engine_and_the_store_contain_sql() {
    // The parser of queries wraps an expression in a statement to parse it. The statement is not run.
    confine(
        &["engine", "store", "query/parse"],
        &["SELECT "],
        "only the engine and the store may contain SQL",
    );
    let words = [
        "INSERT INTO ",
        "DELETE FROM ",
        "UPDATE jobs",
        "ON CONFLICT",
        "PRAGMA ",
        "CREATE TABLE",
        "ORDER BY ",
        "GROUP BY ",
    ];
    confine(
        &["engine", "store"],
        &words,
        "only the engine and the store may contain SQL",
    );
}

#[test]
fn only_the_clock_reads_the_current_time_for_engine_store_and_protocols() {
    let words = [
        "SystemTime::now",
        "Utc::now",
        "Local::now",
        "CURRENT_TIMESTAMP",
        "strftime(",
        "unixepoch(",
    ];
    let sources = sources(&[
        "src/engine.rs",
        "src/engine",
        "src/store.rs",
        "src/store",
        "src/protocol",
    ]);
    let others = sources
        .iter()
        .filter(|source| source.path != "src/engine/clock.rs");
    let wrong: Vec<String> = others.flat_map(|source| mentions(source, &words)).collect();
    assert_none(&wrong, "only the clock may read the current time");
}

/// Features select modules, never code within a function.
#[test]
fn features_select_modules_only() {
    let mut wrong = Vec::new();
    for source in sources(&["src"]) {
        let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
        for (number, line) in lines.iter().enumerate() {
            let asks = line.contains("cfg(feature")
                || line.contains("cfg(not(feature")
                || line.contains("cfg!(feature");
            if line.starts_with("//") || !asks {
                continue;
            }
            let below = &lines[number + 1..];
            let item = below
                .iter()
                .find(|line| !line.starts_with("#[") && !line.starts_with("//"));
            let is_module = item.is_some_and(|item| {
                item.starts_with("mod ")
                    || item.starts_with("pub mod ")
                    || *item == "pub fn hydrate() {"
            });
            if !is_module {
                wrong.push(format!("{}:{}: {line}", source.path, number + 1));
            }
        }
    }
    assert_none(&wrong, "#[cfg(feature)] may be set on modules only");
}

#[test]
fn files_have_fewer_than_500_lines() {
    let mut wrong = Vec::new();
    for source in sources(&["src", "benches", "build.rs", "tests"]) {
        let lines = source.text.lines().count();
        if source.path.ends_with(".rs") && lines >= 500 {
            wrong.push(format!("{}: {lines} lines", source.path));
        }
    }
    assert_none(&wrong, "split files of 500 lines or more");
}

/// The configuration of the machine determines the package registries, not the repository.
#[test]
fn no_file_names_a_package_host() {
    let index = "registry+https://github.com/rust-lang/crates.io-index";
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let elsewhere = |line: &&str| line.starts_with("source = ") && !line.contains(index);
    let wrong: Vec<String> = lock.lines().filter(elsewhere).map(str::to_owned).collect();
    assert_none(&wrong, "Cargo.lock names the public index only");
    let mut places = vec![
        "src",
        "benches",
        "build.rs",
        "scripts",
        "end2end",
        "style",
        "migrations",
    ];
    for place in [
        "Cargo.toml",
        "Makefile",
        "README.md",
        "ARCHITECTURE.md",
        "package.json",
        "package-lock.json",
        "deny.toml",
        "clippy.toml",
        ".cargo",
        ".npmrc",
        ".ci",
        ".gitignore",
    ] {
        if root().join(place).exists() {
            places.push(place);
        }
    }
    let mut wrong = Vec::new();
    for source in sources(&places) {
        if source.path.contains("node_modules/") || source.path.contains("screenshots/") {
            continue;
        }
        for line in source.text.lines() {
            let address = line.split("://").skip(1).find(|rest| {
                let host = rest
                    .split(['/', '"', ' ', '>', ')'])
                    .next()
                    .unwrap_or_default();
                [
                    "registry",
                    "mirror",
                    "proxy",
                    "npmjs",
                    "static.crates",
                    "index.crates",
                    "pypi",
                ]
                .iter()
                .any(|word| host.contains(word))
            });
            if address.is_some() {
                wrong.push(format!("{}: {}", source.path, line.trim()));
            }
        }
    }
    assert_none(&wrong, "no file may name a package host");
}
