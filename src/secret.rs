//! Secrets: stored as hashes, compared in constant time, generated, and read from files.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// Maximum size of a file with secrets, in bytes.
pub const SECRET_FILE_BYTES_MAX: u64 = 256 << 10;

/// Random bytes of a generated secret; 43 characters in base64.
const BYTES: usize = 32;

/// The SHA-256 of a secret. Secrets are long and random, so the hash needs no salt and need not be slow.
#[derive(Clone, Copy)]
pub struct Hash([u8; 32]);

impl Hash {
    pub fn of(secret: impl AsRef<[u8]>) -> Hash {
        Hash(Sha256::digest(secret).into())
    }

    /// In hexadecimal, as it is stored.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    pub fn from_hex(text: &str) -> Option<Hash> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok()?;
        }
        Some(Hash(bytes))
    }

    /// The bytes, as a key of maps with stored hashes. To check a credential, use [`Hash::matches`].
    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }

    /// Whether both are hashes of the same secret; in constant time.
    pub fn matches(&self, other: &Hash) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl PartialEq for Hash {
    fn eq(&self, other: &Hash) -> bool {
        self.matches(other).into()
    }
}

impl Eq for Hash {}

/// Keeps hashes out of logs.
impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash(…)")
    }
}

/// A key that signs what the server sends.
#[derive(Clone)]
pub struct SigningKey(Arc<str>);

impl SigningKey {
    pub fn new(key: &str) -> SigningKey {
        SigningKey(key.into())
    }

    /// The HMAC-SHA256 of the text, in hexadecimal.
    pub fn sign(&self, text: &[u8]) -> String {
        // Keys of all lengths are valid.
        let mac = Hmac::<Sha256>::new_from_slice(self.0.as_bytes());
        let signed = mac.map(|mac| mac.chain_update(text).finalize().into_bytes());
        signed.map(|bytes| hex(&bytes)).unwrap_or_default()
    }

    /// The number of characters of the key.
    pub fn chars(&self) -> usize {
        self.0.chars().count()
    }
}

/// Keeps keys out of logs.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The index of the last match. Reads all of them, so that the time does not reveal which one matched.
pub fn last_match(all: impl Iterator<Item = Choice>) -> Option<usize> {
    let mut found = 0;
    for (number, matches) in (1_u64..).zip(all) {
        found.conditional_assign(&number, matches);
    }
    usize::try_from(found.checked_sub(1)?).ok()
}

/// A new secret from the system's random number generator.
///
/// # Errors
/// If the system provides no random numbers.
pub fn generate() -> Result<String, getrandom::Error> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The text of the file, without trailing newlines.
///
/// # Errors
/// If it cannot be read, is empty or too long.
pub fn read_file(path: &str) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    read(file)
}

/// The text of the file as in [`read_file`], if it can be read again: a pipe would have nothing left to read, and could
/// block.
///
/// # Errors
/// As in [`read_file`], or if it is not a regular file.
pub fn read_file_again(path: &str) -> Result<String, String> {
    // Opening a pipe would wait for its writer.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = File::options().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    match metadata.is_file() {
        true => read(file),
        false => Err("not a regular file".to_owned()),
    }
}

/// The text on standard input, without trailing newlines.
///
/// # Errors
/// If it cannot be read, is empty or too long.
pub fn read_stdin() -> Result<String, String> {
    read(io::stdin()).map_err(|why| format!("standard input: {why}"))
}

fn read(source: impl Read) -> Result<String, String> {
    let mut text = String::new();
    let mut source = source.take(SECRET_FILE_BYTES_MAX + 1);
    let length = source
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    if u64::try_from(length).is_ok_and(|length| length > SECRET_FILE_BYTES_MAX) {
        return Err(format!(
            "larger than the limit of {SECRET_FILE_BYTES_MAX} bytes"
        ));
    }
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err("must not be empty".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_sha_256_in_hexadecimal() {
        let hash = Hash::of("abc");
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash.hex(), hex);
        assert_eq!(Hash::from_hex(hex), Some(hash));
        assert_ne!(Hash::of("abd"), hash);
        for wrong in [
            "",
            "ba",
            &format!("{hex}00"),
            &hex.replace("ba", "b"),
            &"é".repeat(32),
        ] {
            assert_eq!(Hash::from_hex(wrong), None, "{wrong}");
        }
        assert!(!format!("{hash:?}").contains("ba78"));
    }

    #[test]
    fn signatures_are_hmac_sha_256() {
        // RFC 4231, test case 2.
        let key = SigningKey::new("Jefe");
        assert_eq!(
            key.sign(b"what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert!(!format!("{key:?}").contains("Jefe"));
    }

    #[test]
    fn generated_secrets_are_long_and_distinct() {
        let (one, other) = (generate().unwrap(), generate().unwrap());
        assert_eq!(one.len(), 43);
        assert_ne!(one, other);
        let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        assert!(one.chars().all(is_safe), "{one}");
    }

    #[test]
    fn a_file_has_up_to_256_kib() {
        for (bytes, is_read) in [(262_143, true), (262_144, true), (262_145, false)] {
            let text = "x".repeat(bytes);
            assert_eq!(read(text.as_bytes()).is_ok(), is_read, "{bytes} bytes");
        }
    }
}
