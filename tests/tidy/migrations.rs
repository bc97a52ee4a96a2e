//! Migrations have the same numbers on both databases.

use std::fs;

use super::root;

#[test]
fn migrations_have_consecutive_numbers_and_are_the_same_for_both_databases() {
    let mut sets = Vec::new();
    for folder in fs::read_dir(root().join("migrations")).unwrap() {
        let folder = folder.unwrap().path();
        let names = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        for (number, name) in names.iter().enumerate() {
            let start = format!("{:04}_", number + 1);
            assert!(
                name.starts_with(&start) && name.ends_with(".sql"),
                "{}: {name}",
                folder.display()
            );
        }
        sets.push(names);
    }
    assert!(!sets.is_empty());
    for set in &sets {
        assert_eq!(*set, sets[0], "databases that differ");
    }
}
