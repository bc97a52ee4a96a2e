//! The keys, and the screen at 80 × 24.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::{Action, App, Effect, Prompt};
use super::data::{Loaded, View};
use super::draw::draw;
use crate::cli::exit::{Code, Failure};
use crate::cli::now;
use crate::ui::model::failure::GroupRow;
use crate::ui::model::job::JobRow;
use crate::ui::model::queue::{PauseDetails, QueueRow};
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::series::RecentActivity;
use crate::ui::model::state::{Counts, EffectiveState};
use crate::ui::model::worker::WorkerRow;
use crate::ui::pages::overview::model::OverviewView;

fn queue(queue_ref: QueueRef, waiting: i64, failed: i64, paused: bool) -> QueueRow {
    QueueRow {
        queue_ref,
        counts: Counts {
            waiting,
            failed,
            ..Counts::default()
        },
        oldest_waiting: Some(now() - 90_000_000),
        paused,
        pause: PauseDetails::default(),
        forgotten: false,
        recurring: 0,
        last_claim: None,
        claimants: Vec::new(),
    }
}

fn job(id: &str, state: EffectiveState) -> JobRow {
    JobRow {
        seq: 1,
        id: id.to_owned(),
        queue_ref: QueueRef::qless("mail"),
        klass: None,
        state,
        priority: 0.0,
        retries: 5,
        remaining: 4,
        tags: Vec::new(),
        worker: None,
        state_time: now(),
        preview: "{\"to\":\"ada\"}".to_owned(),
        failure: None,
        dependency_count: 0,
        expires_at: None,
        dead_number: None,
    }
}

fn loaded() -> Loaded {
    let counts = Counts {
        waiting: 1_207,
        failed: 3,
        ..Counts::default()
    };
    let group = |group: &str, message: &str| GroupRow {
        group: group.to_owned(),
        count: 3,
        first: Some(now() - 7_200_000_000),
        last: Some(now() - 60_000_000),
        message: Some(message.to_owned()),
        muted: None,
    };
    Loaded {
        overview: OverviewView {
            queues: vec![
                queue(QueueRef::qless("mail"), 1_200, 3, false),
                queue(QueueRef::lmstfy("shop", "cart"), 7, 0, true),
                queue(QueueRef::qless("a\u{1b}[2J\u{202e}b"), 0, 0, false),
            ],
            totals: vec![(Protocol::Qless, counts)],
            groups: vec![
                group("Timeout", "no answer\nfrom smtp"),
                group("Other", "x"),
            ],
            failures: None,
            workers: vec![WorkerRow {
                name: "worker-1".to_owned(),
                last_seen: now(),
                running: 2,
                stalled: 0,
            }],
            dead: Vec::new(),
            dead_letters: 0,
            recent: RecentActivity::default(),
        },
        completed: vec![(QueueRef::qless("mail"), 42)],
        jobs: Vec::new(),
        lines: Vec::new(),
    }
}

fn app() -> App {
    let mut app = App::new("http://127.0.0.1:3000");
    app.loaded(&View::Queues, Ok(loaded()));
    app
}

fn press(app: &mut App, key: KeyCode) -> Effect {
    app.key(KeyEvent::new(key, KeyModifiers::NONE))
}

fn type_text(app: &mut App, text: &str) {
    for c in text.chars() {
        assert_eq!(press(app, KeyCode::Char(c)), Effect::None);
    }
}

/// The screen as lines without whitespace at their ends.
fn screen(app: &mut App) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| draw(frame, app)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y: u16| {
        let cells = (0..80).map(|x| buffer.cell((x, y)).unwrap().symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..24).map(row).collect()
}

fn shows(app: &mut App, text: &str) {
    let screen = screen(app);
    assert!(
        screen.iter().any(|line| line.contains(text)),
        "{text}: {screen:#?}"
    );
}

