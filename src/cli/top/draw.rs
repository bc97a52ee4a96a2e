//! Draws the dashboard. It needs 80 × 24 characters; smaller terminals show less.

use ratatui::Frame;
use ratatui::layout::Constraint::{self, Length, Min};
use ratatui::layout::{Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, TableState};

use super::app::{App, Prompt};
use super::data::View;
use crate::cli::now;
use crate::cli::output::printable;
use crate::cli::remote::rows::{ago, queue_name};
use crate::time::{relative, seconds};
use crate::ui::model::queue::QueueRow;
use crate::ui::model::state::{Counts, EffectiveState};

/// The keys, with what they do.
const HELP: &[(&str, &str)] = &[
    ("1 2 3, Tab", "queues, failures, workers"),
    (
        "j k, arrows",
        "move the selection (also Space, PageUp, g, G)",
    ),
    (
        "Enter",
        "open the selected queue, failure group, worker or job",
    ),
    ("Esc", "back"),
    ("s", "in a queue: show the next state"),
    ("p", "pause or resume the queue"),
    (
        "r",
        "retry the failed job, or all jobs of the failure group",
    ),
    ("c", "cancel the job"),
    ("/", "filter the rows; Esc removes the filter"),
    ("Ctrl+L", "refresh"),
    ("q, Ctrl+C", "quit"),
];

pub fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let [title, counts, rates, tabs, body, footer] = Layout::vertical([
        Length(1),
        Length(1),
        Length(1),
        Length(1),
        Min(1),
        Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(title_line(app), title);
    frame.render_widget(Line::from(counts_line(app)), counts);
    frame.render_widget(Line::from(rates_line(app)), rates);
    frame.render_widget(tabs_line(app), tabs);
    if app.is_help_open {
        draw_help(frame, body);
    } else {
        draw_body(frame, app, body);
    }
    frame.render_widget(footer_line(app), footer);
}

fn title_line(app: &App) -> Line<'static> {
    let server = printable(&app.server);
    let mut spans = vec!["switchyard top".bold(), Span::from(format!("  {server}"))];
    if let Some(why) = &app.lost {
        let why = format!("  disconnected: {}", printable(why));
        spans.push(Span::styled(why, Style::new().fg(Color::Red)));
    }
    Line::from(spans)
}

/// A number in at most 6 characters; empty if it is 0.
fn short(n: i64) -> String {
    match n {
        0 => String::new(),
        1..100_000 => n.to_string(),
        100_000..1_000_000 => format!("{}k", n / 1_000),
        1_000_000..1_000_000_000 => format!("{}.{}M", n / 1_000_000, n / 100_000 % 10),
        _ => format!("{}G", n / 1_000_000_000),
    }
}

fn counts_line(app: &App) -> String {
    let Some(loaded) = &app.loaded else {
        return String::new();
    };
    let totals = loaded.overview.totals.iter();
    let total = totals.fold(Counts::default(), |all, (_, counts)| all.plus(*counts));
    let parts = EffectiveState::ALL.into_iter().filter_map(|state| {
        let count = total.of(state);
        let is_shown = count > 0
            || matches!(
                state,
                EffectiveState::Waiting | EffectiveState::Running | EffectiveState::Failed
            );
        is_shown.then(|| format!("{state} {}", crate::time::number(count)))
    });
    parts.collect::<Vec<_>>().join("  ")
}

fn rates_line(app: &App) -> String {
    let Some(loaded) = &app.loaded else {
        return "reading …".to_owned();
    };
    let recent = &loaded.overview.recent;
    // The counts of five minutes.
    let per_minute = |count: i64| format!("{:.1}", count as f64 / 5.0);
    let wait = recent.now.wait_p95.map_or_else(|| "-".to_owned(), seconds);
    let run = recent.now.run_p95.map_or_else(|| "-".to_owned(), seconds);
    let rate = recent
        .now
        .failure_rate()
        .map_or_else(|| "-".to_owned(), |rate| format!("{:.1} %", rate * 100.0));
    let full = if recent.is_disk_full {
        "  DISK FULL"
    } else {
        ""
    };
    format!(
        "5 min: put {}/min  done {}/min  fail {rate}  p95 wait {wait}  run {run}{full}",
        per_minute(recent.now.put),
        per_minute(recent.now.completed),
    )
}

