//! Tells the service manager (systemd, `Type=notify`) when the server is ready, reloads and stops: datagrams to the
//! socket that `NOTIFY_SOCKET` names. Without that variable, nothing is sent.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram as StdDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::net::UnixDatagram;
use tokio::time::timeout;

/// The variable with the address of the socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// How long a message may wait for space in the queue of the socket.
const SEND_MAX: Duration = Duration::from_secs(1);

/// The service manager, if there is one.
#[derive(Clone, Debug, Default)]
pub struct ServiceManager {
    socket: Option<OsString>,
}

impl ServiceManager {
    /// The service manager that started this process.
    pub fn of_process() -> ServiceManager {
        let socket = std::env::var_os(SOCKET).filter(|socket| !socket.is_empty());
        ServiceManager { socket }
    }

    /// The server accepts connections, or has finished a reload. `status` is a line that `systemctl status` shows.
    pub async fn ready(&self, status: &str) {
        let message = format!("READY=1\nSTATUS={status}");
        self.send(&message).await;
    }

    /// The server reloads its files. The time lets systemd distinguish this reload from an earlier one.
    pub async fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
        let message = format!("RELOADING=1\nMONOTONIC_USEC={micros}");
        self.send(&message).await;
    }

    /// The server stops.
    pub async fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=Finishing running requests")
            .await;
    }

    async fn send(&self, message: &str) {
        let Some(socket) = &self.socket else { return };
        let sent = timeout(SEND_MAX, send(socket, message)).await;
        if let Err(error) = sent.unwrap_or_else(|elapsed| Err(elapsed.into())) {
            tracing::warn!(%error, "cannot notify the service manager");
        }
    }
}

/// Sends a datagram to the socket with this path, or with this abstract name if it begins with `@`.
async fn send(socket: &OsStr, message: &str) -> io::Result<()> {
    let to = StdDatagram::unbound()?;
    to.set_nonblocking(true)?;
    to.connect_addr(&address(socket)?)?;
    UnixDatagram::from_std(to)?.send(message.as_bytes()).await?;
    Ok(())
}

fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    match socket.as_bytes().split_first() {
        Some((b'@', name)) => with_name(name),
        _ => SocketAddr::from_pathname(socket),
    }
}

#[cfg(target_os = "linux")]
fn with_name(name: &[u8]) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn with_name(_: &[u8]) -> io::Result<SocketAddr> {
    let why = "abstract sockets exist only on Linux";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}
