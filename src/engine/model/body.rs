//! The body of a job.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

/// A body longer than this, in bytes, has a row of its own in `long_bodies`, which is read only for verbs that return
/// it and written only if the body changes. Other texts that are longer are read only for verbs that need them
/// (`unit_of_work/long_parts.rs`).
pub const LONG: usize = 16 * 1024;

/// Characters of a long body that its stub repeats; lists show no more.
const STUB_CHARS: usize = 1_000;

/// Text that is opaque to the engine. Clones share it.
#[derive(Clone, PartialEq, Eq)]
pub struct Body(Text);

#[derive(Clone, PartialEq, Eq)]
enum Text {
    Read(Arc<str>),
    /// The size in bytes of a body that was not loaded.
    Unread(usize),
}

impl Body {
    /// A body of this size that was not loaded.
    pub fn unread(bytes: usize) -> Body {
        Body(Text::Unread(bytes))
    }

    /// The body in the column `jobs.body`: the text itself, or the stub of a long one, which is not loaded.
    pub fn from_column(text: String) -> Body {
        match Body::stub_bytes(&text) {
            Some(bytes) => Body::unread(bytes),
            None => Body::from(text),
        }
    }

    /// The size of a long body, if this text of the column `jobs.body` is its stub.
    pub fn stub_bytes(text: &str) -> Option<usize> {
        text.strip_prefix('<')?.get(..10)?.parse().ok()
    }

    /// What the column `jobs.body` has for this body: the text, or a stub of `<`, the size in bytes with 10 digits, and
    /// the first 1,000 characters. `None` if the body was not loaded.
    pub fn column(&self) -> Option<Cow<'_, str>> {
        let text = self.read()?;
        if !self.is_long() {
            return Some(Cow::Borrowed(text));
        }
        let end = text.char_indices().nth(STUB_CHARS);
        let start = end.and_then(|(end, _)| text.get(..end)).unwrap_or(text);
        Some(Cow::Owned(format!("<{:010}{start}", text.len())))
    }

    /// Whether the body has a row of its own. A short body that looks like a stub has one, too.
    pub fn is_long(&self) -> bool {
        match &self.0 {
            Text::Read(text) => text.len() > LONG || text.starts_with('<'),
            Text::Unread(_) => true,
        }
    }

    /// The text, if it was loaded.
    pub fn read(&self) -> Option<&str> {
        match &self.0 {
            Text::Read(text) => Some(text),
            Text::Unread(_) => None,
        }
    }

    /// The text, if it was loaded, without a copy.
    pub fn shared(&self) -> Option<Arc<str>> {
        match &self.0 {
            Text::Read(text) => Some(Arc::clone(text)),
            Text::Unread(_) => None,
        }
    }

    /// The size in bytes, even if not loaded.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Text::Read(text) => text.len(),
            Text::Unread(bytes) => *bytes,
        }
    }
}

/// The text. Verbs that use it must set `Needs::bodies`, or the body must be short.
impl Deref for Body {
    type Target = str;

    fn deref(&self) -> &str {
        debug_assert!(
            self.read().is_some(),
            "a verb reads a body that it did not ask for"
        );
        self.read().unwrap_or_default()
    }
}

impl Default for Body {
    fn default() -> Body {
        Body::from("")
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Body {
        Body(Text::Read(text.into()))
    }
}

impl From<String> for Body {
    fn from(text: String) -> Body {
        Body(Text::Read(text.into()))
    }
}

impl From<Body> for String {
    fn from(body: Body) -> String {
        body.to_string()
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let unread = || ser::Error::custom("the body was not read");
        serializer.serialize_str(self.read().ok_or_else(unread)?)
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Body, D::Error> {
        String::deserialize(deserializer).map(Body::from)
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes())
    }
}
