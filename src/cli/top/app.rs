//! The state of the dashboard in the terminal, and what keys do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::data::{Loaded, View};
use crate::cli::exit::Failure;
use crate::cli::output::printable;
use crate::cli::remote::rows::queue_name;
use crate::ui::model::failure::GroupRow;
use crate::ui::model::job::JobRow;
use crate::ui::model::queue::QueueRow;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::state::EffectiveState;
use crate::ui::model::worker::WorkerRow;

/// Maximum length of the filter, in characters.
const FILTER_CHARS_MAX: usize = 100;

/// How far the keys for pages move.
const PAGE: usize = 10;

/// What a key asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    None,
    Quit,
    /// Read what the view shows.
    Load,
    Act(Action),
}

/// A change on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Pause(QueueRef),
    Resume(QueueRef),
    RetryGroup(String),
    RetryJob(String),
    CancelJob(String),
}

/// What the last line shows instead of the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Prompt {
    #[default]
    None,
    /// The user types the filter.
    Filter,
    /// A question that `y` confirms.
    Confirm(String, Action),
    /// A message until the next key, and whether it reports a success.
    Message(String, bool),
}

/// The dashboard.
pub struct App {
    pub server: String,
    /// The open views; the last one is shown, and the first is one of the tabs.
    views: Vec<View>,
    /// The selected row of each open view.
    selected: Vec<usize>,
    pub loaded: Option<Loaded>,
    /// Whether `loaded` belongs to the view that is shown.
    pub is_current: bool,
    /// Whether the server may have newer data.
    pub is_stale: bool,
    /// Why the feed is interrupted.
    pub lost: Option<String>,
    pub filter: String,
    pub prompt: Prompt,
    pub is_help_open: bool,
}

impl App {
    pub fn new(server: &str) -> App {
        App {
            server: server.to_owned(),
            views: vec![View::Queues],
            selected: vec![0],
            loaded: None,
            is_current: false,
            is_stale: false,
            lost: None,
            filter: String::new(),
            prompt: Prompt::None,
            is_help_open: false,
        }
    }

    /// The view that is shown.
    pub fn view(&self) -> &View {
        self.views.last().unwrap_or(&View::Queues)
    }

    /// The tab that contains the view.
    pub fn tab(&self) -> &View {
        self.views.first().unwrap_or(&View::Queues)
    }

    pub fn changed(&mut self) {
        self.lost = None;
        self.is_stale = true;
    }

    pub fn connection_lost(&mut self, failure: &Failure) {
        self.lost = Some(failure.message.clone());
    }

    /// Shows what was read for a view, if that view is still shown.
    pub fn loaded(&mut self, view: &View, loaded: Result<Loaded, Failure>) {
        if view != self.view() {
            self.is_stale = true;
            return;
        }
        match loaded {
            Ok(loaded) => {
                self.loaded = Some(loaded);
                self.is_current = true;
                self.lost = None;
                let last = self.len().saturating_sub(1);
                let selected = self.selected();
                self.select(selected.min(last));
            }
            Err(failure) => {
                self.prompt = Prompt::Message(failure.message, false);
                if self.views.len() > 1 && !self.is_current {
                    self.close();
                }
            }
        }
    }

    pub fn acted(&mut self, result: Result<String, Failure>) {
        self.prompt = match result {
            Ok(message) => Prompt::Message(message, true),
            Err(failure) => Prompt::Message(failure.message, false),
        };
        self.is_stale = true;
    }

    /// The selected row.
    pub fn selected(&self) -> usize {
        self.selected.last().copied().unwrap_or_default()
    }

    fn select(&mut self, row: usize) {
        if let Some(selected) = self.selected.last_mut() {
            *selected = row;
        }
    }

    fn matches_filter(&self, name: &str) -> bool {
        self.filter.is_empty() || name.to_lowercase().contains(&self.filter.to_lowercase())
    }

    /// The queues that match the filter.
    pub fn queues(&self) -> Vec<&QueueRow> {
        let rows = self.loaded.iter().flat_map(|it| &it.overview.queues);
        rows.filter(|row| self.matches_filter(&queue_name(&row.queue_ref)))
            .collect()
    }

    /// The failure groups that match the filter.
    pub fn groups(&self) -> Vec<&GroupRow> {
        let rows = self.loaded.iter().flat_map(|it| &it.overview.groups);
        rows.filter(|row| self.matches_filter(&row.group)).collect()
    }

    /// The workers that match the filter.
    pub fn workers(&self) -> Vec<&WorkerRow> {
        let rows = self.loaded.iter().flat_map(|it| &it.overview.workers);
        rows.filter(|row| self.matches_filter(&row.name)).collect()
    }

