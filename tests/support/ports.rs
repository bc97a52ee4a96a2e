//! Ports for programs that cannot listen on a free port of the system's choice.

use std::fs::{self, File};
use std::net::TcpListener;

/// Below the range from which the system assigns ports, so that no other program gets such a port while its program
/// starts or is stopped.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// A port that no other test uses while this value exists.
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
                // The lock file belongs to another user.
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
