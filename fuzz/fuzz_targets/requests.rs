//! Sends the input as a request to the whole server: all protocols, forms, cookies, pages.
//!
//! An example of the package, which `make fuzz ARGS=requests` builds and runs (see `scripts/fuzz.sh`).
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use requests::Server;
use tokio::runtime::{Builder, Runtime};

#[path = "../requests.rs"]
mod requests;

thread_local! {
    static SERVER: RefCell<(Runtime, Server)> = RefCell::new({
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let server = runtime.block_on(Server::start());
        (runtime, server)
    });
}

#[path = "../memory.rs"]
mod memory;

fuzz_target!(|data: &[u8]| {
    let _memory = memory::check();
    SERVER.with_borrow_mut(|(runtime, server)| runtime.block_on(server.send(data)));
});