fn tabs_line(app: &App) -> Line<'static> {
    let tabs = [
        (View::Queues, "1 Queues", app.queues().len()),
        (View::Failures, "2 Failures", app.groups().len()),
        (View::Workers, "3 Workers", app.workers().len()),
    ];
    let mut spans = Vec::new();
    for (view, name, count) in tabs {
        let text = format!(" {name} ({count}) ");
        spans.push(if *app.tab() == view {
            text.reversed()
        } else {
            Span::from(text)
        });
    }
    let place = match app.view() {
        View::Queues | View::Failures | View::Workers => String::new(),
        View::Queue(queue, state) => format!(" > {}, {state}", queue_name(queue)),
        View::Failure(group) => format!(" > {group}"),
        View::Worker(worker) => format!(" > {worker}"),
        View::Job(_, id) => format!(" > job {id}"),
    };
    spans.push(Span::from(printable(&place)).bold());
    Line::from(spans)
}

fn draw_body(frame: &mut Frame<'_>, app: &App, area: Rect) {
    match app.view() {
        _ if app.shows_lines() => {
            // The selected line is the first one that is shown.
            let lines = app.lines().into_iter().skip(app.selected());
            let lines: Vec<Line<'_>> = lines.take(area.height.into()).map(Line::from).collect();
            frame.render_widget(Paragraph::new(lines), area);
        }
        View::Queues => draw_queues(frame, app, area),
        View::Failures => draw_groups(frame, app, area),
        View::Workers => draw_workers(frame, app, area),
        View::Queue(..) | View::Failure(_) | View::Worker(_) | View::Job(..) => {
            draw_jobs(frame, app, area);
        }
    }
}

/// A table whose selected row is visible. `empty` is shown if there are no rows.
fn draw_table<'a, const N: usize>(
    frame: &mut Frame<'_>,
    app: &App,
    area: Rect,
    columns: [(&'a str, Constraint); N],
    (rows, empty): (Vec<Row<'a>>, &'a str),
) {
    if rows.is_empty() {
        let text = if app.filter.is_empty() {
            empty
        } else {
            "nothing matches the filter"
        };
        frame.render_widget(Paragraph::new(format!("\n  {text}")), area);
        return;
    }
    let table = Table::new(rows, columns.map(|(_, width)| width))
        .header(
            Row::new(columns.map(|(title, _)| title))
                .style(Style::new().add_modifier(Modifier::BOLD)),
        )
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::new().with_selected(Some(app.selected()));
    frame.render_stateful_widget(table, area, &mut state);
}

/// A number at the right of its column; red if it is a problem.
fn count(n: i64, is_problem: bool) -> Cell<'static> {
    let text = Line::from(short(n)).right_aligned();
    let cell = Cell::from(text);
    if is_problem && n > 0 {
        cell.fg(Color::Red)
    } else {
        cell
    }
}

fn queue_row<'a>(app: &App, row: &QueueRow) -> Row<'a> {
    let counts = &row.counts;
    let name = printable(&queue_name(&row.queue_ref));
    let oldest = match row.paused {
        true => "paused".to_owned(),
        false => ago(row.oldest_waiting.filter(|_| counts.waiting > 0)),
    };
    let completed = app.loaded.iter().flat_map(|it| &it.completed);
    let completed = completed
        .into_iter()
        .find(|(queue, _)| *queue == row.queue_ref);
    let cells = [
        Cell::from(name),
        count(counts.waiting, false),
        count(counts.running, false),
        count(counts.scheduled + counts.depends, false),
        count(counts.stalled, true),
        count(counts.failed, true),
        count(counts.dead, true),
        count(completed.map_or(0, |(_, count)| *count), false),
        Cell::from(oldest),
    ];
    let style = if row.paused {
        Style::new().fg(Color::Yellow)
    } else {
        Style::new()
    };
    Row::new(cells).style(style)
}

fn draw_queues(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let rows = app
        .queues()
        .into_iter()
        .map(|row| queue_row(app, row))
        .collect();
    let columns = [
        ("QUEUE", Min(20)),
        ("   WAIT", Length(7)),
        ("  RUN", Length(5)),
        (" LATER", Length(6)),
        ("STALL", Length(5)),
        (" FAIL", Length(5)),
        (" DEAD", Length(5)),
        ("DONE/M", Length(6)),
        ("OLDEST", Length(9)),
    ];
    let empty = "no queues yet; a queue is created with its first job";
    draw_table(frame, app, area, columns, (rows, empty));
}