#[test]
fn the_queues_fit_80_columns() {
    let mut app = app();
    let lines = screen(&mut app);
    assert!(
        lines[0].starts_with("switchyard top  http://127.0.0.1:3000"),
        "{lines:#?}"
    );
    assert_eq!(lines[1], "waiting 1,207  running 0  failed 3");
    assert!(lines[2].starts_with("5 min: put 0.0/min"), "{lines:#?}");
    assert_eq!(lines[3], " 1 Queues (3)  2 Failures (2)  3 Workers (1)");
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        words(&lines[4]),
        [
            "QUEUE", "WAIT", "RUN", "LATER", "STALL", "FAIL", "DEAD", "DONE/M", "OLDEST"
        ]
    );
    assert_eq!(
        words(&lines[5]),
        ["mail", "1200", "3", "42", "1", "m", "ago"]
    );
    assert!(
        lines[6].starts_with("lmstfy:shop/cart ") && lines[6].ends_with("paused"),
        "{lines:#?}"
    );
    assert!(lines[23].contains("q quit"), "{lines:#?}");
}

#[test]
fn names_and_messages_cannot_control_the_terminal() {
    let mut app = app();
    shows(&mut app, r"a\u{1b}[2J\u{202e}b");
    press(&mut app, KeyCode::Char('2'));
    shows(&mut app, r"no answer\nfrom smtp");
    app.connection_lost(&Failure::new(Code::Unreachable, "x\u{1b}c"));
    shows(&mut app, r"disconnected: x\u{1b}c");
}

#[test]
fn keys_switch_between_the_tabs() {
    let mut app = app();
    for (key, view) in [
        (KeyCode::Tab, View::Failures),
        (KeyCode::Tab, View::Workers),
        (KeyCode::Tab, View::Queues),
        (KeyCode::Char('3'), View::Workers),
        (KeyCode::Char('1'), View::Queues),
    ] {
        press(&mut app, key);
        assert_eq!(*app.view(), view);
    }
    press(&mut app, KeyCode::Char('3'));
    shows(&mut app, "worker-1");
}

#[test]
fn p_pauses_or_resumes_the_selected_queue() {
    let mut app = app();
    let pause = press(&mut app, KeyCode::Char('p'));
    assert_eq!(pause, Effect::Act(Action::Pause(QueueRef::qless("mail"))));
    press(&mut app, KeyCode::Down);
    let resume = press(&mut app, KeyCode::Char('p'));
    assert_eq!(
        resume,
        Effect::Act(Action::Resume(QueueRef::lmstfy("shop", "cart")))
    );
    app.acted(Ok("Queue “mail” paused.".to_owned()));
    shows(&mut app, "Queue “mail” paused.");
    assert!(app.is_stale, "the queues are read again");
}

#[test]
fn r_retries_a_failure_group_after_a_confirmation() {
    let mut app = app();
    press(&mut app, KeyCode::Char('2'));
    press(&mut app, KeyCode::Char('r'));
    shows(&mut app, "Retry failed jobs of group Timeout (3)? [y/N]");
    assert_eq!(press(&mut app, KeyCode::Char('n')), Effect::None);
    shows(&mut app, "Nothing was changed.");
    press(&mut app, KeyCode::Char('r'));
    let retry = press(&mut app, KeyCode::Char('y'));
    assert_eq!(retry, Effect::Act(Action::RetryGroup("Timeout".to_owned())));
}

