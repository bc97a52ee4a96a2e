//! The `switchyard` binary: sets the allocator and runs the command line (`cli`).

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    switchyard::cli::main()
}
