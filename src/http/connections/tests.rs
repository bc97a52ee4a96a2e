//! The number of connections, and their limits on time.

use super::held::{RATE_MIN, READ_MIN};
use super::*;

fn address(last: u8) -> Option<IpAddr> {
    Some(IpAddr::from([192, 0, 2, last]))
}

fn limits(connections: usize, per_address: usize) -> Limits {
    Limits {
        per_address,
        ..Limits::with_connections(connections)
    }
}

fn is_open(connections: &Connections, guard: &ConnectionGuard) -> bool {
    let open = connections.open.lock().unwrap();
    open.all.contains_key(&guard.number)
}

#[tokio::test(start_paused = true)]
async fn at_the_limit_the_longest_waiting_connection_is_closed() {
    let connections = Connections::new(limits(3, 3), Gauge::default());
    let busy = connections.admit(address(1)).unwrap();
    busy.connection.begin_request();
    let first = connections.admit(address(2)).unwrap();
    connections.totals.clock.fetch_add(1, Ordering::Relaxed);
    let second = connections.admit(address(3)).unwrap();
    connections.totals.clock.fetch_add(1, Ordering::Relaxed);
    // Received bytes do not extend the time limit.
    assert!(first.connection.received(1));
    let third = connections.admit(address(4)).unwrap();
    let open = [&busy, &first, &second, &third].map(|it| is_open(&connections, it));
    assert_eq!(open, [true, false, true, true]);
    second.connection.begin_request();
    third.connection.begin_request();
    assert!(connections.admit(address(5)).is_none(), "all are busy");
    third.connection.end_request();
    assert!(connections.admit(address(5)).is_some());
    assert!(!is_open(&connections, &third));
}

#[tokio::test(start_paused = true)]
async fn an_address_at_its_limit_replaces_its_own_connection() {
    let connections = Connections::new(limits(10, 2), Gauge::default());
    let other = connections.admit(address(9)).unwrap();
    connections.totals.clock.fetch_add(1, Ordering::Relaxed);
    let first = connections.admit(address(1)).unwrap();
    let second = connections.admit(address(1)).unwrap();
    second.connection.begin_request();
    let third = connections.admit(address(1)).unwrap();
    assert!(!is_open(&connections, &first) && is_open(&connections, &other));
    third.connection.begin_request();
    assert!(connections.admit(address(1)).is_none());
    let of_proxy: Vec<_> = (0..3).map(|_| connections.admit(None)).collect();
    assert!(of_proxy.iter().all(Option::is_some));
    drop(second);
    let fourth = connections.admit(address(1)).unwrap();
    assert!(is_open(&connections, &fourth));
    drop((other, first, third, fourth, of_proxy));
    let open = connections.open.lock().unwrap();
    assert!(open.all.is_empty() && open.of_address.is_empty());
}

/// Brings a connection into the phase of a limit.
type Prepare = fn(&Connection);

