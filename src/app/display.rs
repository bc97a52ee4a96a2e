//! How pages are shown to this browser: their colours, how times are told, how high rows are, and whether single keys
//! are shortcuts. Each choice is kept in a cookie, and made in one panel, with plain forms.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::icons::icon;
use super::parts::hidden;
use super::visit::Visit;
use crate::api::act::{SetClock, SetDensity, SetKeys, Theme};

/// Something to choose, and the cookie that keeps what was chosen.
#[derive(Debug)]
pub struct Setting {
    pub cookie: &'static str,
    /// The name of the form's field.
    name: &'static str,
    title: &'static str,
    /// Each value with its word. The first one holds where nothing is chosen, and no cookie keeps it.
    values: &'static [(&'static str, &'static str)],
    /// The key that goes on to the next value; an empty one if only the palette does.
    key: Option<&'static str>,
}

pub const THEME: Setting = Setting {
    cookie: "switchyard_theme",
    name: "theme",
    title: "Theme",
    values: &[("auto", "Auto"), ("light", "Light"), ("dark", "Dark")],
    key: Some(""),
};

pub const CLOCK: Setting = Setting {
    cookie: "switchyard_clock",
    name: "clock",
    title: "Times",
    values: &[("relative", "Relative"), ("utc", "UTC"), ("local", "Local")],
    key: Some("z"),
};

pub const DENSITY: Setting = Setting {
    cookie: "switchyard_density",
    name: "density",
    title: "Rows",
    values: &[("comfortable", "Comfortable"), ("compact", "Compact")],
    key: Some("d"),
};

pub const KEYS: Setting = Setting {
    cookie: "switchyard_keys",
    name: "keys",
    title: "Single-key shortcuts",
    values: &[("on", "On"), ("off", "Off")],
    // Whoever has switched them off could not get back by one.
    key: None,
};

impl Setting {
    /// The value that is meant; the first one if none is.
    pub fn value(&self, text: Option<&str>) -> &'static str {
        let mut values = self.values.iter().map(|(value, _)| *value);
        let first = self.values.first().map_or("", |(value, _)| value);
        values.find(|value| text == Some(*value)).unwrap_or(first)
    }

    /// Whether it holds without having been chosen.
    pub fn is_usual(&self, value: &str) -> bool {
        self.value(None) == value
    }

    /// For an attribute that only what is unusual has.
    fn unusual(&self, value: &'static str) -> Option<&'static str> {
        (!self.is_usual(value)).then_some(value)
    }

    /// The value after this one; after the last one the first.
    fn next(&self, value: &str) -> &'static str {
        let mut values = self.values.iter().map(|(value, _)| *value).cycle();
        values.find(|each| *each == value);
        values.next().unwrap_or_default()
    }
}

/// What this browser has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Display {
    pub theme: &'static str,
    pub clock: &'static str,
    pub density: &'static str,
    pub keys: &'static str,
}

impl Default for Display {
    fn default() -> Self {
        Self::of(|_| None)
    }
}

impl Display {
    /// By the values of the cookies.
    pub fn of<'a>(cookie: impl Fn(&str) -> Option<&'a str>) -> Self {
        let value = |setting: &Setting| setting.value(cookie(setting.cookie));
        Self {
            theme: value(&THEME),
            clock: value(&CLOCK),
            density: value(&DENSITY),
            keys: value(&KEYS),
        }
    }

    /// `data-theme` of the document.
    pub fn data_theme(self) -> Option<&'static str> {
        THEME.unusual(self.theme)
    }

    /// `data-clock` of the document.
    pub fn data_clock(self) -> Option<&'static str> {
        CLOCK.unusual(self.clock)
    }

    /// `data-density` of the document.
    pub fn data_density(self) -> Option<&'static str> {
        DENSITY.unusual(self.density)
    }

    /// `data-keys` of the document.
    pub fn data_keys(self) -> Option<&'static str> {
        KEYS.unusual(self.keys)
    }

    /// Whether times are told by how far away they are.
    pub fn tells_distances(self) -> bool {
        CLOCK.is_usual(self.clock)
    }
}

/// How the page that is being made is shown.
pub fn display() -> Display {
    with_context::<Visit, _>(|visit| visit.display).unwrap_or_default()
}

/// The button that opens the panel.
pub fn button() -> AnyView {
    view! {
        <button type="button" class="button quiet to-display" popovertarget="display" aria-label="Display" data-hot="">
            {icon("theme")} <span>"Display"</span>
        </button>
    }
    .into_any()
}

/// The panel: one form for each setting, and the way to the list of shortcuts.
pub fn panel(visit: &Visit) -> AnyView {
    let display = visit.display;
    view! {
        <div id="display" class="ask" popover="auto" role="dialog" aria-labelledby="display-title">
            <h2 id="display-title">"Display"</h2>
            {form(Theme::PATH, &THEME, display.theme, visit)}
            {form(SetClock::PATH, &CLOCK, display.clock, visit)}
            {form(SetDensity::PATH, &DENSITY, display.density, visit)}
            <button type="button" class="button" popovertarget="keys" data-hot="?">"Keyboard shortcuts…"</button>
        </div>
    }
    .into_any()
}

/// The form that switches single keys on and off.
pub fn keys_form(visit: &Visit) -> AnyView {
    form(SetKeys::PATH, &KEYS, visit.display.keys, visit)
}

/// A button for each value.
fn form(action: &'static str, setting: &'static Setting, chosen: &str, visit: &Visit) -> AnyView {
    let next = setting.next(chosen);
    let buttons = setting.values.iter().map(|(value, word)| {
        let is_chosen = *value == chosen;
        let key = match setting.key {
            Some("") => (!is_chosen).then_some(""),
            key => key.filter(|_| *value == next),
        };
        view! {
            <button
                type="submit"
                name=setting.name
                value=*value
                class=if is_chosen { "button strong" } else { "button" }
                class:by-script=*value == "local"
                aria-pressed=is_chosen.to_string()
                aria-label=format!("{}: {word}", setting.title)
                data-hot=key
            >
                {*word}
            </button>
        }
    });
    view! {
        <form method="post" action=action>
            {hidden(vec![("back", visit.here())])}
            <span aria-hidden="true">{setting.title}</span>
            <div class="row" role="group" aria-label=setting.title>{buttons.collect_view()}</div>
        </form>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_chooses_among_what_there_is() {
        assert_eq!(CLOCK.value(None), "relative");
        assert_eq!(CLOCK.value(Some("local")), "local");
        assert_eq!(CLOCK.value(Some("\"><script>")), "relative");
        let display = Display::of(|cookie| (cookie == DENSITY.cookie).then_some("compact"));
        assert_eq!(display.data_density(), Some("compact"));
        assert_eq!(display.data_theme(), None);
        assert!(display.tells_distances());
    }

    #[test]
    fn a_key_goes_through_all_values() {
        assert_eq!(CLOCK.next("relative"), "utc");
        assert_eq!(CLOCK.next("local"), "relative");
        assert_eq!(DENSITY.next("compact"), "comfortable");
    }
}
