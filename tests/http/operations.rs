//! Operations, started like in a browser without JavaScript: with forms and pages.

use std::time::Duration;

use reqwest::Method;
use reqwest::redirect::Policy;
use serde_json::json;
use switchyard::engine::{Engine, EngineSettings, EventKind, SearchLimits};
use switchyard::search::Search;
use tempfile::TempDir;

use crate::support::{HOSTILE_NAMES, Server, database, escape, eventually};

/// A longer wait is a hang.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A user with a browser.
struct Person<'a> {
    server: &'a Server,
    http: reqwest::Client,
}

/// A form of a page.
#[derive(Debug)]
struct Form {
    action: String,
    fields: Vec<(String, String)>,
}

/// The redirect after a form.
struct Redirect {
    to: String,
    flash: String,
}

impl Person<'_> {
    fn at(server: &Server) -> Person<'_> {
        let http = reqwest::Client::builder();
        let http = http.no_proxy().redirect(Policy::none()).build().unwrap();
        Person { server, http }
    }

    async fn page(&self, path: &str) -> String {
        let url = format!("http://{}{path}", self.server.address);
        let response = self.http.get(url).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.text().await.unwrap()
    }

    /// Posts a form; `typed` replaces fields of the same names.
    async fn send(&self, form: &Form, typed: &[(&str, &str)]) -> Redirect {
        let mut fields = form.fields.clone();
        fields.retain(|(name, _)| !typed.iter().any(|(other, _)| name == other));
        let typed = typed.iter();
        fields.extend(typed.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let pairs = fields.iter();
        let pairs: Vec<String> = pairs
            .map(|(name, value)| format!("{}={}", escape(name), escape(value)))
            .collect();
        let url = format!("http://{}{}", self.server.address, form.action);
        let request = self.http.request(Method::POST, url);
        let request = request
            .header("content-type", "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin");
        let response = request.body(pairs.join("&")).send().await.unwrap();
        assert_eq!(response.status(), 303, "{}", response.text().await.unwrap());
        let header = |name| response.headers()[name].to_str().unwrap().to_owned();
        let cookie = header("set-cookie");
        let value = cookie.split(['=', ';']).nth(1).unwrap().to_owned();
        Redirect {
            to: header("location"),
            flash: percent_decoded(&value),
        }
    }

    /// Starts an operation. Returns the address of its page.
    async fn ask(&self, confirm: &str, typed: &[(&str, &str)]) -> String {
        let page = self.page(confirm).await;
        let led = self.send(&form(&page, "operate"), typed).await;
        assert!(led.to.starts_with("/ui/operations/"), "{}", led.flash);
        led.to
    }

    /// Waits until the page of an operation contains `says`, and returns the number of a fact.
    async fn wait_for_fact(&self, path: &str, says: &str, fact: &str) -> i64 {
        let found = std::cell::Cell::new(None);
        eventually(&format!("the page says {says}"), async || {
            let page = self.page(path).await;
            found.set(page.contains(says).then(|| number(&page, fact)));
            found.get().is_some()
        })
        .await;
        found.get().expect("a number")
    }

    async fn done(&self, path: &str) -> i64 {
        self.wait_for_fact(path, "chip text-complete", "Applied")
            .await
    }

    async fn found(&self, q: &str) -> bool {
        let page = self.page(&format!("/ui/jobs?q={}", escape(q))).await;
        !page.contains("No matching jobs.")
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
        } else {
            byte
        });
    }
    String::from_utf8(bytes).unwrap()
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    let value = rest.split('"').next()?;
    let value = value.replace("&quot;", "\"").replace("&lt;", "<");
    Some(value.replace("&gt;", ">").replace("&amp;", "&"))
}

/// The form of the page whose address contains this word.
#[track_caller]
fn form(page: &str, word: &str) -> Form {
    let forms = page.split("<form").skip(1);
    let forms = forms.map(|form| form.split("</form>").next().unwrap());
    let found = forms.map(|form| {
        let action = attribute(form, "action").unwrap();
        let inputs = form.split("<input").skip(1);
        let inputs = inputs.map(|input| input.split('>').next().unwrap());
        let field = |input: &str| Some((attribute(input, "name")?, attribute(input, "value")?));
        Form {
            action,
            fields: inputs.filter_map(field).collect(),
        }
    });
    let mut found = found.filter(|form| form.action.contains(word));
    found.next().unwrap_or_else(|| panic!("no form of {word}"))
}

