//! Dashboard sessions. The database stores a hash of each session's secret, so sessions survive restarts and are valid
//! on every server, but cannot be used by a reader of the database.

use std::time::Duration;

use tokio::time::timeout;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::unit_of_work::Needs;
use crate::secret::Hash;
use crate::store::{Statement, StoreError};

/// How long the lookup of a session takes at most, including the wait for others.
const LOOKUP_MAX: Duration = Duration::from_secs(4);

/// Seconds without use after which a session ends.
pub const SESSION_IDLE_S: i64 = 12 * 3_600;

/// Seconds after which a session ends even if it is used.
pub const SESSION_AGE_S: i64 = 7 * 86_400;

/// Sessions that are kept; beyond that, the least recently used ones end.
pub const SESSIONS_MAX: i64 = 10_000;

/// Sessions per user; a new one ends the least recently used one.
pub const SESSIONS_OF_NAME_MAX: i64 = 20;

/// The last use of a session is stored at most once in this many seconds.
const LAST_SEEN_INTERVAL_S: i64 = 600;

/// A stored session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The user.
    pub name: String,
    /// Shows whether the user's key is still the one used to sign in.
    pub proof: Hash,
}

/// A new session deletes ended sessions and those above the limit if its hash begins with this digit, which one in 16
/// does. So there may be a few more than [`SESSIONS_MAX`].
const SWEEPS: char = '0';

impl Engine {
    /// Begins a session. `hash` is the hash of its secret.
    pub async fn begin_session(
        &self,
        hash: Hash,
        session: Session,
        now: Option<Time>,
    ) -> Result<()> {
        self.write(Needs::default(), now, 1, move |work| {
            let (hash, proof) = (hash.hex(), session.proof.hex());
            let at = work.now.0;
            // Finding old sessions scans the whole table.
            if hash.starts_with(SWEEPS) {
                work.add_statements(delete_old(work.now));
            }
            let others = [
                session.name.as_str().into(),
                (SESSIONS_OF_NAME_MAX - 1).into(),
            ];
            work.add_statements([Statement::new(DROP_OTHERS, others)]);
            let begun = [
                hash.into(),
                session.name.as_str().into(),
                proof.into(),
                at.into(),
            ];
            work.add_statements([Statement::new(BEGIN, begun)]);
            Ok(())
        })
        .await
    }

    /// The session whose secret has this hash, unless it has ended. Stores the use of the session, if the last one was
    /// stored long ago. `turn` is dropped before that: other lookups must not wait for a slow write.
    pub async fn session<T>(
        &self,
        hash: Hash,
        now: Option<Time>,
        turn: T,
    ) -> Result<Option<Session>> {
        let at = self.now(now);
        let statement = Statement::new(READ, [hash.hex().into()]);
        // Leaves connections for all other reads.
        let readers = &self.0.limited_readers.sessions;
        let reading = timeout(LOOKUP_MAX, readers.keyed_rows(statement));
        let rows = reading.await.map_err(|_| StoreError::Timeout)??;
        drop(turn);
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let (created, seen) = (row.int(2)?, row.int(3)?);
        let [idle, old] = ends(at);
        if seen <= idle || created <= old {
            return Ok(None);
        }
        if at.0 - seen > LAST_SEEN_INTERVAL_S * 1_000_000 {
            self.write(Needs::default(), now, 1, move |work| {
                let arguments = [hash.hex().into(), work.now.0.into()];
                work.add_statements([Statement::new(UPDATE_LAST_SEEN, arguments)]);
                Ok(())
            })
            .await?;
        }
        let proof = Hash::from_hex(&row.text(1)?);
        Ok(Some(Session {
            name: row.text(0)?,
            proof: proof.ok_or(StoreError::Corrupt(
                "the proof of a session is not a valid hash",
            ))?,
        }))
    }

    /// Ends the session whose secret has this hash.
    pub async fn end_session(&self, hash: Hash) -> Result<()> {
        self.write(Needs::default(), None, 1, move |work| {
            work.add_statements([Statement::new(END, [hash.hex().into()])]);
            Ok(())
        })
        .await
    }
}

/// A session has ended if its last use is not after the first of these times, or its creation not after the second.
fn ends(now: Time) -> [i64; 2] {
    [SESSION_IDLE_S, SESSION_AGE_S].map(|seconds| now.0.saturating_sub(seconds * 1_000_000))
}

/// Deletes ended sessions, and those above [`SESSIONS_MAX`].
pub fn delete_old(now: Time) -> [Statement; 2] {
    let [idle, old] = ends(now);
    [
        Statement::new(DROP_ENDED, [idle.into(), old.into()]),
        Statement::new(DROP_SURPLUS, [SESSIONS_MAX.into()]),
    ]
}

const BEGIN: &str =
    "INSERT INTO sessions (hash, name, proof, created_at, seen_at) VALUES ($1, $2, $3, $4, $4)";

const READ: &str = "SELECT name, proof, created_at, seen_at FROM sessions WHERE hash = $1";

const UPDATE_LAST_SEEN: &str = "UPDATE sessions SET seen_at = $2 WHERE hash = $1 AND seen_at < $2";

const END: &str = "DELETE FROM sessions WHERE hash = $1";

const DROP_ENDED: &str = "DELETE FROM sessions WHERE seen_at <= $1 OR created_at <= $2";

// The last condition is for a session that another server touches meanwhile.
const DROP_OTHERS: &str = "
DELETE FROM sessions WHERE name = $1 AND hash NOT IN (
        SELECT hash FROM sessions WHERE name = $1 ORDER BY seen_at DESC, hash LIMIT $2 + 0)
    AND seen_at <= (SELECT min(seen_at) FROM (
        SELECT seen_at FROM sessions WHERE name = $1 ORDER BY seen_at DESC, hash LIMIT $2 + 0) AS kept)";

const DROP_SURPLUS: &str = "
DELETE FROM sessions WHERE seen_at <= (SELECT seen_at FROM sessions ORDER BY seen_at DESC LIMIT 1 OFFSET $1 + 0)";
