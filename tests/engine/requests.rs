//! The seeds of the fuzz target `requests`, and random mutations of them.

use std::fs;
use std::path::Path;

#[path = "../../fuzz/requests.rs"]
mod server;

/// The number of mutated requests.
const MUTATIONS: usize = 3_000;

/// Bytes with a meaning for parsers.
const PIECES: &[&[u8]] = &[
    b"\0",
    b"\"",
    b"\\",
    b"%00",
    b"%ff",
    b"%2F",
    b"..",
    b"&",
    b"=",
    b";",
    b"[",
    b"{",
    b"null",
    b"-1",
    b"1e999",
    b"9223372036854775808",
    b"\xff",
    b"\\u0000",
    b"\\ud800",
    b"\xe2\x80\xae",
];

/// Deterministic pseudorandom numbers (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, max: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % max.max(1) as u64).unwrap()
    }

    /// The text with up to four parts replaced by others.
    fn change(&mut self, seed: &[u8], other: &[u8]) -> Vec<u8> {
        let mut data = seed.to_vec();
        for _ in 0..=self.below(3) {
            let start = self.below(data.len());
            let end = (start + self.below(8)).min(data.len());
            let piece = match self.below(3) {
                0 => &other[self.below(other.len())..],
                1 => &[],
                _ => PIECES[self.below(PIECES.len())],
            };
            data.splice(start..end, piece.iter().copied());
        }
        data
    }
}

#[tokio::test]
async fn no_mutated_request_makes_the_server_fail() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/requests");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let seeds: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    let mut server = server::Server::start().await;
    for seed in &seeds {
        server.send(seed).await;
    }
    let mut numbers = Numbers(0x5eed);
    for _ in 0..MUTATIONS {
        let (seed, other) = (
            &seeds[numbers.below(seeds.len())],
            &seeds[numbers.below(seeds.len())],
        );
        server.send(&numbers.change(seed, other)).await;
    }
}
