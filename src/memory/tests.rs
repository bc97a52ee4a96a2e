use super::*;

fn free() -> usize {
    MEMORY.available_permits()
}

#[tokio::test(start_paused = true)]
async fn a_request_keeps_what_its_response_needs_until_that_is_sent() {
    let half = MEMORY_MAX / 2;
    let ((), reserved) = of_request(async {
        reserve(half).await.unwrap();
        reserve(1).await.unwrap();
        assert_eq!(free(), half - 1);
        release();
        assert_eq!(free(), MEMORY_MAX);
        reserve(half).await.unwrap();
    })
    .await;
    let body = vec![0; SMALL_MAX + 1];
    let mut reserved = reserved.for_response(body.len() as u64).await.unwrap();
    assert_eq!(free(), MEMORY_MAX - body.len(), "the rest is released");
    let body = reserved.attach(body.into());
    drop(reserved);
    let (part, rest) = (body.slice(..9), body);
    drop(rest);
    assert!(free() < MEMORY_MAX, "a part is still being sent");
    drop(part);
    assert_eq!(free(), MEMORY_MAX);
}

#[tokio::test(start_paused = true)]
async fn small_responses_reserve_nothing_and_large_ones_wait() {
    let all = MEMORY.try_acquire_many(permits(MEMORY_MAX)).unwrap();
    let small = Reserved::default().for_response(SMALL_MAX as u64).await;
    assert_eq!(small.unwrap().bytes(), 0);
    let large = || Reserved::default().for_response(WAITING_MAX as u64);
    let (one, other) = tokio::join!(large(), large());
    // The first one waits in vain. The second one does not wait, because the first one occupies all of the memory
    // for waiting responses.
    assert!(one.is_err() && other.is_err());
    let outcome = of_request(reserve(1)).await.0;
    assert_eq!(outcome, Err(Busy));
    let (waiting, ()) = tokio::join!(large(), async { drop(all) });
    assert_eq!(waiting.unwrap().bytes(), WAITING_MAX);
    assert_eq!(free(), MEMORY_MAX);
}

#[tokio::test(start_paused = true)]
async fn a_complete_response_reserves_its_size_or_fails_if_no_memory_is_free() {
    let large = (SMALL_MAX + 1) as u64;
    let (fitted, reserved) = of_request(fit_response(large)).await;
    assert_eq!((fitted, reserved.bytes()), (Ok(()), SMALL_MAX + 1));
    drop(reserved);
    let all = MEMORY.try_acquire_many(permits(MEMORY_MAX)).unwrap();
    let (fitted, reserved) = of_request(fit_response(large)).await;
    assert_eq!((fitted, reserved.bytes()), (Err(Busy), 0));
    let (fitted, _) = of_request(fit_response(SMALL_MAX as u64)).await;
    assert_eq!(fitted, Ok(()));
    drop(all);
    assert_eq!(free(), MEMORY_MAX);
}

#[tokio::test(start_paused = true)]
async fn memory_for_something_that_grows_is_reserved_in_steps() {
    let mut growing = Reserved::default();
    for (bytes, reserved) in [
        (0, 0),
        (1, GROWTH_MIN),
        (GROWTH_MIN, GROWTH_MIN),
        (GROWTH_MIN + 1, 2 * GROWTH_MIN),
        (9 * GROWTH_MIN, 9 * GROWTH_MIN),
    ] {
        growing.grow_to(bytes).await.unwrap();
        assert_eq!(growing.bytes(), reserved, "{bytes}");
        assert_eq!(free(), MEMORY_MAX - reserved);
    }
    assert_eq!(growing.grow_to(MEMORY_MAX + 1).await, Err(Busy));
    drop(growing);
    assert_eq!(free(), MEMORY_MAX);
}

#[tokio::test]
async fn what_a_read_holds_is_released_when_the_read_has_ended() {
    let (outer, inner) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(1)));
    let permit = |of: &Arc<Semaphore>| Arc::clone(of).try_acquire_owned().unwrap();
    let read = of_request(holding(permit(&outer), async {
        reserve(1_000).await.unwrap();
        holding(permit(&inner), async { hold_until_done() }).await
    }));
    let (read, reserved) = read.await;
    drop(reserved);
    assert_eq!(
        (outer.available_permits(), inner.available_permits()),
        (0, 0)
    );
    drop(read);
    assert_eq!(
        (outer.available_permits(), inner.available_permits()),
        (1, 1)
    );

    let request = of_request(async {
        reserve(1_000).await.unwrap();
        hold_until_done()
    });
    let (read, reserved) = request.await;
    assert_eq!(reserved.bytes(), 0);
    assert_eq!(free(), MEMORY_MAX - 1_000, "the read is not over");
    drop(read);
    assert_eq!(free(), MEMORY_MAX);

    let mut request = Box::pin(of_request(async {
        reserve(1_000).await.unwrap();
        let read = hold_until_done();
        tokio::spawn(async move {
            tokio::task::yield_now().await;
            drop(read);
        });
        std::future::pending::<()>().await;
    }));
    assert!(futures::poll!(&mut request).is_pending());
    drop(request);
    assert_eq!(free(), MEMORY_MAX - 1_000, "the read is not over");
    while free() < MEMORY_MAX {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn memory_is_scarce_while_a_request_waits_for_longer_than_half_a_second() {
    let all = MEMORY.try_acquire_many(permits(MEMORY_MAX)).unwrap();
    let waiting = tokio::spawn(reserve_until_dropped(1));
    tokio::time::sleep(SCARCE_AFTER / 2).await;
    assert!(!is_scarce());
    tokio::time::sleep(SCARCE_AFTER).await;
    assert!(is_scarce());
    drop(all);
    assert!(waiting.await.unwrap().is_ok());
    assert!(!is_scarce());
}

#[tokio::test]
async fn a_task_without_a_request_reserves_nothing() {
    assert_eq!(reserve(MEMORY_MAX + 1).await, Ok(()));
    assert_eq!(fit_response(MEMORY_MAX as u64).await, Ok(()));
    assert_eq!(free(), MEMORY_MAX);
}