/// The number of a fact on a page.
#[track_caller]
fn number(page: &str, fact: &str) -> i64 {
    let (_, rest) = page.split_once(&format!("<dt>{fact}</dt>")).unwrap();
    let value = rest
        .split("<dd>")
        .nth(1)
        .unwrap()
        .split('<')
        .next()
        .unwrap();
    value.replace(',', "").parse().unwrap()
}

async fn add_many(server: &Server, queue: &str, count: usize) {
    for from in (0..count).step_by(1_000) {
        let ids = from..count.min(from + 1_000);
        let jobs: Vec<_> = ids
            .map(|i| json!({"id": format!("{queue}-{i:05}"), "meta": {}}))
            .collect();
        let path = format!("/add/{queue}");
        server.client().post(&path, json!(jobs)).await.ok();
    }
}

#[tokio::test]
async fn an_operation_changes_the_counted_jobs() {
    let server = Server::with(&[]);
    let person = Person::at(&server);
    add_many(&server, "mail", 3).await;
    add_many(&server, "other", 2).await;
    let bar = person.page("/ui/jobs?q=queue%3Amail").await;
    assert!(bar.contains("all 3 matching"));
    let page = person
        .page("/ui/confirm?do=tag&of=all&q=queue%3Amail")
        .await;
    assert!(page.contains("Tag 3 jobs?"), "{page}");
    for id in ["mail-00000", "mail-00001", "mail-00002"] {
        assert!(page.contains(id), "{id} is a sample");
    }
    let led = person
        .send(&form(&page, "operate"), &[("arg", " vip ")])
        .await;
    assert_eq!(led.flash, "done.Operation started.");
    assert_eq!(person.done(&led.to).await, 3);
    assert!(person.found("tag:vip queue:mail").await && !person.found("tag:vip queue:other").await);
    // By number, like the checkboxes of the list.
    let list = person.page("/ui/jobs?q=mail-00001").await;
    let boxes = list
        .split("<input")
        .filter(|input| input.contains("name=\"job\""));
    let number = boxes
        .filter_map(|input| attribute(input, "value"))
        .next()
        .unwrap();
    let ask = format!("/ui/confirm?do=cancel&of=selected&job={number}&job={number}&job=x");
    let path = person.ask(&ask, &[]).await;
    assert_eq!(person.done(&path).await, 1);
    assert!(!person.found("mail-00001").await);
    let page = person.page(&path).await;
    assert!(page.contains("Cancel or delete 1 job"), "{page}");
    let led = person.send(&form(&page, "undo"), &[]).await;
    assert_eq!(led.to, path);
    person.wait_for_fact(&path, "restored", "Restored").await;
    let back = person.wait_for_fact(&path, ">undone<", "Restored").await;
    assert_eq!(back, 1);
    assert!(person.found("mail-00001 tag:vip").await);
    let list = person.page("/ui/operations").await;
    assert!(list.contains("Tag 3 jobs: vip") && list.contains(&path));
    server.stop().await;
}

#[tokio::test]
async fn every_list_of_jobs_can_be_selected_by_operators_only() {
    let keys = "operator:ada:secret-of-ada-0001,viewer:bob:secret-of-bob-0001";
    let server = Server::with(&["--ui-key", keys]);
    let item = json!({"id": "a", "meta": {}, "tags": ["vip"]});
    server.client().add("mail", item).await;
    server.client().post("/track", json!("a")).await.ok();
    let page = async |path: &str, user: &str| {
        let url = format!("http://{}{path}", server.address);
        let request = server.http.get(url).header("accept", "text/html");
        let secret = format!("secret-of-{user}-0001");
        let response = request.basic_auth(user, Some(secret)).send().await.unwrap();
        response.text().await.unwrap()
    };
    for list in [
        "/ui/queues/mail",
        "/ui/tags/vip",
        "/ui/tracked",
        "/ui/jobs?q=a",
    ] {
        let operator = page(list, "ada").await;
        assert!(operator.contains("id=\"bulk\""), "{list}");
        assert!(operator.contains("aria-label=\"Select job a\""), "{list}");
        assert!(operator.contains("formaction=\"/ui/jobs.csv\""), "{list}");
        let viewer = page(list, "bob").await;
        assert!(!viewer.contains("type=\"checkbox\""), "{list}");
        // The links to the exports are for all.
        assert!(viewer.contains("/ui/jobs.csv?q="), "{list}");
    }
    server.stop().await;
}

