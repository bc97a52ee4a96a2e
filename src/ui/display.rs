//! How pages are shown to this browser: their colours, how times are told, how high rows are, and whether single keys
//! are shortcuts. Each choice is kept in a cookie, and made in one panel, with plain forms.

use leptos::prelude::*;

use crate::ui::page_request::PageRequest;

/// Something to choose, and the cookie that keeps what was chosen.
#[derive(Debug)]
pub struct Setting {
    pub cookie: &'static str,
    /// The name of the form's field.
    pub name: &'static str,
    pub title: &'static str,
    /// Each value with its word. The first one holds where nothing is chosen, and no cookie keeps it.
    pub values: &'static [(&'static str, &'static str)],
    /// The key that goes on to the next value; an empty one if only the palette does.
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
    pub fn is_default(&self, value: &str) -> bool {
        self.value(None) == value
    }

    /// For an attribute that only what is unusual has.
    fn unless_default(&self, value: &'static str) -> Option<&'static str> {
        (!self.is_default(value)).then_some(value)
    }

    /// The value after this one; after the last one the first.
    pub fn next(&self, value: &str) -> &'static str {
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

    /// Whether times are told by how far away they are.
    pub fn tells_distances(self) -> bool {
        CLOCK.is_default(self.clock)
    }
}

/// How the page that is being made is shown.
pub fn display() -> Display {
    with_context::<PageRequest, _>(|request| request.display).unwrap_or_default()
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
