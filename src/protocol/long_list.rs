//! Lists of all queues, or of all options. They have no pages, so one can have 100,000 entries: its memory is reserved
//! before it is built, and few are built at once.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::engine::{Config, Engine, Error};
use crate::memory::{SMALL_MAX, reserve};

/// Maximum number of lists that are built at once.
const AT_ONCE: usize = 2;

static PERMITS: Semaphore = Semaphore::const_new(AT_ONCE);

/// How long a list waits for others.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Bytes that an option occupies while a list is built, in addition to its name and value.
const OPTION_BYTES: usize = 128;

/// The name and the value of an option exist as a copy and as text, whose buffer doubles when it grows.
const OPTION_COPIES: usize = 3;

/// The permit to build a list, kept until its text exists and its reads have ended. Short lists need none.
pub type ListPermit = Option<SemaphorePermit<'static>>;

/// Waits for the permit to build a list of all queues, and reserves its memory until the response has been sent.
///
/// # Errors
/// [`Error::Busy`].
pub async fn of_queues(engine: &Engine) -> Result<ListPermit, Error> {
    permit(engine.size_of_queues()).await
}

/// Like [`of_queues`], for all options.
///
/// # Errors
/// [`Error::Busy`].
pub async fn of_options(config: &Config) -> Result<ListPermit, Error> {
    let (count, bytes) = config.count_set();
    permit(count * OPTION_BYTES + bytes * OPTION_COPIES).await
}

async fn permit(bytes: usize) -> Result<ListPermit, Error> {
    if bytes <= SMALL_MAX {
        return Ok(None);
    }
    // The permit first: a list that waits must not keep memory from others.
    let permit = wait_for(&PERMITS).await?;
    reserve(bytes).await?;
    Ok(Some(permit))
}

/// Waits for a permit to build a list, for at most 2 s.
///
/// # Errors
/// [`Error::Busy`].
pub async fn wait_for(permits: &'static Semaphore) -> Result<SemaphorePermit<'static>, Error> {
    let permit = timeout(WAIT_MAX, permits.acquire()).await;
    permit.ok().and_then(Result::ok).ok_or(Error::Busy)
}

#[cfg(test)]
pub mod tests {
    use axum::body::Body;
    use axum::extract::Request;
    use tokio_util::sync::CancellationToken;
    use tower::ServiceExt;

    use super::*;
    use crate::engine::{QueueKey, engine_without_tasks};
    use crate::memory::{MEMORY_MAX, of_request, reserve_until_dropped, reserved};
    use crate::metrics::Gauge;
    use crate::protocol::jobq;
    use crate::protocol::qless::{Api, router};

    /// An engine whose lists of queues and options need a permit.
    pub async fn engine_with_long_lists() -> Engine {
        let engine = engine_without_tasks().await;
        for n in 0..100 {
            let queue = QueueKey::qless(n.to_string());
            engine.pause(queue, true, None).await.unwrap();
            let value = "1".repeat(1_000);
            let option = format!("option-{n}");
            engine.configure(&option, Some(value), None).await.unwrap();
        }
        engine
    }

    #[tokio::test(start_paused = true)]
    async fn two_long_lists_are_built_at_once_and_each_reserves_its_memory_first() {
        assert!(permit(SMALL_MAX).await.unwrap().is_none());
        let bytes = SMALL_MAX + 1;
        let (one, memory) = of_request(permit(bytes)).await;
        assert_eq!(reserved(), bytes);
        let (two, _) = of_request(permit(bytes)).await;
        assert!(one.is_ok() && two.is_ok());
        let (three, nothing) = of_request(permit(bytes)).await;
        assert_eq!(three.err(), Some(Error::Busy));
        assert_eq!(reserved(), bytes, "a list that is refused reserves nothing");
        drop((one, memory, nothing));
        assert!(permit(bytes).await.is_ok());
        assert_eq!(reserved(), 0);
    }

    #[tokio::test]
    async fn long_lists_over_http_reserve_their_memory_before_they_are_built() {
        let engine = engine_with_long_lists().await;
        let routes = router(Api {
            engine: engine.clone(),
            allow_flush: false,
            stop: CancellationToken::new(),
            streams: Gauge::default(),
        });
        let body_max = 1 << 20;
        let routes = routes.merge(jobq::router(jobq::Api { engine, body_max }));
        let status = async |path: &str| {
            let request = Request::get(format!("{path}?host=w"));
            let request = request.body(Body::empty()).unwrap();
            let answered = of_request(routes.clone().oneshot(request)).await;
            answered.0.unwrap().status().as_u16()
        };
        let lists = async || {
            tokio::join!(
                status("/queues"),
                status("/config"),
                status("/api/v0/queue")
            )
        };
        let all = reserve_until_dropped(MEMORY_MAX).await.unwrap();
        assert_eq!(lists().await, (503, 503, 503));
        assert_eq!(status("/config/option-1").await, 200);
        drop(all);
        assert_eq!(lists().await, (200, 200, 200));
    }
}
