//! Ports for programs that cannot ask the system for any free one.

use std::fs::{self, File};
use std::net::TcpListener;

/// Below the ports that the system gives to programs that ask for any, and to outgoing connections. So nobody takes
/// one while its program is starting, or stopped for a while.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// A port that no other test uses as long as this exists.
#[derive(Debug)]
pub struct Port {
    pub number: u16,
    _lock: File,
}

impl Port {
    pub fn reserve() -> Port {
        let folder = std::env::temp_dir().join("switchyard-test-ports");
        fs::create_dir_all(&folder).expect("a folder for locks");
        let first = u16::try_from(std::process::id() % u32::from(COUNT)).expect("it is small");
        for n in 0..COUNT {
            let number = FIRST + (first + n) % COUNT;
            let Ok(lock) = File::create(folder.join(number.to_string())) else {
                // Another user's.
                continue;
            };
            if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", number)).is_ok() {
                return Port {
                    number,
                    _lock: lock,
                };
            }
        }
        panic!("no port is free");
    }
}
