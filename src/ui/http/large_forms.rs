//! Forms with long texts: they are parsed and rendered without delaying other requests, and a page that shows a rejected
//! form again contains only its first 1 MiB.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use axum::response::Response;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task_local;
use tokio::time::timeout;

use super::client_slots::ClientSlots;
use super::forms::busy;
use super::page_slots::PageClient;
use crate::blocking;
use crate::memory;
use crate::ui::actions::input::shortened;
use crate::ui::pages::edit::model::RejectedEdit;
use crate::ui::pages::put::model::RejectedJob;
use crate::ui::pages::records::model::{Conflict, RecordFieldErrors, RecordFormError};

/// Maximum number of large forms that are processed at the same time: those of users, and all others.
const AT_ONCE: usize = 2;

static PROCESSING: Semaphore = Semaphore::const_new(AT_ONCE);

static PROCESSING_OF_OTHERS: Semaphore = Semaphore::const_new(AT_ONCE);

task_local! {
    /// The permit of the large form of this task, until [`end_processing`].
    static PERMIT: Mutex<Option<SemaphorePermit<'static>>>;
}

/// Each client waits only for one of its own large forms, which can wait for a page slot or the database.
static OWN: LazyLock<ClientSlots<PageClient>> =
    LazyLock::new(|| ClientSlots::new(1, OWN_REQUESTS_MAX));

/// Maximum number of large forms of a client that wait or are processed. Each occupies memory that all clients share.
const OWN_REQUESTS_MAX: usize = 8;

/// How long a large form waits until it is processed.
const WAIT_MAX: Duration = Duration::from_secs(4);

/// Maximum size of the text of a rejected form that its page shows, in bytes.
const RETURNED_BYTES_MAX: usize = 1 << 20;

/// Maximum number of characters of an error, which can quote a field.
pub const WHY_CHARS_MAX: usize = 1_000;

/// The note on the page if the form was longer.
const CUT: &str = " The form shows only the first 1 MiB of the text that was sent.";

/// Processes a form of this size: parses it, and renders the response. Each step of a large one takes milliseconds, so
/// meanwhile the runtime moves the other tasks of the thread to another thread.
pub async fn process(
    bytes: usize,
    client: PageClient,
    response: impl Future<Output = Response>,
) -> Response {
    if bytes <= memory::SMALL_MAX {
        return response.await;
    }
    let processing = match client {
        PageClient::User(_) => &PROCESSING,
        PageClient::Guest(_) | PageClient::SignIn(_) => &PROCESSING_OF_OTHERS,
    };
    let Some(request) = OWN.begin(client) else {
        return busy();
    };
    let waiting = timeout(WAIT_MAX, async {
        (request.slot().await, processing.acquire().await)
    });
    let Ok((_own, permit)) = waiting.await else {
        return busy();
    };
    let permit = Mutex::new(permit.ok());
    PERMIT
        .scope(permit, blocking::poll_blocking(response))
        .await
}

/// Lets the form of another client begin, because that of this task waits for a slot of its page. The slot then limits
/// how many pages are rendered. Does nothing in a task without a large form.
pub fn end_processing() {
    let permit = PERMIT.try_with(|permit| {
        let mut permit = permit.lock().unwrap_or_else(PoisonError::into_inner);
        permit.take()
    });
    drop(permit);
}

/// A rejected form that its page shows again.
pub trait Rejected: Clone + Send + Sync + 'static {
    /// Limits the text that the page shows, and adds a note to the error if it shows only the beginning.
    #[must_use]
    fn limited(self) -> Self;
}

impl Rejected for RejectedJob {
    fn limited(self) -> Self {
        let RejectedJob { mut typed, why } = self;
        let is_cut = cut([
            &mut typed.queue,
            &mut typed.id,
            &mut typed.klass,
            &mut typed.priority,
            &mut typed.retries,
            &mut typed.delay,
            &mut typed.tags,
            &mut typed.depends,
            &mut typed.data,
        ]);
        let why = with_note(&why, is_cut);
        RejectedJob { typed, why }
    }
}

impl Rejected for RejectedEdit {
    fn limited(self) -> Self {
        let RejectedEdit { mut typed, why } = self;
        let fields = [
            &mut typed.id,
            &mut typed.state,
            &mut typed.since,
            &mut typed.delay,
        ];
        let is_cut = cut(fields.into_iter().chain(&mut typed.data));
        let why = with_note(&why, is_cut);
        RejectedEdit { typed, why }
    }
}