#[test]
fn enter_looks_into_a_queue_and_a_job() {
    let mut app = app();
    assert_eq!(press(&mut app, KeyCode::Enter), Effect::Load);
    let view = View::Queue(QueueRef::qless("mail"), EffectiveState::Waiting);
    assert_eq!(*app.view(), view);
    let jobs = vec![
        job("welcome-1", EffectiveState::Failed),
        job("b", EffectiveState::Running),
    ];
    app.loaded(&view, Ok(Loaded { jobs, ..loaded() }));
    shows(&mut app, "> mail, waiting");
    shows(&mut app, "welcome-1");
    let retry = press(&mut app, KeyCode::Char('r'));
    assert_eq!(retry, Effect::Act(Action::RetryJob("welcome-1".to_owned())));
    press(&mut app, KeyCode::Char('j'));
    assert_eq!(press(&mut app, KeyCode::Char('r')), Effect::None);
    shows(
        &mut app,
        "The job is in state running; only failed jobs are retried.",
    );
    press(&mut app, KeyCode::Char('c'));
    shows(&mut app, "Cancel job b? [y/N]");
    let cancel = press(&mut app, KeyCode::Char('y'));
    assert_eq!(cancel, Effect::Act(Action::CancelJob("b".to_owned())));
    assert_eq!(press(&mut app, KeyCode::Enter), Effect::Load);
    let view = View::Job(None, "b".to_owned());
    assert_eq!(*app.view(), view);
    let lines = (0..40).map(|n| format!("line {n}")).collect();
    app.loaded(&view, Ok(Loaded { lines, ..loaded() }));
    shows(&mut app, "line 0");
    for _ in 0..30 {
        press(&mut app, KeyCode::Char('j'));
    }
    shows(&mut app, "line 39");
    press(&mut app, KeyCode::Esc);
    press(&mut app, KeyCode::Esc);
    assert_eq!(*app.view(), View::Queues);
}

#[test]
fn s_shows_the_next_state_that_the_queue_has() {
    let mut app = app();
    press(&mut app, KeyCode::Down);
    press(&mut app, KeyCode::Enter);
    let mut seen = Vec::new();
    for _ in 0..4 {
        let View::Queue(_, state) = app.view().clone() else {
            panic!("a queue");
        };
        seen.push(state.as_str());
        assert_eq!(press(&mut app, KeyCode::Char('s')), Effect::Load);
    }
    assert_eq!(seen, ["waiting", "scheduled", "running", "dead"]);
}

#[test]
fn the_filter_selects_rows_until_it_is_removed() {
    let mut app = app();
    press(&mut app, KeyCode::Char('/'));
    type_text(&mut app, "SHOPq");
    shows(&mut app, "nothing matches the filter");
    press(&mut app, KeyCode::Backspace);
    press(&mut app, KeyCode::Enter);
    assert_eq!(app.queues().len(), 1);
    shows(&mut app, "filter: SHOP");
    press(&mut app, KeyCode::Esc);
    assert_eq!(app.queues().len(), 3);
    press(&mut app, KeyCode::Char('/'));
    for _ in 0..1_000 {
        press(&mut app, KeyCode::Char('x'));
    }
    assert_eq!(app.filter.len(), 100, "the filter has a limit");
}

#[test]
fn q_and_control_c_quit_but_not_while_typing() {
    let mut app = app();
    press(&mut app, KeyCode::Char('/'));
    assert_eq!(press(&mut app, KeyCode::Char('q')), Effect::None);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(app.key(interrupt), Effect::Quit);
    press(&mut app, KeyCode::Enter);
    assert_eq!(press(&mut app, KeyCode::Char('q')), Effect::Quit);
    press(&mut app, KeyCode::Char('?'));
    shows(&mut app, "pause or resume the queue");
    press(&mut app, KeyCode::Esc);
    assert!(!app.is_help_open);
}

#[test]
fn a_view_that_cannot_be_opened_closes_with_the_reason() {
    let mut app = app();
    press(&mut app, KeyCode::Enter);
    let view = app.view().clone();
    app.loaded(
        &view,
        Err(Failure::new(Code::NotFound, "Queue “mail” not found.")),
    );
    assert_eq!(*app.view(), View::Queues);
    assert_eq!(
        app.prompt,
        Prompt::Message("Queue “mail” not found.".to_owned(), false)
    );
    assert!(app.is_stale);
}

#[test]
fn the_selection_stays_in_a_list_that_became_shorter() {
    let mut app = app();
    press(&mut app, KeyCode::End);
    assert_eq!(app.selected(), 2);
    let mut shorter = loaded();
    shorter.overview.queues.truncate(1);
    app.loaded(&View::Queues, Ok(shorter));
    assert_eq!(app.selected(), 0);
}
