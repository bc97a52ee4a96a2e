//! `cargo leptos …`.

use cargo_leptos::config::Cli;
use clap::Parser;

#[tokio::main]
async fn main() -> color_eyre::Result<()> {
    color_eyre::install()?;
    // Cargo passes the name of the subcommand.
    let is_name = |(position, arg): &(usize, String)| *position == 1 && arg == "leptos";
    let args = std::env::args().enumerate().filter(|arg| !is_name(arg));
    let cli = Cli::parse_from(args.map(|(_, arg)| arg));
    let verbosity = cli.opts().map_or(0, |options| options.verbose);
    cargo_leptos::logger::setup(verbosity, &cli.log);
    cargo_leptos::run(cli).await
}
