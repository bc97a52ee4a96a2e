//! What is kept of a secret: its hash. Secrets that somebody shows are hashed too, and the hashes compared
//! in constant time, so that the time an answer takes tells nothing about how much was right.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// Random bytes of a secret that is made up; 43 characters in base64.
const BYTES: usize = 32;

/// The SHA-256 of a secret. Secrets are long and random, so it need be neither salted nor slow.
#[derive(Clone, Copy)]
pub struct Hash([u8; 32]);

impl Hash {
    pub fn of(secret: impl AsRef<[u8]>) -> Hash {
        Hash(Sha256::digest(secret).into())
    }

    /// In hexadecimal, as it is stored.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
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

    /// Its bytes, as a key of maps that hold only stored hashes. To check a credential, use [`Hash::matches`].
    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }

    /// Whether they are of the same secret.
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

/// Not even the hash belongs into a log.
impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash(…)")
    }
}

/// The index of the last match. Looks at all of them, so the time does not tell which one matched.
pub fn last_match(all: impl Iterator<Item = Choice>) -> Option<usize> {
    let mut found = 0;
    for (number, matches) in (1_u64..).zip(all) {
        found.conditional_assign(&number, matches);
    }
    usize::try_from(found.checked_sub(1)?).ok()
}

/// A secret that nobody can guess, from the system's random numbers.
///
/// # Errors
/// If the system has none.
pub fn generate() -> Result<String, getrandom::Error> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_the_one_that_everybody_knows() {
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
    fn secrets_that_are_made_up_are_long_and_differ() {
        let (one, other) = (generate().unwrap(), generate().unwrap());
        assert_eq!(one.len(), 43);
        assert_ne!(one, other);
        let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        assert!(one.chars().all(is_safe), "{one}");
    }
}
