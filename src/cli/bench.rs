//! `switchyard bench`: measures a server.

use std::net::IpAddr;
use std::time::Duration;

use super::{Outcome, print, print_notice};
use crate::bench::{self, Latency, Limits, Load, Measured};
use crate::config::Bench;

pub async fn run(options: &Bench) -> Outcome {
    let client = options.connection.client()?;
    let server = client.server().to_owned();
    if !options.allow_remote && !is_local(&server) {
        return Err(format!(
            "{server} is not on this machine; a measurement loads it fully. Pass --allow-remote if that is intended"
        )
        .into());
    }
    let load = Load {
        api: options.api,
        namespace: options.namespace.clone(),
        batch: options.batch.into(),
        payload_bytes: usize::try_from(options.payload_bytes)?,
        keep: options.keep,
    };
    load.check()?;
    let limits = Limits {
        connections: options.connections.into(),
        duration: Duration::from_secs(options.seconds.into()),
        jobs: options.jobs,
    };
    if !options.json {
        print_notice(&format!(
            "measuring {server} for {} s, connections: {}; Ctrl-C ends it early",
            options.seconds, options.connections
        ));
    }
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let measured = bench::run(client, load, limits, interrupted).await?;
    let text = match options.json {
        true => format!("{}\n", serde_json::to_string(&measured)?),
        false => table(&measured),
    };
    print(&text);
    Ok(())
}

/// Whether the server's address is a loopback address or `localhost`.
fn is_local(server: &str) -> bool {
    let Ok(uri) = server.parse::<hyper::Uri>() else {
        return false;
    };
    let host = uri.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

fn table(measured: &Measured) -> String {
    let mut text = format!(
        "{} jobs in {:.1} s: {:.0} jobs/s\n\n{:<10}{:>10}{:>10}{:>10}{:>10}\n",
        measured.jobs, measured.seconds, measured.jobs_per_s, "ms", "p50", "p95", "p99", "max"
    );
    for (name, latency) in [
        ("put", measured.put),
        ("claim", measured.claim),
        ("finish", measured.finish),
        ("all three", measured.cycle),
    ] {
        let Latency {
            p50_ms,
            p95_ms,
            p99_ms,
            max_ms,
        } = latency;
        text.push_str(&format!(
            "{name:<10}{p50_ms:>10.2}{p95_ms:>10.2}{p99_ms:>10.2}{max_ms:>10.2}\n"
        ));
    }
    if measured.removed > 0 {
        text.push_str(&format!(
            "\njobs left over and deleted: {}\n",
            measured.removed
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_of_this_machine_are_local() {
        for (server, expected) in [
            ("http://127.0.0.1:3000", true),
            ("http://127.8.0.1", true),
            ("https://[::1]:3000/path", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("http://localhost:3000", true),
            ("http://localhost.example.com", false),
            ("http://10.0.0.1:3000", false),
            ("https://queues.example.com", false),
            ("http://[::2]", false),
        ] {
            assert_eq!(is_local(server), expected, "{server}");
        }
    }
}
