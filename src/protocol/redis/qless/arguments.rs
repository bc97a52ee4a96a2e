//! The arguments of a command of qless-core: texts, in order.

use std::fmt;
use std::vec::IntoIter;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, Visitor};

use super::error::CommandError;
use crate::budget::UpTo;
use crate::engine::{JobKey, NAME_BYTES_MAX, OffsetPage, QueueKey, Time, invalid_class_reason};
use crate::protocol::body;
use crate::protocol::qless::{ITEMS_MAX, invalid_name_reason};

/// Default number of entries in a page (qless-core, Failed, Jobs, Tag).
const PAGE: f64 = 25.0;

/// The arguments that have not been read.
pub struct Arguments {
    /// The name of the command in messages.
    area: &'static str,
    rest: IntoIter<String>,
}

/// The longest text that is looked up: longer than any failure group.
const LOOKED_UP_BYTES_MAX: usize = 1_024;

impl Arguments {
    pub fn new(area: &'static str, arguments: Vec<String>) -> Arguments {
        Arguments {
            area,
            rest: arguments.into_iter(),
        }
    }

    pub fn bad(&self, words: &str) -> CommandError {
        CommandError::new(self.area, words)
    }

    /// The next argument, if there is one.
    pub fn next(&mut self) -> Option<String> {
        self.rest.next()
    }

    /// The next argument, a text to look up, which need not be a valid name.
    pub fn short(&mut self, name: &'static str) -> Result<Option<String>, CommandError> {
        match self.next() {
            Some(text) if text.len() > LOOKED_UP_BYTES_MAX => {
                let why = format!("Arg \"{name}\" must not exceed {LOOKED_UP_BYTES_MAX} bytes");
                Err(self.bad(&why))
            }
            text => Ok(text),
        }
    }

    /// The next argument.
    pub fn required(&mut self, name: &str) -> Result<String, CommandError> {
        self.next()
            .ok_or_else(|| self.bad(&format!("Arg \"{name}\" missing")))
    }

    /// The next argument, a name of 1 to [`NAME_BYTES_MAX`] bytes without control characters.
    pub fn name(&mut self, name: &'static str) -> Result<String, CommandError> {
        let value = self.required(name)?;
        self.check_name(name, value)
    }

    pub fn queue(&mut self) -> Result<QueueKey, CommandError> {
        Ok(QueueKey::qless(self.name("queue")?))
    }

    pub fn job(&mut self) -> Result<JobKey, CommandError> {
        Ok(JobKey::qless(self.name("jid")?))
    }

    /// The name of a worker, which can be empty: qless-php puts jobs without one.
    pub fn worker(&mut self) -> Result<String, CommandError> {
        let worker = self.required("worker")?;
        match worker.as_str() {
            "" => Ok(worker),
            _ => self.check_name("worker", worker),
        }
    }

    /// The class of a job.
    pub fn class(&mut self) -> Result<String, CommandError> {
        let class = self.required("klass")?;
        match invalid_class_reason(&class) {
            Some(wrong) => Err(self.bad(&format!("Arg \"klass\" {wrong}"))),
            None => Ok(class),
        }
    }

    /// The next argument, a name, unless there is none or it is empty.
    pub fn optional_name(&mut self, name: &'static str) -> Result<Option<String>, CommandError> {
        match self.next() {
            Some(value) if !value.is_empty() => self.check_name(name, value).map(Some),
            _ => Ok(None),
        }
    }

    /// All further arguments, as names.
    pub fn names(&mut self, name: &'static str) -> Result<Vec<String>, CommandError> {
        let names: Vec<String> = self.rest.by_ref().collect();
        self.check_names(name, names)
    }

    pub fn jobs(&mut self) -> Result<Vec<JobKey>, CommandError> {
        let names = self.names("jid")?;
        Ok(names.into_iter().map(JobKey::qless).collect())
    }

