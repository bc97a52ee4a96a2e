use super::*;

#[test]
fn addresses_that_are_no_database_are_refused() {
    for address in [
        "",
        "sqlite:",
        "sqlite://",
        "mysql://x",
        "x.db",
        "sqlite://x?mode=ro",
    ] {
        assert!(locate(address).is_err(), "{address}");
    }
    assert_eq!(
        locate("sqlite://a/b.db").unwrap().0,
        PathBuf::from("a/b.db")
    );
    assert!(locate("sqlite::memory:").unwrap().1.is_some());
}
