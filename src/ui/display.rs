//! Display settings of a browser: colors, times, height of rows, single-key shortcuts. Each is stored in a cookie.

use leptos::prelude::*;

use crate::ui::page_request::PageRequest;

/// A display setting, and its cookie.
#[derive(Debug)]
pub struct Setting {
    pub cookie: &'static str,
    /// The name of the field.
    pub name: &'static str,
    pub title: &'static str,
    /// The values with their labels. The first is the default, which has no cookie.
    pub values: &'static [(&'static str, &'static str)],
    /// The keyboard shortcut that selects the next value; an empty string adds only a palette entry.
    pub key: Option<&'static str>,
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
    // A shortcut could not turn them on again.
    key: None,
};

impl Setting {
    /// The value with this text; the default if there is no such value.
    pub fn value(&self, text: Option<&str>) -> &'static str {
        let mut values = self.values.iter().map(|(value, _)| *value);
        let first = self.values.first().map_or("", |(value, _)| value);
        values.find(|value| text == Some(*value)).unwrap_or(first)
    }

    /// Whether this is the default.
    pub fn is_default(&self, value: &str) -> bool {
        self.value(None) == value
    }

    /// The value, unless it is the default.
    fn unless_default(&self, value: &'static str) -> Option<&'static str> {
        (!self.is_default(value)).then_some(value)
    }

    /// The next value; after the last one, the first.
    pub fn next(&self, value: &str) -> &'static str {
        let mut values = self.values.iter().map(|(value, _)| *value).cycle();
        values.find(|each| *each == value);
        values.next().unwrap_or_default()
    }
}

/// The display settings of a browser.
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
    /// The settings from the values of the cookies.
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
        THEME.unless_default(self.theme)
    }

    /// `data-clock` of the document.
    pub fn data_clock(self) -> Option<&'static str> {
        CLOCK.unless_default(self.clock)
    }

    /// `data-density` of the document.
    pub fn data_density(self) -> Option<&'static str> {
        DENSITY.unless_default(self.density)
    }

    /// `data-keys` of the document.
    pub fn data_keys(self) -> Option<&'static str> {
        KEYS.unless_default(self.keys)
    }

    /// Whether times are shown relative to now.
    pub fn is_relative(self) -> bool {
        CLOCK.is_default(self.clock)
    }
}

/// The display settings of the request.
pub fn display() -> Display {
    with_context::<PageRequest, _>(|request| request.display).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_cookie_values_select_the_default() {
        assert_eq!(CLOCK.value(None), "relative");
        assert_eq!(CLOCK.value(Some("local")), "local");
        assert_eq!(CLOCK.value(Some("\"><script>")), "relative");
        let display = Display::of(|cookie| (cookie == DENSITY.cookie).then_some("compact"));
        assert_eq!(display.data_density(), Some("compact"));
        assert_eq!(display.data_theme(), None);
        assert!(display.is_relative());
    }

    #[test]
    fn a_key_cycles_through_all_values() {
        assert_eq!(CLOCK.next("relative"), "utc");
        assert_eq!(CLOCK.next("local"), "relative");
        assert_eq!(DENSITY.next("compact"), "comfortable");
    }
}