    /// The next argument, JSON text.
    pub fn json(&mut self, name: &'static str) -> Result<String, CommandError> {
        let text = self.next();
        let is_json = |text: &String| {
            body::process(text.len(), || serde_json::from_str::<IgnoredAny>(text)).is_ok()
        };
        text.filter(is_json)
            .ok_or_else(|| self.bad(&format!("Arg \"{name}\" missing or not JSON")))
    }

    /// The next argument, JSON text; `None` if there is none or it is empty.
    pub fn optional_json(&mut self, name: &'static str) -> Result<Option<String>, CommandError> {
        match self.next().filter(|text| !text.is_empty()) {
            None => Ok(None),
            Some(text) => {
                let mut one = Arguments::new(self.area, vec![text]);
                one.json(name).map(Some)
            }
        }
    }

    /// The next argument, a finite number.
    pub fn number(&mut self, name: &'static str) -> Result<f64, CommandError> {
        let text = self.next();
        let number = text.as_deref().and_then(number);
        number.ok_or_else(|| self.bad(&format!("Arg \"{name}\" missing or not a number")))
    }

    /// The next argument, a finite number, or `default` if there is none.
    pub fn number_or(&mut self, name: &'static str, default: f64) -> Result<f64, CommandError> {
        match self.rest.len() {
            0 => Ok(default),
            _ => self.number(name),
        }
    }

    /// The next argument, seconds that fit in a [`Time`].
    pub fn seconds(&mut self, name: &'static str) -> Result<f64, CommandError> {
        let seconds = self.number(name)?;
        match Time::from_seconds(seconds) {
            Some(_) => Ok(seconds),
            None => Err(self.bad(&format!("Arg \"{name}\" is too large"))),
        }
    }

    /// Like [`Arguments::seconds`], or 0 if there is no further argument.
    pub fn seconds_or_zero(&mut self, name: &'static str) -> Result<f64, CommandError> {
        match self.rest.len() {
            0 => Ok(0.0),
            _ => self.seconds(name),
        }
    }

    /// A number of jobs, truncated to an integer, at most [`ITEMS_MAX`].
    pub fn count(&mut self, default: Option<f64>) -> Result<usize, CommandError> {
        let count = match default {
            Some(default) => self.number_or("count", default)?,
            None => self.number("count")?,
        };
        Ok(whole(count, ITEMS_MAX))
    }

    /// An offset and a count. A negative count means the maximum.
    pub fn page(&mut self) -> Result<OffsetPage, CommandError> {
        let offset = self.number_or("offset", 0.0)?;
        let count = self.number_or("count", PAGE)?;
        Ok(OffsetPage {
            offset: whole(offset, u32::MAX as usize),
            limit: match count < 0.0 {
                true => ITEMS_MAX,
                false => whole(count, ITEMS_MAX),
            },
        })
    }

    /// The remaining arguments, as names and values of options.
    pub fn options(&mut self) -> Result<Options, CommandError> {
        let given: Vec<String> = self.rest.by_ref().collect();
        if !given.len().is_multiple_of(2) {
            return Err(self.bad("Odd number of additional args"));
        }
        let mut pairs = Vec::new();
        let mut given = given.into_iter();
        while let (Some(name), Some(value)) = (given.next(), given.next()) {
            pairs.push((name, value));
        }
        Ok(Options {
            area: self.area,
            pairs,
        })
    }

    fn check_names(&self, name: &str, names: Vec<String>) -> Result<Vec<String>, CommandError> {
        if names.len() > ITEMS_MAX {
            let words = format!("Arg \"{name}\" can be given at most {ITEMS_MAX} times");
            return Err(self.bad(&words));
        }
        names
            .into_iter()
            .map(|value| self.check_name(name, value))
            .collect()
    }

    fn check_name(&self, name: &str, value: String) -> Result<String, CommandError> {
        match invalid_name_reason(&value, NAME_BYTES_MAX) {
            None => Ok(value),
            Some(wrong) => Err(self.bad(&format!("Arg \"{name}\" {wrong}"))),
        }
    }
}

