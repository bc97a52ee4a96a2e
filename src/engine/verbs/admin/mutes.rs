//! Muted failure groups: for a time, they are neither problems nor alerts.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::unit_of_work::Needs;
use crate::store::{Row, Statement};

/// Groups that can be muted at the same time; muting more ends the oldest.
pub const MUTES_MAX: i64 = 1_000;

/// A muted failure group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mute {
    pub group: String,
    pub reason: String,
    pub who: String,
    pub until: Time,
}

impl Engine {
    /// The groups that are muted now, by name.
    pub async fn mutes(&self) -> Result<Vec<Mute>> {
        let muted = Statement::new(MUTED, [self.now(None).0.into()]);
        let rows = self.readers().rows(muted).await?;
        let mute = |row: &Row| {
            Ok(Mute {
                group: row.text(0)?,
                reason: row.text(1)?,
                who: row.text(2)?,
                until: Time(row.int(3)?),
            })
        };
        rows.iter().map(mute).collect()
    }

    /// Mutes a group for some hours, or changes for how long it is muted.
    pub async fn mute(&self, group: &str, reason: &str, who: &str, hours: i64) -> Result<()> {
        let words = [group, reason, who].map(str::to_owned);
        self.write(Needs::default(), None, 1, move |work| {
            let [group, reason, who] = words.clone();
            work.audit_mute(&group, &reason, Some(hours));
            let until = work.now.plus_seconds(hours as f64 * 3_600.0);
            let args = [
                group.into(),
                reason.into(),
                who.into(),
                work.now.0.into(),
                until.0.into(),
            ];
            work.add_statements([
                Statement::new(MUTE, args),
                Statement::new(DROP_ENDED, [work.now.0.into()]),
                Statement::new(DROP_SURPLUS, [MUTES_MAX.into()]),
            ]);
            Ok(())
        })
        .await
    }

    /// Ends a mute. Returns whether there was one.
    pub async fn unmute(&self, group: &str) -> Result<bool> {
        let muted = self.mutes().await?;
        let Some(mute) = muted.into_iter().find(|mute| mute.group == group) else {
            return Ok(false);
        };
        self.write(Needs::default(), None, 1, move |work| {
            work.audit_mute(&mute.group, &mute.reason, None);
            work.add_statements([Statement::new(UNMUTE, [mute.group.as_str().into()])]);
            Ok(())
        })
        .await?;
        Ok(true)
    }
}

const MUTED: &str = "SELECT failure_group, reason, who, until_at FROM mutes WHERE until_at > $1 ORDER BY failure_group";

const MUTE: &str = "
INSERT INTO mutes (failure_group, reason, who, muted_at, until_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (failure_group) DO UPDATE SET reason = excluded.reason, who = excluded.who,
    muted_at = excluded.muted_at, until_at = excluded.until_at";

const DROP_ENDED: &str = "DELETE FROM mutes WHERE until_at <= $1";

const DROP_SURPLUS: &str = "
DELETE FROM mutes WHERE muted_at < (SELECT muted_at FROM mutes ORDER BY muted_at DESC LIMIT 1 OFFSET $1 - 1)";

const UNMUTE: &str = "DELETE FROM mutes WHERE failure_group = $1";

#[cfg(test)]
mod tests {
    use crate::engine::{EngineSettings, ManualClock, Time};

    use super::*;

    #[tokio::test]
    async fn a_mute_ends_at_its_time_or_before() {
        let clock = ManualClock::at(Time(1_000_000_000_000_000));
        let options = EngineSettings {
            database: "sqlite::memory:".to_owned(),
            without_tasks: true,
            clock: Some(clock.clone()),
            ..EngineSettings::default()
        };
        let engine = Engine::open(&options).await.unwrap();
        engine.mute("Lost", "known", "ada", 2).await.unwrap();
        engine.mute("Late", "known", "ada", 4).await.unwrap();
        let muted = async || -> Vec<String> {
            let mutes = engine.mutes().await.unwrap();
            mutes.into_iter().map(|mute| mute.group).collect()
        };
        assert_eq!(muted().await, ["Late", "Lost"]);
        clock.set(Time(1_000_007_199_000_000));
        assert_eq!(muted().await, ["Late", "Lost"]);
        clock.set(Time(1_000_007_201_000_000));
        assert_eq!(muted().await, ["Late"]);
        assert!(engine.unmute("Late").await.unwrap());
        assert!(!engine.unmute("Late").await.unwrap());
        assert_eq!(muted().await, [""; 0]);
        engine.close().await;
    }
}
