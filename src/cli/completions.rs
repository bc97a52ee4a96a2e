//! `switchyard completions` and `switchyard man`, written from the definitions of the flags.

use clap_complete::Shell;
use clap_mangen::Man;

use super::{Outcome, print};
use crate::config::definition;

/// Prints the completion script of a shell. It asks `switchyard complete-queues` for the names of queues.
pub fn run(shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(), "switchyard", &mut script);
    let script = String::from_utf8(script)?;
    print(&match shell {
        Shell::Bash => format!("{script}\n{BASH_QUEUES}"),
        Shell::Fish => format!("{script}{FISH_QUEUES}"),
        Shell::Zsh => with_zsh_queues(&script),
        _ => script,
    });
    Ok(())
}

/// Completes names of queues in Bash, and leaves the rest to the generated function. Bash splits words at colons, and
/// replaces only what follows the last one.
const BASH_QUEUES: &str = r#"_switchyard_with_queues() {
    local line=${COMP_LINE:0:COMP_POINT} words name prefix=
    local word=${line##*[[:space:]]}
    read -ra words <<<"${line%"$word"}"
    case "$word ${words[1]} ${words[2]} ${words[${#words[@]} - 1]}" in
        -*) ;;
        *" queue show "* | *" queue pause "* | *" queue resume "* | *" queue unpause "* | *" queue forget "* | \
            *" queue delete "* | *" job put put" | *" job move --to" | *" --queue")
            [[ $COMP_WORDBREAKS == *:* ]] && prefix=${word%"${word##*:}"}
            COMPREPLY=()
            while IFS= read -r name; do
                COMPREPLY+=("${name#"$prefix"}")
            done < <(switchyard complete-queues -- "$word" 2>/dev/null)
            return 0
            ;;
    esac
    _switchyard "$@"
}
complete -F _switchyard_with_queues -o bashdefault -o default switchyard
"#;

/// The same in zsh.
const ZSH_QUEUES: &str = r#"_switchyard_with_queues() {
    case "$PREFIX ${words[2]} ${words[3]} ${words[CURRENT - 1]}" in
        (-*) ;;
        (*" queue show "* | *" queue pause "* | *" queue resume "* | *" queue unpause "* | *" queue forget "* | \
            *" queue delete "* | *" job put put" | *" job move --to" | *" --queue")
            local -a names
            names=(${(f)"$(switchyard complete-queues -- "$PREFIX" 2>/dev/null)"})
            compadd -a names
            return
            ;;
    esac
    _switchyard "$@"
}

"#;

/// The same in fish.
const FISH_QUEUES: &str = r#"complete -c switchyard -n "__fish_seen_subcommand_from queue; and __fish_seen_subcommand_from show pause resume unpause forget delete" -f -a "(switchyard complete-queues -- (commandline -ct))"
complete -c switchyard -n "__fish_seen_subcommand_from job; and __fish_seen_subcommand_from put" -f -a "(switchyard complete-queues -- (commandline -ct))"
complete -c switchyard -n "__fish_seen_subcommand_from job config" -l queue -x -a "(switchyard complete-queues -- (commandline -ct))"
complete -c switchyard -n "__fish_seen_subcommand_from move" -l to -x -a "(switchyard complete-queues -- (commandline -ct))"
"#;

/// Puts the function that completes queues before the end of the script, which runs or registers the generated one.
fn with_zsh_queues(script: &str) -> String {
    let Some((functions, end)) = script.rsplit_once("\nif [") else {
        return script.to_owned();
    };
    // An autoloaded script runs at the first completion, and registers the function for the next ones.
    let end = end
        .replace("compdef _switchyard ", "compdef _switchyard_with_queues ")
        .replace(
            "_switchyard \"$@\"",
            "compdef _switchyard_with_queues switchyard\n    _switchyard_with_queues \"$@\"",
        );
    format!("{functions}\n{ZSH_QUEUES}if [{end}")
}

/// Prints the manual page: the program, and a section for each of its commands.
pub fn man() -> Outcome {
    let mut command = definition();
    command.build();
    let mut page = Vec::new();
    let man = Man::new(command.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    write_commands(&command, &mut page)?;
    man.render_version_section(&mut page)?;
    print(&String::from_utf8(page)?);
    Ok(())
}

/// Writes the sections of the commands below this one.
fn write_commands(command: &clap::Command, page: &mut Vec<u8>) -> std::io::Result<()> {
    let visible = command
        .get_subcommands()
        .filter(|it| !it.is_hide_set() && it.get_name() != "help");
    for subcommand in visible {
        let title = subcommand.get_bin_name().unwrap_or_default();
        page.extend_from_slice(format!(".SH \"{}\"\n", title.to_uppercase()).as_bytes());
        if subcommand.get_subcommands().next().is_some() {
            write_commands(subcommand, page)?;
            continue;
        }
        let man = Man::new(subcommand.clone());
        for render in [
            Man::render_synopsis_section,
            Man::render_description_section,
            Man::render_options_section,
        ] {
            let mut section = Vec::new();
            render(&man, &mut section)?;
            let section = String::from_utf8_lossy(&section);
            page.extend_from_slice(section.replace(".SH ", ".SS ").as_bytes());
        }
    }
    Ok(())
}