/// Options by name. Of several with one name, the last counts.
pub struct Options {
    area: &'static str,
    pairs: Vec<(String, String)>,
}

impl Options {
    pub fn text(&self, name: &str) -> Option<&str> {
        let found = self.pairs.iter().rev().find(|(its, _)| its == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The names of all options, in order.
    pub fn given(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().map(|(name, _)| name.as_str())
    }

    pub fn number(&self, name: &'static str) -> Result<Option<f64>, CommandError> {
        self.read(name, |value| value.number(name))
    }

    pub fn seconds(&self, name: &'static str) -> Result<Option<f64>, CommandError> {
        self.read(name, |value| value.seconds(name))
    }

    pub fn json(&self, name: &'static str) -> Result<Option<String>, CommandError> {
        self.read(name, |value| value.json(name))
    }

    pub fn queue(&self, name: &str) -> Result<Option<QueueKey>, CommandError> {
        self.read(name, Arguments::queue)
    }

    pub fn class(&self, name: &str) -> Result<Option<String>, CommandError> {
        self.read(name, Arguments::class)
    }

    /// An integer from `min` to 2³¹ − 1. A fraction is truncated.
    pub fn integer(&self, name: &'static str, min: i64) -> Result<Option<i64>, CommandError> {
        let Some(number) = self.number(name)? else {
            return Ok(None);
        };
        #[expect(clippy::cast_possible_truncation, reason = "the limits are integers")]
        let integer = number as i64;
        if (min..=i64::from(i32::MAX)).contains(&integer) {
            return Ok(Some(integer));
        }
        let words = format!("Arg \"{name}\" must be from {min} to {}", i32::MAX);
        Err(CommandError::new(self.area, &words))
    }

    /// A JSON list of names. An empty table of Lua is `{}`.
    pub fn names(&self, name: &'static str) -> Result<Option<Vec<String>>, CommandError> {
        type Names = UpTo<ITEMS_MAX, Name>;
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        if is_empty_table(text) {
            return Ok(Some(Vec::new()));
        }
        let arguments = Arguments::new(self.area, Vec::new());
        match body::process(text.len(), || serde_json::from_str::<Names>(text)) {
            Ok(UpTo(names)) => {
                let names = names.into_iter().map(|Name(text)| text).collect();
                arguments.check_names(name, names).map(Some)
            }
            Err(_) => {
                let words = format!("Arg \"{name}\" not JSON: a list of texts is expected");
                Err(arguments.bad(&words))
            }
        }
    }

    /// Reads the option, if it is given, as an argument.
    fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&mut Arguments) -> Result<T, CommandError>,
    ) -> Result<Option<T>, CommandError> {
        let text = self.text(name);
        text.map(|text| read(&mut Arguments::new(self.area, vec![text.to_owned()])))
            .transpose()
    }
}

/// A name in a list. Tags of qless-core can be numbers. Not an enum with serde's `untagged`, which first builds a tree
/// of any value.
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;
        impl Visitor<'_> for TextOrNumber {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a number")
            }

            fn visit_str<E>(self, text: &str) -> Result<Name, E> {
                Ok(Name(text.to_owned()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Name, E> {
                Ok(Name(number.to_string()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Name, E> {
                Ok(Name(number.to_string()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Name, E> {
                let number = serde_json::Number::from_f64(number);
                Ok(Name(number.map(|it| it.to_string()).unwrap_or_default()))
            }
        }
        deserializer.deserialize_any(TextOrNumber)
    }
}

/// Whether the JSON text is `{}`.
fn is_empty_table(text: &str) -> bool {
    let text = text.trim_ascii();
    let inside = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}

/// A finite number, as Lua reads decimal ones.
pub fn number(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    number.is_finite().then_some(number)
}

/// A number truncated to an integer and limited to 0 to `max`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is clamped"
)]
fn whole(number: f64, max: usize) -> usize {
    number.clamp(0.0, max as f64) as usize
}
