//! `switchyard completions` and `switchyard man`, written from the definitions of the flags.

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use super::{Outcome, print};
use crate::config::Command;

/// Prints the completion script of a shell.
pub fn run(shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Command::command(), "switchyard", &mut script);
    print(&String::from_utf8(script)?);
    Ok(())
}

/// Prints the manual page: the program, and a section for each of its commands.
pub fn man() -> Outcome {
    let mut command = Command::command();
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
