//! Database addresses without their passwords.

/// The address without its password.
pub fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let (location, query) = match rest.split_once('?') {
        Some((location, query)) => (location, Some(query)),
        None => (rest, None),
    };
    // A password may contain an unescaped `@`, so the last one separates the host.
    let location = match location.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{user}@{host}")
        }
        None => location.to_owned(),
    };
    let open = |part: &&str| !part.starts_with("password=");
    let query: Vec<&str> = query
        .into_iter()
        .flat_map(|query| query.split('&'))
        .collect();
    let query: Vec<&str> = query.into_iter().filter(open).collect();
    if query.is_empty() {
        format!("{scheme}://{location}")
    } else {
        format!("{scheme}://{location}?{}", query.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (address, expected) in [
            (
                "postgres://user:secret@host:1/db",
                "postgres://user@host:1/db",
            ),
            (
                "postgresql://user:se/cr@et@host/db?sslmode=require",
                "postgresql://user@host/db?sslmode=require",
            ),
            (
                "postgres://host/db?user=me&password=secret&port=1",
                "postgres://host/db?user=me&port=1",
            ),
            ("postgres://host/db?password=secret", "postgres://host/db"),
            ("mysql://user:secret@host/db", "mysql://user@host/db"),
            ("postgres://host/db", "postgres://host/db"),
            ("sqlite://a/b.db", "sqlite://a/b.db"),
            ("sqlite::memory:", "sqlite::memory:"),
        ] {
            assert_eq!(without_password(address), expected);
        }
    }
}