    /// What is loaded, if it belongs to the view that is shown.
    fn current(&self) -> impl Iterator<Item = &Loaded> {
        self.loaded.iter().filter(|_| self.is_current)
    }

    /// The jobs of the view that match the filter.
    pub fn jobs(&self) -> Vec<&JobRow> {
        let rows = self.current().flat_map(|it| &it.jobs);
        rows.filter(|row| self.matches_filter(&row.id)).collect()
    }

    /// The lines of the view that match the filter.
    pub fn lines(&self) -> Vec<&str> {
        let lines = self.current().flat_map(|it| &it.lines);
        lines
            .map(String::as_str)
            .filter(|line| self.matches_filter(line))
            .collect()
    }

    /// Whether the view shows lines of text.
    pub fn shows_lines(&self) -> bool {
        match self.view() {
            View::Job(..) => true,
            View::Queue(queue, _) => queue.protocol == Protocol::Jobq,
            _ => false,
        }
    }

    /// The number of rows.
    fn len(&self) -> usize {
        match self.view() {
            _ if self.shows_lines() => self.lines().len(),
            View::Queues => self.queues().len(),
            View::Failures => self.groups().len(),
            View::Workers => self.workers().len(),
            _ => self.jobs().len(),
        }
    }

    /// What a key does.
    pub fn key(&mut self, key: KeyEvent) -> Effect {
        if key.kind == KeyEventKind::Release {
            return Effect::None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Effect::Quit,
                KeyCode::Char('l') => Effect::Load,
                _ => Effect::None,
            };
        }
        match std::mem::take(&mut self.prompt) {
            Prompt::Filter => self.type_filter(key.code),
            Prompt::Confirm(_, action) => match key.code {
                KeyCode::Char('y' | 'Y') => Effect::Act(action),
                _ => {
                    self.prompt = Prompt::Message("Nothing was changed.".to_owned(), true);
                    Effect::None
                }
            },
            Prompt::None | Prompt::Message(..) => self.command(key.code),
        }
    }

    fn type_filter(&mut self, key: KeyCode) -> Effect {
        match key {
            KeyCode::Enter => return Effect::None,
            KeyCode::Esc => {
                self.filter.clear();
                return Effect::None;
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) if self.filter.chars().count() < FILTER_CHARS_MAX => {
                self.filter.push(c);
            }
            _ => {}
        }
        self.prompt = Prompt::Filter;
        self.select(0);
        Effect::None
    }

    fn command(&mut self, key: KeyCode) -> Effect {
        if self.is_help_open {
            self.is_help_open = false;
            return if key == KeyCode::Char('q') {
                Effect::Quit
            } else {
                Effect::None
            };
        }
        let last = self.len().saturating_sub(1);
        let row = self.selected();
        match key {
            KeyCode::Char('q') => return Effect::Quit,
            KeyCode::Char('?' | 'h') => self.is_help_open = true,
            KeyCode::Char('/') => self.prompt = Prompt::Filter,
            KeyCode::Char('1') => return self.switch(View::Queues),
            KeyCode::Char('2') => return self.switch(View::Failures),
            KeyCode::Char('3') => return self.switch(View::Workers),
            KeyCode::Tab | KeyCode::Right => return self.switch(next_tab(self.tab())),
            KeyCode::Down | KeyCode::Char('j') => self.select((row + 1).min(last)),
            KeyCode::Up | KeyCode::Char('k') => self.select(row.saturating_sub(1)),
            KeyCode::PageDown | KeyCode::Char(' ') => self.select((row + PAGE).min(last)),
            KeyCode::PageUp => self.select(row.saturating_sub(PAGE)),
            KeyCode::Home | KeyCode::Char('g') => self.select(0),
            KeyCode::End | KeyCode::Char('G') => self.select(last),
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => return self.back(),
            KeyCode::Enter => return self.open(),
            KeyCode::Char('s') => return self.next_state(),
            KeyCode::Char('p') => return self.toggle_pause(),
            KeyCode::Char('r') => return self.retry(),
            KeyCode::Char('c') => self.cancel(),
            _ => {}
        }
        Effect::None
    }

    fn switch(&mut self, view: View) -> Effect {
        (self.views, self.selected) = (vec![view], vec![0]);
        self.filter.clear();
        // All tabs show the overview, which is there already.
        Effect::None
    }

    fn push(&mut self, view: View) -> Effect {
        self.views.push(view);
        self.selected.push(0);
        self.filter.clear();
        self.is_current = false;
        Effect::Load
    }

    fn close(&mut self) {
        self.views.pop();
        self.selected.pop();
        self.filter.clear();
        self.is_current = false;
        self.is_stale = true;
    }

    fn back(&mut self) -> Effect {
        if !self.filter.is_empty() {
            self.filter.clear();
        } else if self.views.len() > 1 {
            self.close();
            return Effect::Load;
        }
        Effect::None
    }

    /// Opens the selected row.
    fn open(&mut self) -> Effect {
        let row = self.selected();
        let view = match self.view() {
            View::Queues => self.queues().get(row).map(|queue| {
                let state = first_state(queue);
                View::Queue(queue.queue_ref.clone(), state)
            }),
            View::Failures => self
                .groups()
                .get(row)
                .map(|it| View::Failure(it.group.clone())),
            View::Workers => self
                .workers()
                .get(row)
                .map(|it| View::Worker(it.name.clone())),
            View::Queue(..) | View::Failure(_) | View::Worker(_) => {
                self.jobs().get(row).map(|job| {
                    let queue =
                        Some(job.queue_ref.clone()).filter(|it| it.protocol != Protocol::Qless);
                    View::Job(queue, job.id.clone())
                })
            }
            View::Job(..) => None,
        };
        view.map_or(Effect::None, |view| self.push(view))
    }

    /// Shows the jobs of the queue in the next state that its API has.
    fn next_state(&mut self) -> Effect {
        let View::Queue(queue, state) = self.view().clone() else {
            return Effect::None;
        };
        let states = EffectiveState::ALL.into_iter().cycle();
        let next = states
            .skip_while(|it| *it != state)
            .skip(1)
            .find(|it| queue.protocol.has(*it));
        match next {
            Some(next) if next != state => {
                self.views.pop();
                self.selected.pop();
                self.push(View::Queue(queue, next))
            }
            _ => Effect::None,
        }
    }

    fn toggle_pause(&mut self) -> Effect {
        let queue = match self.view() {
            View::Queues => self
                .queues()
                .get(self.selected())
                .map(|row| (row.queue_ref.clone(), row.paused)),
            View::Queue(queue, _) => {
                let rows = self.loaded.iter().flat_map(|it| &it.overview.queues);
                let row = rows.into_iter().find(|row| row.queue_ref == *queue);
                row.map(|row| (queue.clone(), row.paused))
            }
            _ => None,
        };
        match queue {
            Some((queue, true)) => Effect::Act(Action::Resume(queue)),
            Some((queue, false)) => Effect::Act(Action::Pause(queue)),
            None => Effect::None,
        }
    }

    /// The selected or open qless job.
    fn job(&self) -> Option<(String, Option<EffectiveState>)> {
        match self.view() {
            View::Queue(..) | View::Failure(_) | View::Worker(_) => {
                let jobs = self.jobs();
                let job = jobs.get(self.selected())?;
                let is_qless = job.queue_ref.protocol == Protocol::Qless;
                is_qless.then(|| (job.id.clone(), Some(job.state)))
            }
            View::Job(None, id) => Some((id.clone(), None)),
            _ => None,
        }
    }

    fn retry(&mut self) -> Effect {
        if *self.view() == View::Failures {
            let group = self
                .groups()
                .get(self.selected())
                .map(|it| (it.group.clone(), it.count));
            if let Some((group, count)) = group {
                let question = format!(
                    "Retry failed jobs of group {} ({count})?",
                    printable(&group)
                );
                self.prompt = Prompt::Confirm(question, Action::RetryGroup(group));
            }
            return Effect::None;
        }
        match self.job() {
            Some((id, None | Some(EffectiveState::Failed))) => Effect::Act(Action::RetryJob(id)),
            Some((_, Some(state))) => {
                let why = format!("The job is in state {state}; only failed jobs are retried.");
                self.prompt = Prompt::Message(why, false);
                Effect::None
            }
            None => Effect::None,
        }
    }

    fn cancel(&mut self) {
        if let Some((id, _)) = self.job() {
            let question = format!("Cancel job {}?", printable(&id));
            self.prompt = Prompt::Confirm(question, Action::CancelJob(id));
        }
    }
}

fn next_tab(tab: &View) -> View {
    match tab {
        View::Queues => View::Failures,
        View::Failures => View::Workers,
        _ => View::Queues,
    }
}

/// The state in which the jobs of a queue are shown first: the first one with jobs.
fn first_state(queue: &QueueRow) -> EffectiveState {
    let with_jobs = queue.states().find(|state| queue.counts.of(*state) > 0);
    with_jobs.unwrap_or(EffectiveState::Waiting)
}
