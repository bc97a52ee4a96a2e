//! The memory of the commands that are run. What arrives is counted by the connection (`http/redis.rs`).

use bytes::Bytes;

use crate::memory::{Busy, Reserved, SMALL_MAX, reserve_parsed};
use crate::protocol::qless::ITEMS_MAX;

/// What an argument can occupy besides the bytes that have arrived, not counting texts: a key of a job, its copies while
/// a verb runs, and a reply.
const ARGUMENT_BYTES: usize = 192;

/// The copies of its text, if it can be a name.
const COPIES: usize = 3;
const COPIED_MAX: usize = 1_024;

/// What a name in a list can occupy, with its copy.
const NAME_BYTES: usize = 120;

/// The options whose values are lists of names, and how many of them a command can have.
const LISTS: [&str; 2] = ["tags", "depends"];

/// Reserves the memory that a parsed command occupies, if it is not small.
///
/// # Errors
/// [`Busy`].
pub async fn reserve(command: &[Bytes]) -> Result<Reserved, Busy> {
    match parsed_bytes(command) {
        bytes if bytes > SMALL_MAX => reserve_parsed(bytes).await,
        _ => Ok(Reserved::default()),
    }
}

/// The memory that this command can occupy, not counting what has arrived.
fn parsed_bytes(command: &[Bytes]) -> usize {
    let lists = || {
        let pairs = command.iter().zip(command.iter().skip(1));
        pairs.filter(|(option, _)| LISTS.iter().any(|list| option == list))
    };
    // A name and its comma have two bytes.
    let names_max = lists().map(|(_, list)| list.len() / 2).sum::<usize>();
    let copies = command
        .iter()
        .map(Bytes::len)
        .filter(|len| *len <= COPIED_MAX);
    let base = ARGUMENT_BYTES * command.len() + COPIES * copies.sum::<usize>();
    if base + NAME_BYTES * names_max <= SMALL_MAX {
        return base;
    }
    let commas = lists().flat_map(|(_, list)| memchr::memchr_iter(b',', list));
    base + NAME_BYTES * commas.take(LISTS.len() * ITEMS_MAX).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{MEMORY_MAX, reserve_until_dropped};

    fn command(arguments: &[&str]) -> Vec<Bytes> {
        let copy = |text: &&str| Bytes::copy_from_slice(text.as_bytes());
        arguments.iter().map(copy).collect()
    }

    fn list(names: usize) -> String {
        format!("[{}1]", "1,".repeat(names))
    }

    #[test]
    fn arguments_and_names_in_lists_occupy_more_than_their_text() {
        let bytes = |arguments: &[&str]| parsed_bytes(&command(arguments));
        assert_eq!(bytes(&[]), 0);
        assert_eq!(bytes(&["a"; 10]), 1_950);
        assert_eq!(bytes(&[&"a".repeat(1_024)]), 192 + 3_072);
        assert_eq!(bytes(&[&"a".repeat(1_025)]), 192, "no name");
        assert_eq!(bytes(&["tags", &list(512)]), 384 + 12, "small");
        assert_eq!(bytes(&["tags", &list(600)]), 384 + 12 + 72_000);
        assert_eq!(
            bytes(&["data", &list(20_000)]),
            384 + 12,
            "no list of names"
        );
        let all = ["tags", &list(20_000), "depends", &list(20_000)];
        assert_eq!(bytes(&all), 768 + 3 * 11 + 2_400_000);
    }

    #[tokio::test]
    async fn large_commands_reserve_memory() {
        let tags = list(10_000);
        let (small, large) = (command(&["a"; 300]), command(&["put", "tags", &tags]));
        let reserved = async |command: &[Bytes]| reserve(command).await.map(|it| it.bytes());
        assert_eq!(reserved(&small).await, Ok(0));
        assert_eq!(reserved(&large).await, Ok(576 + 3 * 7 + 1_200_000));
        let _all = reserve_until_dropped(MEMORY_MAX).await.unwrap();
        assert_eq!(reserved(&small).await, Ok(0));
        assert_eq!(reserved(&large).await, Err(Busy));
    }
}