impl Rejected for RecordFormError {
    fn limited(self) -> Self {
        match self {
            RecordFormError::Create(mut typed, wrong) => {
                let is_cut = cut([&mut typed.state, &mut typed.payload]);
                let RecordFieldErrors { payload, state } = wrong;
                let of_state = is_cut && payload.is_none();
                let wrong = RecordFieldErrors {
                    payload: payload.map(|why| with_note(&why, is_cut)),
                    state: state.map(|why| with_note(&why, of_state)),
                };
                RecordFormError::Create(typed, wrong)
            }
            RecordFormError::Advance {
                mut old,
                mut new,
                why,
            } => {
                let is_cut = cut([&mut old, &mut new]);
                let why = with_note(&why, is_cut);
                RecordFormError::Advance { old, new, why }
            }
            RecordFormError::Conflict(Conflict {
                mut shown,
                mut now,
                mut wanted,
            }) => match cut([&mut shown, &mut now, &mut wanted]) {
                false => RecordFormError::Conflict(Conflict { shown, now, wanted }),
                // The page could not offer to set the state anyway: its form would send only the beginnings.
                true => RecordFormError::Advance {
                    old: shown,
                    new: wanted,
                    why: with_note("It has changed since you loaded the page.", true),
                },
            },
            RecordFormError::Append { mut event, why } => {
                let is_cut = cut([&mut event]);
                let why = with_note(&why, is_cut);
                RecordFormError::Append { event, why }
            }
        }
    }
}

fn with_note(why: &str, is_cut: bool) -> String {
    let why = shortened(why, WHY_CHARS_MAX);
    why + if is_cut { CUT } else { "" }
}

/// Cuts the fields to [`RETURNED_BYTES_MAX`] together. Returns whether they were longer.
fn cut<'a>(fields: impl IntoIterator<Item = &'a mut String>) -> bool {
    let (mut left, mut is_cut) = (RETURNED_BYTES_MAX, false);
    for field in fields {
        if field.len() > left {
            field.truncate(field.floor_char_boundary(left));
            is_cut = true;
        }
        left -= field.len();
    }
    is_cut
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;

    use axum::http::StatusCode;
    use futures::FutureExt;
    use tokio::sync::Notify;

    use super::*;
    use crate::ui::pages::put::model::NewJob;

    #[test]
    fn a_rejected_form_shows_up_to_1_mib_and_says_so() {
        for (bytes, shown, is_cut) in [
            (RETURNED_BYTES_MAX - 5, RETURNED_BYTES_MAX - 5, false),
            (RETURNED_BYTES_MAX - 4, RETURNED_BYTES_MAX - 4, false),
            (RETURNED_BYTES_MAX - 3, RETURNED_BYTES_MAX - 4, true),
            (RETURNED_BYTES_MAX * 7, RETURNED_BYTES_MAX - 4, true),
        ] {
            let typed = NewJob {
                queue: "work".to_owned(),
                data: "<".repeat(bytes),
                ..NewJob::default()
            };
            let why = "Why.".to_owned();
            let limited = RejectedJob { typed, why }.limited();
            assert_eq!(limited.typed.queue, "work");
            assert_eq!(limited.typed.data.len(), shown);
            let why = if is_cut {
                format!("Why.{CUT}")
            } else {
                "Why.".to_owned()
            };
            assert_eq!(limited.why, why);
        }
    }

    #[tokio::test]
    async fn a_client_with_8_large_forms_is_refused_at_once() {
        let form = |user: &str| {
            let client = PageClient::User(user.to_owned());
            Box::pin(process(memory::SMALL_MAX + 1, client, pending()))
        };
        let mut begun: Vec<_> = (0..OWN_REQUESTS_MAX).map(|_| form("ada")).collect();
        for form in &mut begun {
            assert!(form.now_or_never().is_none());
        }
        let refused = form("ada").now_or_never().expect("it does not wait");
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(form("olga").now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_form_that_waits_for_its_page_lets_another_one_begin() {
        let waits = Arc::new(Notify::new());
        let form = |host: u8| {
            let client = PageClient::Guest(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)));
            let waits = Arc::clone(&waits);
            let response = async move {
                end_processing();
                waits.notify_one();
                pending::<Response>().await
            };
            Box::pin(process(memory::SMALL_MAX + 1, client, response))
        };
        let mut begun = Vec::new();
        for host in 0..8 {
            let mut form = form(host);
            tokio::select! {
                _ = &mut form => panic!("form {host} was refused"),
                () = waits.notified() => {}
            }
            begun.push(form);
        }
        assert!(begun.len() > AT_ONCE);
    }

    #[test]
    fn characters_are_not_cut() {
        let mut text = "é".repeat(RETURNED_BYTES_MAX);
        let mut rest = "rest".to_owned();
        text.insert(0, 'e');
        assert!(cut([&mut text, &mut rest]));
        assert_eq!((text.len(), &*rest), (RETURNED_BYTES_MAX - 1, "r"));
    }

    #[test]
    fn a_conflict_of_long_states_cannot_be_overridden() {
        let state = "1".repeat(RETURNED_BYTES_MAX / 3);
        let conflict = |now: &str| {
            let conflict = Conflict {
                shown: state.clone(),
                now: now.to_owned(),
                wanted: state.clone(),
            };
            RecordFormError::Conflict(conflict).limited()
        };
        assert!(matches!(conflict(&state), RecordFormError::Conflict(_)));
        let long = format!("{state}22");
        let limited = conflict(&long);
        assert!(matches!(&limited, RecordFormError::Advance { why, .. } if why.ends_with(CUT)));
    }
}