#[tokio::test(start_paused = true)]
async fn each_time_limit_ends_a_connection_in_its_tick() {
    let limits = limits(10, 10);
    let connections = Connections::new(limits, Gauge::default());
    let phases: [(Prepare, u32); 3] = [
        (|_| {}, 30),
        (|connection| connection.end_request(), 60),
        (
            |connection| {
                connection.begin_request();
                connection.stall();
            },
            30,
        ),
    ];
    for (prepare, seconds) in phases {
        let guard = connections.admit(None).unwrap();
        prepare(&guard.connection);
        let is_over_after = |ticks: u32| {
            connections.totals.clock.fetch_add(ticks, Ordering::Relaxed);
            guard.connection.is_over(Ticks::of(&limits))
        };
        // A second has two ticks.
        assert!(!is_over_after(2 * seconds - 1), "{seconds} s");
        assert!(is_over_after(1), "{seconds} s");
        assert!(is_over_after(1), "{seconds} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_must_progress_by_more_than_64_kib_in_30_s() {
    let limits = limits(10, 10);
    let connections = Connections::new(limits, Gauge::default());
    for (bytes, is_slow) in [(1, true), (PROGRESS_MIN, true), (PROGRESS_MIN + 1, false)] {
        let guard = connections.admit(None).unwrap();
        let connection = &guard.connection;
        connection.begin_request();
        for _ in 0..2 {
            connection.stall();
            connections.totals.clock.fetch_add(30, Ordering::Relaxed);
            // In two parts.
            connection.sent(bytes - bytes / 2);
            connection.stall();
            connection.sent(bytes / 2);
            connection.stall();
            connections.totals.clock.fetch_add(30, Ordering::Relaxed);
            if is_slow {
                break;
            }
            connection.sent(bytes);
        }
        let is_over = connection.is_over(Ticks::of(&limits));
        assert_eq!(is_over, is_slow, "{bytes} bytes");
        connection.flushed();
        assert!(!connection.is_over(Ticks::of(&limits)));
    }
}

#[tokio::test(start_paused = true)]
async fn clients_that_do_not_read_make_room_if_no_other_connection_waits() {
    let connections = Connections::new(limits(2, 2), Gauge::default());
    let slow = connections.admit(address(1)).unwrap();
    slow.connection.begin_request();
    slow.connection.stall();
    connections.totals.clock.fetch_add(3, Ordering::Relaxed);
    let busy = connections.admit(address(1)).unwrap();
    busy.connection.begin_request();
    assert!(
        connections.admit(address(2)).is_none(),
        "it may be a fast client"
    );
    connections.totals.clock.fetch_add(1, Ordering::Relaxed);
    let new = connections.admit(address(2)).unwrap();
    let open = [&slow, &busy, &new].map(|it| is_open(&connections, it));
    assert_eq!(open, [false, true, true]);
    busy.connection.stall();
    connections.totals.clock.fetch_add(4, Ordering::Relaxed);
    let newer = connections.admit(address(1)).unwrap();
    let open = [&busy, &new, &newer].map(|it| is_open(&connections, it));
    assert_eq!(
        open,
        [true, false, true],
        "one that waits for a request is closed first"
    );
}

#[tokio::test(start_paused = true)]
async fn headers_share_their_memory_until_their_requests_end() {
    let limits = Limits {
        header_bytes: 100,
        ..limits(10, 10)
    };
    let connections = Connections::new(limits, Gauge::default());
    let [one, other, third] = [1, 2, 3].map(|last| connections.admit(address(last)).unwrap());
    assert!(one.connection.received(SMALL));
    assert!(one.connection.received(60));
    assert!(other.connection.received(SMALL + 40));
    assert!(third.connection.received(SMALL), "a small header");
    assert!(!third.connection.received(1));
    drop(third);
    one.connection.begin_request();
    assert!(one.connection.received(1_000), "a body");
    one.connection.await_body();
    assert!(
        !other.connection.received(1),
        "the complete header still occupies memory"
    );
    one.connection.end_request();
    assert!(other.connection.received(59));
    assert!(one.connection.received(SMALL));
    assert!(!one.connection.received(1), "the next header");
    drop((one, other));
    assert_eq!(connections.totals.headers.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn time_limits_depend_on_the_phase() {
    let connections = Connections::new(limits(10, 10), Gauge::default());
    let guard = connections.admit(address(1)).unwrap();
    let connection = &guard.connection;
    let ticks = Ticks {
        header: 2,
        idle: 4,
        stalled: 3,
    };
    let after = |count: u32| {
        connections.totals.clock.fetch_add(count, Ordering::Relaxed);
        connection.is_over(ticks)
    };
    assert!(!after(1));
    assert!(connection.received(1));
    assert!(after(1), "a header takes two ticks at most");
    connection.begin_request();
    assert!(!after(100), "a response may take any time");
    connection.stall();
    assert!(!after(2));
    assert!(after(1), "unless the client does not take it");
    connection.sent(PROGRESS_MIN + 1);
    connection.end_request();
    assert!(!after(3));
    connection.sent(1);
    assert!(!after(3), "the rest of the response");
    assert!(connection.received(1));
    assert!(!after(1), "a header has begun");
    assert!(after(1));
    connection.end_request();
    assert!(!after(3));
    assert!(after(1));
}

#[tokio::test(start_paused = true)]
async fn large_buffers_are_filled_only_while_all_together_are_below_the_limit() {
    let limits = Limits {
        buffer_bytes: 100 << 10,
        ..limits(10, 10)
    };
    let connections = Connections::new(limits, Gauge::default());
    let [first, second] = [1, 2].map(|last| connections.admit(address(last)).unwrap());
    assert!(first.connection.reads_into(64 << 10));
    assert!(!second.connection.reads_into(64 << 10));
    assert!(!first.connection.reads_into(128 << 10));
    assert!(second.connection.reads_into(SMALL), "small buffers");
    drop(first);
    assert!(second.connection.reads_into(64 << 10));
}

#[tokio::test(start_paused = true)]
async fn encrypted_bytes_are_limited_until_they_are_decrypted() {
    let connections = Connections::new(limits(9, 9), Gauge::default());
    let client = connections.admit(None).unwrap();
    let connection = &client.connection;
    assert!(connection.received_encrypted(encrypted::BYTES_MAX));
    assert!(!connection.received_encrypted(1));
    connection.decrypted();
    assert!(connection.received_encrypted(encrypted::BYTES_MAX));
    let totals = Arc::clone(&connections.totals);
    let large = encrypted::BYTES_MAX - SMALL;
    assert_eq!(totals.encrypted.load(Ordering::Relaxed), large);
    let others = encrypted::TOTAL_MAX - large;
    totals.encrypted.fetch_add(others, Ordering::Relaxed);
    let ticks = Ticks::of(&limits(9, 9));
    let new = connections.admit(None).unwrap();
    assert!(new.connection.received_encrypted(SMALL));
    totals.clock.fetch_add(encrypted::TICKS, Ordering::Relaxed);
    let over = || [connection, &new.connection].map(|it| it.is_over(ticks));
    assert_eq!(over(), [false, false], "all fit");
    assert!(new.connection.received_encrypted(1));
    assert_eq!(over(), [true, false], "the one that has them for long");
    drop((new, client));
    assert_eq!(totals.encrypted.load(Ordering::Relaxed), others);
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_until_the_responses_before_it_are_sent() {
    let connections = Connections::new(limits(9, 9), Gauge::default());
    let client = connections.admit(None).unwrap();
    let connection = &client.connection;
    assert!(connection.is_flushed());
    assert!(!connection.flushed(), "nothing waits");
    connection.stall();
    assert!(!connection.is_flushed());
    // The client reads a part: the request still waits for the rest.
    connection.sent(PROGRESS_MIN + 1);
    assert!(connection.flushed());
    assert!(!connection.flushed(), "it is woken once");
    assert!(connection.is_flushed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_slowly_is_found_by_its_memory_and_its_rate() {
    let connections = Connections::new(limits(9, 9), Gauge::default());
    let client = connections.admit(None).unwrap();
    let connection = &client.connection;
    let pass = |ticks| connections.totals.clock.fetch_add(ticks, Ordering::Relaxed);
    pass(READ_MIN);
    assert_eq!(connection.held_slowly_since(), None, "it holds no memory");
    connection.hold(1 << 20);
    connection.hold(1 << 20);
    pass(READ_MIN - 1);
    assert_eq!(connection.held_slowly_since(), None);
    pass(1);
    assert_eq!(connection.held_slowly_since(), Some(READ_MIN));
    connection.sent(10 * RATE_MIN - 1);
    assert_eq!(connection.held_slowly_since(), Some(READ_MIN));
    connection.sent(1);
    assert_eq!(connection.held_slowly_since(), None);
    pass(1);
    assert_eq!(connection.held_slowly_since(), Some(READ_MIN));
    connection.begin_response(1);
    connection.flushed();
    assert_eq!(
        connection.held_slowly_since(),
        Some(READ_MIN),
        "more follows"
    );
    connection.end_request();
    connection.flushed();
    assert_eq!(
        connection.held_slowly_since(),
        None,
        "it has read everything"
    );
}
