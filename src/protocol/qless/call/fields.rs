//! The fields of an item.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::ITEMS_MAX;
use crate::budget::{UpTo, wrong_text};
pub use crate::engine::invalid_name_reason;
use crate::engine::{NAME_BYTES_MAX, Time, invalid_class_reason};
use crate::memory;
use crate::protocol::qless::error::ApiError;

/// Bytes that an allocation occupies beyond what it holds.
pub const ALLOCATION_OVERHEAD: usize = 16;

/// The fields of a JSON object, as JSON text. If a name repeats, the last one counts.
#[derive(Default)]
pub struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(4);
                while let Some((Key(name), value)) = map.next_entry()? {
                    if fields.len() == ITEMS_MAX {
                        let message = format!("an object can have at most {ITEMS_MAX} fields");
                        return Err(Error::custom(message));
                    }
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<Fields<'de>, E> {
                Err(wrong_text(&self))
            }
        }
        deserializer.deserialize_any(Object)
    }
}

/// A text that borrows from the JSON where possible.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Fields<'a> {
    /// The fields of an item.
    pub fn of(item: &'a RawValue) -> Result<Fields<'a>, ApiError> {
        serde_json::from_str(item.get())
            .map_err(|_| ApiError::bad("data", "an item must be an object"))
    }

    /// The fields of an item; a string is its `id`.
    pub fn of_id_or_item(item: &'a RawValue) -> Result<Fields<'a>, ApiError> {
        if item.get().starts_with('"') {
            return Ok(Fields(vec![(Cow::Borrowed("id"), item)]));
        }
        serde_json::from_str(item.get())
            .map_err(|_| ApiError::bad("data", "an item must be an ID or an object"))
    }

    /// All fields, as JSON text.
    pub fn all(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    /// A field as JSON text, including `null`.
    pub fn get(&self, field: &str) -> Option<&'a RawValue> {
        self.0
            .iter()
            .rev()
            .find(|(name, _)| name == field)
            .map(|(_, value)| *value)
    }

    /// A required field as JSON text, including `null`.
    pub fn required(&self, field: &'static str) -> Result<&'a RawValue, ApiError> {
        self.get(field)
            .ok_or_else(|| ApiError::bad(field, &format!("{field} is missing")))
    }

    /// A text field; `None` if it is missing or `null`. Rejects NUL, which Postgres cannot store.
    pub fn text(&self, field: &'static str) -> Result<Option<Cow<'a, str>>, ApiError> {
        let text = self.read::<Option<Key<'a>>>(field, "text")?.flatten();
        match text {
            Some(Key(text)) if text.contains('\0') => Err(ApiError::bad(
                field,
                &format!("{field} must not contain the character U+0000"),
            )),
            text => Ok(text.map(|Key(text)| text)),
        }
    }

    /// The class of a job; `None` if it is missing.
    pub fn class(&self) -> Result<Option<String>, ApiError> {
        let class = self.text("klass")?.map(Cow::into_owned);
        match class.as_deref().and_then(invalid_class_reason) {
            Some(wrong) => Err(ApiError::bad("klass", &format!("klass {wrong}"))),
            None => Ok(class),
        }
    }

    /// A name; `None` if it is missing.
    pub fn name(&self, field: &'static str) -> Result<Option<String>, ApiError> {
        let Some(name) = self.text(field)? else {
            return Ok(None);
        };
        check_name(field, &name, NAME_BYTES_MAX)?;
        Ok(Some(name.into_owned()))
    }

    /// A required name.
    pub fn required_name(&self, field: &'static str) -> Result<String, ApiError> {
        self.name(field)?
            .ok_or_else(|| ApiError::bad(field, &format!("{field} is missing")))
    }

    /// A finite number; `None` if it is missing.
    pub fn number(&self, field: &'static str) -> Result<Option<f64>, ApiError> {
        // The error of serde would repeat the text, however long.
        if self
            .get(field)
            .is_some_and(|raw| raw.get().starts_with('"'))
        {
            return Err(ApiError::bad(field, &format!("{field} must be a number")));
        }
        Ok(self
            .read::<Option<f64>>(field, "a number")?
            .flatten()
            .filter(|number| number.is_finite()))
    }

    /// A duration in seconds that fits in a [`Time`].
    pub fn seconds(&self, field: &'static str) -> Result<Option<f64>, ApiError> {
        match self.number(field)? {
            Some(seconds) if Time::from_seconds(seconds).is_none() => {
                Err(ApiError::bad(field, &format!("{field} is too large")))
            }
            seconds => Ok(seconds),
        }
    }

    /// An integer from `min` to 2³¹ − 1; `None` if it is missing.
    pub fn integer(&self, field: &'static str, min: i64) -> Result<Option<i64>, ApiError> {
        let Some(number) = self.number(field)? else {
            return Ok(None);
        };
        #[expect(clippy::cast_possible_truncation, reason = "a fraction is refused")]
        let whole = number as i64;
        if number.fract() == 0.0 && (min..=i64::from(i32::MAX)).contains(&whole) {
            return Ok(Some(whole));
        }
        Err(ApiError::bad(
            field,
            &format!("{field} must be an integer from {min} to {}", i32::MAX),
        ))
    }

    /// A list of names; `None` if it is missing.
    pub fn names(&self, field: &'static str) -> Result<Option<Vec<String>>, ApiError> {
        type Names = UpTo<ITEMS_MAX, String>;
        let names = self.read::<Option<Names>>(field, "an array of strings")?;
        let Some(UpTo(names)) = names.flatten() else {
            return Ok(None);
        };
        if names.len() > ITEMS_MAX {
            return Err(ApiError::bad(
                field,
                &format!("{field} can have at most {ITEMS_MAX} entries"),
            ));
        }
        names
            .iter()
            .try_for_each(|name| check_name(field, name, NAME_BYTES_MAX))?;
        // A short name occupies many times its length.
        let occupied = |name: &String| size_of::<String>() + ALLOCATION_OVERHEAD + name.len();
        memory::count(names.iter().map(occupied).sum());
        Ok(Some(names))
    }

    fn read<T: Deserialize<'a>>(
        &self,
        field: &'static str,
        kind: &str,
    ) -> Result<Option<T>, ApiError> {
        let Some(raw) = self.get(field) else {
            return Ok(None);
        };
        serde_json::from_str(raw.get())
            .map(Some)
            .map_err(|_| ApiError::bad(field, &format!("{field} must be {kind}")))
    }
}

/// Checks that a name is not empty, not too long and contains no control characters.
pub fn check_name(field: &'static str, name: &str, bytes_max: usize) -> Result<(), ApiError> {
    match invalid_name_reason(name, bytes_max) {
        None => Ok(()),
        Some(wrong) => Err(ApiError::bad(field, &format!("{field} {wrong}"))),
    }
}