fn draw_groups(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let rows = app.groups().into_iter().map(|row| {
        let message = row.message.clone().unwrap_or_default();
        Row::new([
            Cell::from(printable(&row.group)),
            count(row.count, true),
            Cell::from(ago(row.last)),
            Cell::from(printable(&message)),
        ])
    });
    let columns = [
        ("GROUP", Length(24)),
        ("  JOBS", Length(6)),
        ("LAST", Length(9)),
        ("NEWEST MESSAGE", Min(20)),
    ];
    let rows = rows.collect();
    draw_table(frame, app, area, columns, (rows, "no failed jobs"));
}

fn draw_workers(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let rows = app.workers().into_iter().map(|row| {
        Row::new([
            Cell::from(printable(&row.name)),
            count(row.running, false),
            count(row.stalled, true),
            Cell::from(relative(row.last_seen, now())),
        ])
    });
    let columns = [
        ("WORKER", Min(40)),
        (" RUNNING", Length(8)),
        (" STALLED", Length(8)),
        ("LAST SEEN", Length(10)),
    ];
    let rows = rows.collect();
    draw_table(frame, app, area, columns, (rows, "no workers"));
}

fn draw_jobs(frame: &mut Frame<'_>, app: &App, area: Rect) {
    if !app.is_current {
        return;
    }
    let rows = app.jobs().into_iter().map(|row| {
        let note = row
            .failure
            .as_ref()
            .map(|failure| format!("{}: {}", failure.group, failure.message));
        let worker = || row.worker.as_ref().map(|worker| format!("by {worker}"));
        let note = match row.state {
            EffectiveState::Failed => note,
            _ => worker(),
        };
        Row::new([
            Cell::from(printable(&row.id)),
            Cell::from(printable(&queue_name(&row.queue_ref))),
            Cell::from(row.listed_state().to_string()),
            Cell::from(relative(row.state_time, now())),
            Cell::from(printable(&note.unwrap_or_else(|| row.preview.clone()))),
        ])
    });
    let columns = [
        ("ID", Length(24)),
        ("QUEUE", Length(14)),
        ("STATE", Length(9)),
        ("TIME", Length(9)),
        ("DETAIL", Min(16)),
    ];
    let rows = rows.collect();
    draw_table(frame, app, area, columns, (rows, "no jobs"));
}

fn draw_help(frame: &mut Frame<'_>, area: Rect) {
    let lines: Vec<Line<'_>> = HELP
        .iter()
        .map(|(key, text)| {
            Line::from(vec![
                Span::from(format!("  {key:<14}")).bold(),
                Span::from(*text),
            ])
        })
        .collect();
    frame.render_widget(Clear, area);
    frame.render_widget(
        Paragraph::new(lines).block(Block::bordered().title(" Keys ")),
        area,
    );
}

fn footer_line(app: &App) -> Line<'static> {
    match &app.prompt {
        Prompt::Filter => Line::from(format!("/{}_", printable(&app.filter))),
        Prompt::Confirm(question, _) => Line::from(format!("{question} [y/N]")).bold(),
        Prompt::Message(text, is_done) => {
            let color = if *is_done { Color::Green } else { Color::Red };
            Line::from(printable(text)).fg(color)
        }
        Prompt::None => {
            let keys = match app.view() {
                View::Queues => "Enter open  p pause  / filter  ? help  q quit",
                View::Failures => "Enter open  r retry all  / filter  ? help  q quit",
                View::Workers => "Enter open  / filter  ? help  q quit",
                View::Queue(..) => {
                    "Enter open  s state  r retry  c cancel  p pause  Esc back  ? help  q quit"
                }
                View::Failure(_) | View::Worker(_) => {
                    "Enter open  r retry  c cancel  Esc back  ? help  q quit"
                }
                View::Job(..) => "j k scroll  r retry  c cancel  Esc back  ? help  q quit",
            };
            let filter = if app.filter.is_empty() {
                String::new()
            } else {
                format!("  filter: {}", printable(&app.filter))
            };
            Line::from(format!("{keys}{filter}")).dim()
        }
    }
}
