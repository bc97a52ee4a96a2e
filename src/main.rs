//! The command line.

use std::{error::Error, net::SocketAddr};

use clap::Parser;
use switchyard::{
    assets::Assets,
    server::{AppState, router},
};

#[derive(Parser)]
#[command(version, about)]
enum Command {
    /// Serve the queues and the dashboard.
    Serve {
        /// Address to listen on; port 0 takes a free one.
        #[arg(long, env = "SWITCHYARD_LISTEN", default_value = "127.0.0.1:3000")]
        listen: SocketAddr,
        /// Where the jobs live: sqlite://FILE or sqlite::memory:.
        #[arg(
            long,
            env = "SWITCHYARD_DATABASE",
            default_value = "sqlite://switchyard.db"
        )]
        database: String,
    },
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Command::Serve {
        listen,
        database: _,
    } = Command::parse();
    let listener = tokio::net::TcpListener::bind(listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, router(AppState::new(Assets::load()))).await?;
    Ok(())
}
