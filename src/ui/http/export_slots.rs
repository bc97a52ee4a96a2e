//! Limits the exports of jobs that run at the same time, and how slowly a client may read one.

use std::collections::HashMap;
use std::mem::discriminant;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::authentication::RequestInfo;
use super::compression::Slot;
use super::page_slots::PageClient;

/// Maximum number of exports of jobs that run at the same time: of all users together, and of all guests together.
const EXPORTS_MAX: usize = 4;

/// The same for one user, and for one address of guests.
const EXPORTS_OF_CLIENT_MAX: usize = 2;

/// Bytes per second that a client must read on average, uncompressed, after it has let the server wait for
/// [`WAIT_MAX`].
const RATE_MIN: u64 = 16 << 10;
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The exports that are running, by client.
#[derive(Clone, Debug, Default)]
pub struct ExportSlots(Arc<Mutex<HashMap<PageClient, usize>>>);

/// Why no export can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error("{EXPORTS_OF_CLIENT_MAX} of your exports are running.")]
    OfClient,
    #[error("{EXPORTS_MAX} exports are running.")]
    OfAll,
}

impl ExportSlots {
    /// Takes a slot for a request.
    ///
    /// # Errors
    /// If none is free.
    pub fn take(&self, info: &RequestInfo) -> Result<ExportSlot, Full> {
        self.take_for(PageClient::of(info.principal.as_ref(), info.from, false))
    }

    fn take_for(&self, client: PageClient) -> Result<ExportSlot, Full> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_client = all.get(&client).copied().unwrap_or_default();
        if of_client >= EXPORTS_OF_CLIENT_MAX {
            return Err(Full::OfClient);
        }
        // Guests count among themselves, so that they cannot keep users from exporting.
        let alike = all
            .iter()
            .filter(|(other, _)| discriminant(*other) == discriminant(&client));
        if alike.map(|(_, count)| count).sum::<usize>() >= EXPORTS_MAX {
            return Err(Full::OfAll);
        }
        all.insert(client.clone(), of_client + 1);
        let slots = self.clone();
        Ok(ExportSlot { slots, client })
    }
}

/// A slot that is taken; dropping it frees it.
#[derive(Debug)]
pub struct ExportSlot {
    slots: ExportSlots,
    client: PageClient,
}

impl Slot for ExportSlot {
    fn client(&self) -> &PageClient {
        &self.client
    }
}

impl Drop for ExportSlot {
    fn drop(&mut self) {
        let all = &self.slots.0;
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = all.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.client);
            }
        }
    }
}

/// How fast the client reads an export.
#[derive(Debug, Default)]
pub struct Pace {
    sent: u64,
    /// How long the client has let the server wait.
    waited: Duration,
    since: Option<Instant>,
}

impl Pace {
    /// Called when the server begins to send this many bytes.
    pub fn send(&mut self, bytes: usize) {
        self.sent += bytes as u64;
        self.since = Some(Instant::now());
    }

    /// Called when they are sent. Returns whether the client reads fast enough.
    pub fn is_kept(&mut self) -> bool {
        let last = self.since.take().map(|since| since.elapsed());
        self.waited += last.unwrap_or_default();
        self.waited <= WAIT_MAX + Duration::from_secs(self.sent / RATE_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_half_of_the_slots() {
        let slots = ExportSlots::default();
        let take = |user: &str| slots.take_for(PageClient::User(user.to_owned()));
        let (first, second) = (take("ada").unwrap(), take("ada").unwrap());
        assert_eq!(take("ada").unwrap_err(), Full::OfClient);
        let others = [take("bob").unwrap(), take("cyd").unwrap()];
        assert_eq!(take("dan").unwrap_err(), Full::OfAll);
        let guest = |last: u8| slots.take_for(PageClient::Guest([127, 0, 0, last].into()));
        let guests = [1, 1, 2, 2].map(|last| guest(last).unwrap());
        assert_eq!(guest(2).unwrap_err(), Full::OfClient);
        assert_eq!(guest(3).unwrap_err(), Full::OfAll);
        drop(first);
        let third = take("ada").unwrap();
        drop((second, third, others, guests));
        assert!(slots.0.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn after_30_s_a_client_must_read_16_kib_per_second() {
        for (seconds, is_kept) in [(129, true), (130, true), (131, false)] {
            let mut pace = Pace::default();
            let mut found = pace.is_kept();
            // Bytes for 100 s, in two parts.
            for part in [40, 60] {
                pace.send(part * (16 << 10));
                tokio::time::advance(Duration::from_secs(seconds) / 2).await;
                found &= pace.is_kept();
                // The time in which the server reads the next part does not count.
                tokio::time::advance(Duration::from_secs(1_000)).await;
            }
            assert_eq!(found, is_kept, "{seconds} s");
        }
    }
}
