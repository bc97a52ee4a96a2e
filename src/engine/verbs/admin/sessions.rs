//! Sessions of the dashboard: who has signed in. In the database stands the hash of each session's secret, so it goes
//! on over restarts and on every server, and whoever reads the database cannot use it.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::unit_of_work::Needs;
use crate::secret::Hash;
use crate::store::{Statement, StoreError};

/// Seconds after which a session ends that is not used.
pub const SESSION_IDLE_S: i64 = 12 * 3_600;

/// Seconds after which a session ends, used or not.
pub const SESSION_AGE_S: i64 = 7 * 86_400;

/// The most sessions; beyond them those end that have not been used for longest.
pub const SESSIONS_MAX: i64 = 10_000;

/// The most sessions of one name; a new one ends the one that has not been used for longest.
pub const SESSIONS_OF_NAME_MAX: i64 = 20;

/// That a session is used is noted every so many seconds.
const TOUCH_S: i64 = 600;

/// A session, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Whose key opened it.
    pub name: String,
    /// By which it is seen whether the key is one still.
    pub proof: Hash,
}

/// One of sixteen new sessions, by its hash, drops old ones: so there may be a few more than [`SESSIONS_MAX`].
const SWEEPS: char = '0';

impl Engine {
    /// Begins a session with the secret that has this hash.
    pub async fn begin_session(
        &self,
        hash: Hash,
        session: Session,
        now: Option<Time>,
    ) -> Result<()> {
        self.write(Needs::default(), now, 1, move |work| {
            let (hash, proof) = (hash.hex(), session.proof.hex());
            let at = work.now.0;
            // To look for old ones is to look at all of them.
            if hash.starts_with(SWEEPS) {
                work.add_statements(drop_old(work.now));
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

    /// The session whose secret has this hash, unless it has ended.
    pub async fn session(&self, hash: Hash, now: Option<Time>) -> Result<Option<Session>> {
        let at = self.now(now);
        let rows = self
            .readers()
            .rows(Statement::new(READ, [hash.hex().into()]));
        let rows = rows.await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let (created, seen) = (row.int(2)?, row.int(3)?);
        let [idle, old] = ends(at);
        if seen <= idle || created <= old {
            return Ok(None);
        }
        if at.0 - seen > TOUCH_S * 1_000_000 {
            self.write(Needs::default(), now, 1, move |work| {
                let touched = [hash.hex().into(), work.now.0.into()];
                work.add_statements([Statement::new(TOUCH, touched)]);
                Ok(())
            })
            .await?;
        }
        let proof = Hash::from_hex(&row.text(1)?);
        Ok(Some(Session {
            name: row.text(0)?,
            proof: proof.ok_or(StoreError::Corrupt("a session's proof is none"))?,
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

/// A session has ended that was used last, or that began, at these moments.
fn ends(now: Time) -> [i64; 2] {
    [SESSION_IDLE_S, SESSION_AGE_S].map(|seconds| now.0.saturating_sub(seconds * 1_000_000))
}

/// Drops the sessions that have ended, and those that are too many.
pub fn drop_old(now: Time) -> [Statement; 2] {
    let [idle, old] = ends(now);
    [
        Statement::new(DROP_ENDED, [idle.into(), old.into()]),
        Statement::new(DROP_SURPLUS, [SESSIONS_MAX.into()]),
    ]
}

const BEGIN: &str =
    "INSERT INTO sessions (hash, name, proof, created_at, seen_at) VALUES ($1, $2, $3, $4, $4)";

const READ: &str = "SELECT name, proof, created_at, seen_at FROM sessions WHERE hash = $1";

const TOUCH: &str = "UPDATE sessions SET seen_at = $2 WHERE hash = $1 AND seen_at < $2";

const END: &str = "DELETE FROM sessions WHERE hash = $1";

const DROP_ENDED: &str = "DELETE FROM sessions WHERE seen_at <= $1 OR created_at <= $2";

const DROP_OTHERS: &str = "
DELETE FROM sessions WHERE name = $1 AND hash NOT IN (
    SELECT hash FROM sessions WHERE name = $1 ORDER BY seen_at DESC, hash LIMIT $2 + 0)";

const DROP_SURPLUS: &str = "
DELETE FROM sessions WHERE seen_at <= (SELECT seen_at FROM sessions ORDER BY seen_at DESC LIMIT 1 OFFSET $1 + 0)";
