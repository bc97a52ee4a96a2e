//! The environment variables with secrets.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use clap::{Command as Definition, CommandFactory};

use super::Command;

static SECRET_VARIABLES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let mut names = BTreeSet::new();
    collect(&Command::command(), &mut names);
    names
});

/// The environment variables of all commands that contain secrets or name files with them: those of the options whose
/// values the help hides, and the same names with `_FILE`.
pub fn secret_variables() -> &'static BTreeSet<String> {
    &SECRET_VARIABLES
}

fn collect(definition: &Definition, names: &mut BTreeSet<String>) {
    let hidden = definition
        .get_arguments()
        .filter(|arg| arg.is_hide_env_values_set());
    for name in hidden.filter_map(|arg| arg.get_env()) {
        let name = name.to_string_lossy();
        names.extend([format!("{name}_FILE"), name.into_owned()]);
    }
    for command in definition.get_subcommands() {
        collect(command, names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(definition: &Definition) -> Vec<String> {
        let own = definition.get_arguments().filter_map(|arg| arg.get_env());
        let own = own.map(|name| name.to_string_lossy().into_owned());
        let inner = definition.get_subcommands().flat_map(variables);
        own.chain(inner).collect()
    }

    #[test]
    fn every_variable_with_the_name_of_a_secret_is_one() {
        let secret = secret_variables();
        let words = ["TOKEN", "PASSWORD", "KEYS", "SECRET"];
        let all = variables(&Command::command());
        let named = all
            .iter()
            .filter(|name| words.iter().any(|word| name.contains(word)));
        let forgotten: Vec<_> = named.filter(|name| !secret.contains(*name)).collect();
        assert!(forgotten.is_empty(), "{forgotten:?}");
        for (name, is_secret) in [
            ("SWITCHYARD_TOKEN", true),
            ("SWITCHYARD_ADMIN_PASSWORD_FILE", true),
            ("SWITCHYARD_DATABASE", true),
            ("SWITCHYARD_OTLP_ENDPOINT", true),
            ("SWITCHYARD_SERVER", false),
            ("SWITCHYARD_LISTEN", false),
        ] {
            assert_eq!(secret.contains(name), is_secret, "{name}");
        }
    }
}
