//! Limits how many pages are rendered and compressed at the same time. Both take one to some tens of milliseconds on a
//! thread that also serves all other requests. Without this limit, thousands of connections that each request a page would
//! delay every other request by seconds.
//!
//! A user, or an address without credentials, has a few slots, so that none waits for the slow pages of another. All
//! addresses together have limits, too: one for the pages of guests, and one for the sign-in page and errors, so that
//! guests cannot prevent a sign-in.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::Dashboard;
use super::authentication::Principal;
use super::client_slots::{ClientSlots, CountedRequest};
use super::compression::{Slot, with_slot};
use super::guard::is_safe;
use crate::blocking::poll_blocking_if_many;
use crate::memory::holding;
use crate::request::{ClientAddress, network_of};
use crate::ui::access::is_read_function;
use crate::ui::urls::LOGIN;

/// Pages that are rendered for one user, or one address without credentials, at the same time.
const OWN_MAX: usize = 8;

/// Requests of one user or address that have or await a slot.
const OWN_REQUESTS_MAX: usize = 100;

/// Maximum number of pages that are rendered for all guests at the same time. If none of them waits for the database,
/// they delay the page of a user by up to 0.2 s.
const GUESTS_MAX: usize = 16;

/// Sign-in and error pages that are rendered for clients without access at the same time.
const SIGN_IN_MAX: usize = 8;

/// How long a request waits for a slot.
const WAIT_MAX: Duration = Duration::from_secs(4);

/// Whom a page or an export is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PageClient {
    User(String),
    /// Without credentials. For IPv6, a network.
    Guest(IpAddr),
    /// The sign-in page, or an error, for a client without access.
    SignIn(IpAddr),
}

impl PageClient {
    /// The client of a request. `is_sign_in`: the request is for the sign-in page.
    pub fn of(user: Option<&Principal>, from: Option<IpAddr>, is_sign_in: bool) -> PageClient {
        match user {
            Some(user) if user.has_credentials() => PageClient::User(user.identity.name.clone()),
            Some(_) if !is_sign_in => PageClient::Guest(network_of(from)),
            _ => PageClient::SignIn(network_of(from)),
        }
    }
}

/// The pages that are being rendered, and the requests that wait.
#[derive(Clone, Debug)]
pub struct PageSlots {
    clients: ClientSlots<PageClient>,
    guests: Arc<Semaphore>,
    sign_in: Arc<Semaphore>,
}

impl Default for PageSlots {
    fn default() -> Self {
        PageSlots {
            clients: ClientSlots::new(OWN_MAX, OWN_REQUESTS_MAX),
            guests: Arc::new(Semaphore::new(GUESTS_MAX)),
            sign_in: Arc::new(Semaphore::new(SIGN_IN_MAX)),
        }
    }
}

impl PageSlots {
    /// Waits until a page may be rendered. `is_sign_in`: it is the sign-in page.
    ///
    /// # Errors
    /// The response, if the wait takes too long, or if the client has too many requests.
    pub async fn take(
        &self,
        user: Option<&Principal>,
        from: Option<IpAddr>,
        is_sign_in: bool,
    ) -> Result<PageSlot, Response> {
        let client = PageClient::of(user, from, is_sign_in);
        let common = match client {
            PageClient::User(_) => None,
            PageClient::Guest(_) => Some(&self.guests),
            PageClient::SignIn(_) => Some(&self.sign_in),
        };
        let request = self.clients.begin(client).ok_or_else(busy)?;
        let waits = async {
            let own = request.slot().await;
            let common = match common {
                Some(common) => Arc::clone(common).acquire_owned().await.ok(),
                None => None,
            };
            (own, common)
        };
        let permits = timeout(WAIT_MAX, waits).await.map_err(|_| busy())?;
        // Otherwise this thread would render the pages of all connections before it runs other requests.
        yield_now().await;
        let permits = Arc::new(permits);
        Ok(PageSlot { permits, request })
    }
}

/// Permits rendering and compressing a page until it is dropped, and the reads of the page have ended.
#[must_use]
pub struct PageSlot {
    permits: Arc<(Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>)>,
    request: CountedRequest<PageClient>,
}

impl Slot for PageSlot {
    fn client(&self) -> &PageClient {
        &self.request.client
    }
}

/// Seconds after which a client that had to wait too long should try again.
pub const RETRY_AFTER: &str = "5";

/// The response if a client must wait too long.
pub fn busy() -> Response {
    let why = "Too many pages are requested at the same time. Try again in a moment.\n";
    let later = [(header::RETRY_AFTER, RETRY_AFTER)];
    (StatusCode::SERVICE_UNAVAILABLE, later, why).into_response()
}

/// Takes a slot for each request that only reads: for a page, or for a server function, whose form has already arrived.
/// For other forms, the slot is taken when the response is rendered, because a form can arrive slowly and must not
/// occupy a slot meanwhile.
pub async fn take_slots(
    State(dashboard): State<Dashboard>,
    request: Request,
    next: Next,
) -> Response {
    if !is_safe(request.method()) && !is_read_function(request.uri().path()) {
        return next.run(request).await;
    }
    let (user, from) = (
        request.extensions().get::<Principal>().cloned(),
        ClientAddress::of(request.extensions()),
    );
    let is_sign_in = request.uri().path() == LOGIN;
    match dashboard
        .page_slots
        .take(user.as_ref(), from, is_sign_in)
        .await
    {
        Ok(slot) => {
            let page = holding(Arc::clone(&slot.permits), next.run(request));
            // Many pages list or count all queues, and each step of them then takes milliseconds.
            let queues = dashboard.engine.known_queues().count();
            let response = poll_blocking_if_many(queues, page).await;
            with_slot(response, slot)
        }
        Err(busy) => busy,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::auth::AuthMethod;
    use crate::auth::{Identity, Role};

    fn principal(name: &str, method: AuthMethod) -> Principal {
        let (name, role) = (name.to_owned(), Role::Viewer);
        Principal {
            identity: Identity { name, role },
            method,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_pages_of_one_client_delay_no_other() {
        let slots = PageSlots::default();
        let guest = principal("anybody", AuthMethod::Unauthenticated);
        let [one, other] = [1, 2].map(|last| Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))));
        let mut held = Vec::new();
        for _ in 0..OWN_MAX {
            held.push(slots.take(Some(&guest), one, false).await.unwrap());
        }
        let late = slots.take(Some(&guest), one, false).await;
        assert_eq!(
            late.err().unwrap().status(),
            StatusCode::SERVICE_UNAVAILABLE
        );
        for user in ["ada", "olga"] {
            let user = principal(user, AuthMethod::Key);
            held.push(slots.take(Some(&user), one, false).await.unwrap());
        }
        held.push(slots.take(Some(&guest), other, false).await.unwrap());
        held.push(slots.take(Some(&guest), one, true).await.unwrap());
        held.push(slots.take(None, one, false).await.unwrap());
        drop(held);
        assert!(slots.take(Some(&guest), one, false).await.is_ok());
    }

    #[tokio::test]
    async fn a_client_with_100_requests_is_refused_at_once() {
        let slots = PageSlots::default();
        let begin = || slots.clients.begin(PageClient::User("ada".to_owned()));
        let begun: Vec<_> = (0..OWN_REQUESTS_MAX).map_while(|_| begin()).collect();
        assert_eq!(begun.len(), OWN_REQUESTS_MAX);
        assert!(begin().is_none());
        let other = slots.clients.begin(PageClient::User("olga".to_owned()));
        assert!(other.is_some());
        drop(begun);
        assert!(begin().is_some());
    }
}