#[tokio::test]
async fn large_operations_require_typing_the_number() {
    let server = Server::with(&[]);
    let person = Person::at(&server);
    add_many(&server, "q", 1_001).await;
    let ask = "/ui/confirm?do=move&of=all&q=queue%3Aq&arg=there";
    let question = person.page(ask).await;
    assert!(question.contains("Type 1,001 to confirm"));
    for typed in ["", "1000", "all of \"them\""] {
        let led = person
            .send(&form(&question, "operate"), &[("typed", typed)])
            .await;
        assert!(
            led.flash
                .starts_with("refused.The number you typed does not match"),
            "{}",
            led.flash
        );
        // The user's input is kept.
        let again = form(&person.page(&led.to).await, "operate");
        let field = |name: &str| {
            again
                .fields
                .iter()
                .find(|(it, _)| it == name)
                .unwrap()
                .1
                .clone()
        };
        assert_eq!(
            (field("typed").as_str(), field("arg").as_str()),
            (typed, "there")
        );
    }
    // A form whose count is outdated.
    let fields = [("typed", "2"), ("counted", "2")];
    let led = person.send(&form(&question, "operate"), &fields).await;
    assert!(
        led.flash.contains("more than twice the number"),
        "{}",
        led.flash
    );
    for (arg, why) in [
        ("", "the queue name must have"),
        (&*"x".repeat(256), "the queue name must have"),
    ] {
        let fields = [("typed", "1001"), ("arg", arg)];
        let led = person.send(&form(&question, "operate"), &fields).await;
        assert!(led.flash.to_lowercase().contains(why), "{}", led.flash);
        assert!(
            led.to.starts_with("/ui/confirm?do=move&of=all&q=queue%3Aq"),
            "{}",
            led.to
        );
    }
    let none = person.page("/ui/operations").await;
    assert!(none.contains("No operations yet."));
    let path = person.ask(ask, &[("typed", " 1,001 ")]).await;
    assert_eq!(person.done(&path).await, 1_001);
    server.stop().await;
}

#[tokio::test]
async fn invalid_operations_are_rejected_with_a_reason() {
    let server = Server::with(&[]);
    let person = Person::at(&server);
    add_many(&server, "q", 1).await;
    for (query, says) in [
        ("do=retry", "No jobs are selected."),
        ("do=retry&of=selected&job=x", "No jobs are selected."),
        ("do=retry&job=999999", "The selected jobs no longer exist."),
        ("do=retry&of=all&q=nothing", "No jobs match the search."),
        (
            "do=retry&of=all&q=stat:x",
            "The search is invalid: column 1",
        ),
        ("do=explode&of=all", "No action was given."),
        ("", "No action was given."),
        (
            "do=retry&of=all",
            "This action applies to none of these jobs.",
        ),
    ] {
        let page = person.page(&format!("/ui/confirm?{query}")).await;
        assert!(page.contains(says), "{query}: {page}");
    }
    let gone = server
        .http
        .get(format!("http://{}/ui/operations/7", server.address));
    let gone = gone.send().await.unwrap();
    assert_eq!(gone.status(), 404);
    // Forms of other sites are rejected.
    let asked = form(
        &person.page("/ui/confirm?do=cancel&of=all").await,
        "operate",
    );
    let url = format!("http://{}{}", server.address, asked.action);
    let evil = server.http.post(url).header("sec-fetch-site", "cross-site");
    let evil = evil.header("content-type", "application/x-www-form-urlencoded");
    let evil = evil
        .body("action=cancel&of=all&counted=1")
        .send()
        .await
        .unwrap();
    assert_eq!(evil.status(), 403);
    assert!(person.found("queue:q").await);
    server.stop().await;
}

