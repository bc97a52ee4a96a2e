//! The messages to systemd (`Type=notify`), received on a real socket.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;

use crate::support::ports::Port;
use crate::support::{Server, database};

/// A guard against a missing message; no test waits this long.
const MESSAGE_MAX: Duration = Duration::from_secs(60);

/// A socket of the service manager, and its address as in `NOTIFY_SOCKET`.
struct Socket {
    socket: UnixDatagram,
    address: OsString,
    _folder: TempDir,
}

impl Socket {
    fn at_path() -> Socket {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("notify");
        Socket::of(UnixDatagram::bind(&path).unwrap(), path.into(), folder)
    }

    #[cfg(target_os = "linux")]
    fn with_name() -> Socket {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::SocketAddr;
        let folder = TempDir::new().unwrap();
        let name = folder.path().to_str().unwrap().to_owned();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        Socket::of(socket, format!("@{name}").into(), folder)
    }

    fn of(socket: UnixDatagram, address: OsString, folder: TempDir) -> Socket {
        socket.set_read_timeout(Some(MESSAGE_MAX)).unwrap();
        Socket {
            socket,
            address,
            _folder: folder,
        }
    }

    /// The next message.
    fn receive(&self) -> String {
        let mut bytes = [0; 1024];
        let length = self.socket.recv(&mut bytes).expect("a message");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    /// Whether no message waits.
    fn is_empty(&self) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        let received = self.socket.recv(&mut [0; 1024]);
        received.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// The microseconds of the message about a reload.
    fn reloading(&self) -> u64 {
        let message = self.receive();
        let micros = message.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
        micros.expect(&message).parse().expect(&message)
    }
}

/// Starts a server, reloads it twice and stops it, and checks each message.
async fn check_messages(socket: &Socket) {
    let folder = TempDir::new().unwrap();
    let port = Port::reserve();
    let address = format!("127.0.0.1:{}", port.number);
    let url = database::address(&folder.path().join("jobs.db"));
    let token = folder.path().join("token");
    fs::write(&token, "a-token-of-some-length").unwrap();
    let file = token.to_str().unwrap();
    let options = ["--listen", &address, "--qless-token-file", file];
    let mut command = Server::command(&url, &options);
    command.env("NOTIFY_SOCKET", &socket.address);
    let starting = spawn_blocking(move || Server::run(command));
    let ready = format!("READY=1\nSTATUS=Listening on {address}");
    assert_eq!(socket.receive(), ready);
    // The first attempt succeeds.
    drop(TcpStream::connect(&address).await.unwrap());
    let mut server = starting.await.unwrap();
    let health = server.http.get(format!("http://{address}/health/ready"));
    assert_eq!(health.send().await.unwrap().status(), 200);
    let mut last = 0;
    for _ in 0..2 {
        server.reload();
        let now = socket.reloading();
        assert!(now > last, "{now} after {last}");
        last = now;
        let reloaded = "READY=1\nSTATUS=Listening; files reloaded";
        assert_eq!(socket.receive(), reloaded);
    }
    fs::remove_file(&token).unwrap();
    server.reload();
    socket.reloading();
    let failed = "READY=1\nSTATUS=Listening; see the log for what was not reloaded: keys";
    assert_eq!(socket.receive(), failed);
    server.terminate();
    let stopping = "STOPPING=1\nSTATUS=Finishing running requests";
    assert_eq!(socket.receive(), stopping);
    assert!(server.stopped().await.success());
    assert!(socket.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn systemd_learns_when_the_server_is_ready_reloads_and_stops() {
    check_messages(&Socket::at_path()).await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_socket_may_have_an_abstract_name() {
    check_messages(&Socket::with_name()).await;
}

#[tokio::test]
async fn a_server_that_cannot_listen_is_not_ready() {
    let socket = Socket::at_path();
    let other = Server::with(&[]);
    let folder = TempDir::new().unwrap();
    let url = database::address(&folder.path().join("jobs.db"));
    let mut command = Server::command(&url, &["--listen", &other.address]);
    command.env("NOTIFY_SOCKET", &socket.address);
    let ended = spawn_blocking(move || command.output()).await.unwrap();
    assert_eq!(ended.unwrap().status.code(), Some(1));
    assert!(socket.is_empty());
}

/// A server that was started without systemd, or whose systemd has gone, serves as usual.
#[tokio::test]
async fn a_missing_socket_is_only_a_warning() {
    let folder = TempDir::new().unwrap();
    let url = database::address(&folder.path().join("jobs.db"));
    let missing = folder.path().join("missing").into_os_string();
    let log = folder.path().join("log");
    for (socket, warnings) in [(missing, 1), (OsString::new(), 0)] {
        let mut command = Server::command(&url, &[]);
        command.env("NOTIFY_SOCKET", &socket);
        command.stderr(File::create(&log).unwrap());
        let server = Server::run(command);
        let health = server.http.get(format!("http://{}/health", server.address));
        assert_eq!(health.send().await.unwrap().status(), 200);
        let text = fs::read_to_string(&log).unwrap();
        let found = text.matches("cannot notify the service manager").count();
        assert_eq!(found, warnings, "{text}");
        server.stop().await;
    }
}
