//! Limits how many pages are rendered at the same time. Rendering takes from one to some ten milliseconds on a thread that
//! also serves all other requests. Without turns, thousands of connections that each request a page would delay every
//! other request by seconds.
//!
//! A user, or an address without credentials, has a few places, so that none waits for the slow pages of another. All
//! addresses together have limits, too: one for the pages of guests, and one for the login page and errors, so that
//! guests cannot prevent a login.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::Dashboard;
use super::authentication::{LOGIN, Principal};
use super::guard::is_safe;
use crate::request::{ClientAddress, network};

/// Pages that are rendered for one user, or one address without credentials, at the same time.
const OWN_MAX: usize = 8;

/// Requests of one user or address that have or await a turn.
const OWN_REQUESTS_MAX: usize = 100;

/// Pages that are rendered for all guests at the same time, most of which wait for the database.
const GUESTS_MAX: usize = 64;

/// Login and error pages that are rendered for clients without access at the same time.
const LOGIN_MAX: usize = 8;

/// How long a request waits for its turn.
const WAIT_MAX: Duration = Duration::from_secs(4);

/// Whom a page is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Client {
    User(String),
    /// Without credentials. For IPv6, a network.
    Guest(IpAddr),
    /// The login page, or an error, for a client without access.
    Login(IpAddr),
}

/// The requests of one client.
#[derive(Debug)]
struct Requests {
    places: Arc<Semaphore>,
    count: usize,
}

/// The pages that are being rendered, and the requests that wait.
#[derive(Clone, Debug)]
pub struct PageTurns {
    clients: Arc<Mutex<HashMap<Client, Requests>>>,
    guests: Arc<Semaphore>,
    login: Arc<Semaphore>,
}

impl Default for PageTurns {
    fn default() -> Self {
        PageTurns {
            clients: Arc::default(),
            guests: Arc::new(Semaphore::new(GUESTS_MAX)),
            login: Arc::new(Semaphore::new(LOGIN_MAX)),
        }
    }
}

impl PageTurns {
    /// Waits until a page may be rendered. `is_login`: it is the login page.
    ///
    /// # Errors
    /// The response, if the wait takes too long, or if the client has too many requests.
    pub async fn turn(
        &self,
        user: Option<&Principal>,
        from: Option<IpAddr>,
        is_login: bool,
    ) -> Result<Turn, Response> {
        let known = user.filter(|user| user.has_credentials());
        let from = network(from.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
        let (client, common) = match (known, user) {
            (Some(known), _) => (Client::User(known.identity.name.clone()), None),
            (None, Some(_)) if !is_login => (Client::Guest(from), Some(&self.guests)),
            _ => (Client::Login(from), Some(&self.login)),
        };
        let (request, places) = self.begin(client).ok_or_else(busy)?;
        let waits = async {
            let own = places.acquire_owned().await.ok();
            let common = match common {
                Some(common) => Arc::clone(common).acquire_owned().await.ok(),
                None => None,
            };
            (own, common)
        };
        let places = timeout(WAIT_MAX, waits).await.map_err(|_| busy())?;
        // Otherwise this thread would render the pages of all connections before it runs other requests.
        yield_now().await;
        Ok(Turn(places, request))
    }

    /// Counts a request of the client. `None` if it has too many.
    fn begin(&self, client: Client) -> Option<(CountedRequest, Arc<Semaphore>)> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = clients.entry(client.clone()).or_insert_with(|| Requests {
            places: Arc::new(Semaphore::new(OWN_MAX)),
            count: 0,
        });
        if requests.count >= OWN_REQUESTS_MAX {
            return None;
        }
        requests.count += 1;
        let places = Arc::clone(&requests.places);
        let turns = self.clone();
        Some((CountedRequest { turns, client }, places))
    }
}

/// Counts a request until it is dropped.
#[derive(Debug)]
struct CountedRequest {
    turns: PageTurns,
    client: Client,
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        let mut clients = self
            .turns
            .clients
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(requests) = clients.get_mut(&self.client) {
            requests.count -= 1;
            if requests.count == 0 {
                clients.remove(&self.client);
            }
        }
    }
}

/// Permits rendering until it is dropped.
#[must_use]
#[expect(dead_code, reason = "held until it is dropped")]
pub struct Turn(
    (Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>),
    CountedRequest,
);

fn busy() -> Response {
    let why = "Too many pages are requested at the same time. Try again in a moment.\n";
    let later = [(header::RETRY_AFTER, "5")];
    (StatusCode::SERVICE_UNAVAILABLE, later, why).into_response()
}

/// Makes the requests for pages take turns. Forms do so where their response is rendered: a form can arrive slowly, and
/// must not take the turn of others meanwhile.
pub async fn take_turns(
    State(dashboard): State<Dashboard>,
    request: Request,
    next: Next,
) -> Response {
    if !is_safe(request.method()) {
        return next.run(request).await;
    }
    let (user, from) = (
        request.extensions().get::<Principal>().cloned(),
        ClientAddress::of(request.extensions()),
    );
    let is_login = request.uri().path() == LOGIN;
    match dashboard
        .page_turns
        .turn(user.as_ref(), from, is_login)
        .await
    {
        Ok(_turn) => next.run(request).await,
        Err(busy) => busy,
    }
}

#[cfg(test)]
mod tests {
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
        let turns = PageTurns::default();
        let guest = principal("anybody", AuthMethod::Unauthenticated);
        let [one, other] = [1, 2].map(|last| Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))));
        let mut held = Vec::new();
        for _ in 0..OWN_MAX {
            held.push(turns.turn(Some(&guest), one, false).await.unwrap());
        }
        let late = turns.turn(Some(&guest), one, false).await;
        assert_eq!(
            late.err().unwrap().status(),
            StatusCode::SERVICE_UNAVAILABLE
        );
        for user in ["ada", "olga"] {
            let user = principal(user, AuthMethod::Key);
            held.push(turns.turn(Some(&user), one, false).await.unwrap());
        }
        held.push(turns.turn(Some(&guest), other, false).await.unwrap());
        held.push(turns.turn(Some(&guest), one, true).await.unwrap());
        held.push(turns.turn(None, one, false).await.unwrap());
        drop(held);
        assert!(turns.clients.lock().unwrap().is_empty());
        assert!(turns.turn(Some(&guest), one, false).await.is_ok());
    }

    #[tokio::test]
    async fn a_client_with_100_requests_is_refused_at_once() {
        let turns = PageTurns::default();
        let begin = || turns.begin(Client::User("ada".to_owned()));
        let begun: Vec<_> = (0..OWN_REQUESTS_MAX).map_while(|_| begin()).collect();
        assert_eq!(begun.len(), OWN_REQUESTS_MAX);
        assert!(begin().is_none());
        assert!(turns.begin(Client::User("olga".to_owned())).is_some());
        drop(begun);
        assert!(begin().is_some());
    }
}