#[tokio::test]
async fn hostile_names_are_shown_as_text() {
    let server = Server::with(&[]);
    let person = Person::at(&server);
    let names: Vec<&str> = [HOSTILE_NAMES, &["</title><img src=x>"]].concat();
    for (i, name) in names.iter().enumerate() {
        let id = format!("job-{i}");
        server
            .client()
            .add("q", json!({"id": id, "meta": {}}))
            .await;
        server.by("ada").pop("q").await;
        server.by("ada").fail(&id, name).await;
    }
    for (i, name) in names.iter().enumerate() {
        let group = switchyard::ui::urls::encoding::segment(name);
        let page = person.page(&format!("/ui/failures/{group}")).await;
        assert!(!page.contains("><img"), "{name}");
        let q = form(&page, "confirm").fields.swap_remove(1).1;
        let ask = format!("/ui/confirm?do=tag&of=all&q={}", escape(&q));
        let question = person.page(&ask).await;
        assert!(
            question.contains("Tag 1 job?") && question.contains(&format!("job-{i}<")),
            "{name}"
        );
        assert!(!question.contains("><img"), "{name}");
        let path = person.ask(&ask, &[("arg", name)]).await;
        assert_eq!(person.done(&path).await, 1, "{name}");
        let page = person.page(&path).await;
        assert!(!page.contains("><img"), "{name}");
        let tags = server.client().job(&format!("job-{i}")).await["tags"].clone();
        assert_eq!(tags, json!([name]));
    }
    server.stop().await;
}

#[tokio::test]
async fn jobs_move_only_to_a_queue_that_has_room() {
    let server = Server::with(&["--max-queues", "2"]);
    add_many(&server, "from", 2).await;
    add_many(&server, "to", 1).await;
    let person = Person::at(&server);
    let ask = "/ui/confirm?do=move&of=all&q=queue%3Afrom&arg=new";
    let question = person.page(ask).await;
    let led = person.send(&form(&question, "operate"), &[]).await;
    assert!(
        led.flash.to_lowercase().contains("too many queues"),
        "{}",
        led.flash
    );
    let none = person.page("/ui/operations").await;
    assert!(none.contains("No operations yet."));
    let path = person.ask(&ask.replace("new", "to"), &[]).await;
    assert_eq!(person.done(&path).await, 2);
    server.stop().await;
}

#[tokio::test]
async fn kill_9_during_an_operation_repeats_and_loses_nothing() {
    // If the operation ends before a kill, the test repeats with more jobs.
    let mut jobs = 5_000;
    while !is_killed_during_an_operation(jobs).await {
        jobs *= 2;
        assert!(
            jobs < 100_000,
            "the server was never killed during the operation"
        );
    }
}

/// Kills a server three times while an operation moves this number of jobs. Returns false if it had always ended before.
async fn is_killed_during_an_operation(jobs: usize) -> bool {
    let folder = TempDir::new().unwrap();
    let database = database::address(&folder.path().join("jobs.db"));
    let mut server = Server::at_url(&database, &[]);
    add_many(&server, "from", jobs).await;
    let typed = jobs.to_string();
    let ask = "/ui/confirm?do=move&of=all&q=queue%3Afrom&arg=to";
    let path = Person::at(&server).ask(ask, &[("typed", &typed)]).await;
    let mut in_the_middle = 0;
    for least in [1, 1_000, 2_000] {
        let done = std::cell::Cell::new(0);
        eventually("the operation continues", async || {
            let page = Person::at(&server).page(&path).await;
            done.set(number(&page, "Applied"));
            done.get() >= least
        })
        .await;
        in_the_middle += i32::from(done.get() < jobs as i64);
        server.kill();
        server = Server::at_url(&database, &[]);
    }
    assert_eq!(Person::at(&server).done(&path).await, jobs as i64);
    assert_eq!(number(&Person::at(&server).page(&path).await, "Skipped"), 0);
    server.stop().await;
    let options = EngineSettings {
        database,
        ..EngineSettings::default()
    };
    let engine = Engine::open(&options).await.unwrap();
    let reach = SearchLimits {
        jobs: jobs + 1,
        scanned: jobs + 1,
        time: WAIT_MAX,
    };
    let all = Search::parse("queue:to").unwrap();
    let found = engine.search(&all, None, reach, None).await.unwrap();
    assert_eq!(found.jobs.len(), jobs);
    let keys: Vec<_> = found.jobs.into_iter().map(|job| job.key).collect();
    for job in engine.short_jobs_by_key(&keys).await.unwrap() {
        let job = job.unwrap();
        let events = job.events();
        let puts: Vec<_> = events
            .iter()
            .filter(|event| event.what == EventKind::Put)
            .collect();
        assert_eq!(puts.len(), 2, "{}", job.key.id);
    }
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
    in_the_middle > 0
}
