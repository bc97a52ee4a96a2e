//! The network between a server and its database: a TCP proxy that tests can break.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::select;
use tokio::sync::watch;

const BUFFER: usize = 16 * 1024;

/// What the network does with the bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Passes bytes on.
    Works,
    /// Resets each connection.
    Cut,
    /// Holds back requests and responses, without an error.
    Silent,
    /// Passes requests on, and holds back responses.
    OneWay,
    /// Passes bytes on after this delay.
    Slow(Duration),
}

#[derive(Clone, Copy, Debug)]
struct State {
    network: Network,
    /// The port of the database.
    port: u16,
    /// Connections end when it changes.
    generation: u64,
}

/// A proxy for the connections to a database. It ends when dropped.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bytes {
    Requests,
    Responses,
}

impl Link {
    /// A proxy for the database on this port, with a working network.
    pub async fn to(port: u16) -> Link {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let (state, watched) = watch::channel(State {
            network: Network::Works,
            port,
            generation: 0,
        });
        tokio::spawn(accept(listener, watched));
        Link { address, state }
    }

    /// The port to which the server connects.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn set_network(&self, network: Network) {
        self.state.send_modify(|state| {
            state.network = network;
            if network == Network::Cut {
                state.generation += 1;
            }
        });
    }

    /// Closes all connections, and forwards later ones to the database on this port.
    pub fn forward_to(&self, port: u16) {
        self.state.send_modify(|state| {
            state.port = port;
            state.generation += 1;
        });
    }
}

/// Accepts connections until the link is dropped.
async fn accept(listener: TcpListener, mut state: watch::Receiver<State>) {
    loop {
        let client = select! {
            accepted = listener.accept() => accepted,
            () = dropped(&mut state) => return,
        };
        let Ok((client, _)) = client else { continue };
        let now = *state.borrow();
        if now.network == Network::Cut {
            continue;
        }
        let state = state.clone();
        tokio::spawn(async move {
            let mut ended = state.clone();
            select! {
                _ = forward(client, now.port, state) => {}
                _ = ended.wait_for(|state| state.generation != now.generation) => {}
            }
        });
    }
}

async fn dropped(state: &mut watch::Receiver<State>) {
    while state.changed().await.is_ok() {}
}

async fn forward(client: TcpStream, port: u16, state: watch::Receiver<State>) -> io::Result<()> {
    let database = TcpStream::connect(("127.0.0.1", port)).await?;
    client.set_nodelay(true)?;
    database.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_database, to_database) = database.into_split();
    // The end of one direction ends both, as a process that dies does.
    select! {
        end = pass(Bytes::Requests, from_client, to_database, state.clone()) => end,
        end = pass(Bytes::Responses, from_database, to_client, state) => end,
    }
}

async fn pass(
    bytes: Bytes,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<State>,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        let network = state.wait_for(|state| !withholds(state.network, bytes));
        let Ok(network) = network.await.map(|state| state.network) else {
            return Ok(());
        };
        if let Network::Slow(delay) = network {
            tokio::time::sleep(delay).await;
        }
        to.write_all(&buffer[..count]).await?;
    }
}

fn withholds(network: Network, bytes: Bytes) -> bool {
    match network {
        Network::Silent => true,
        Network::OneWay => bytes == Bytes::Responses,
        Network::Works | Network::Cut | Network::Slow(_) => false,
    }
}
