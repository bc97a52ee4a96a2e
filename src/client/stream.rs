//! Responses that are read while they arrive: lines and server-sent events.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::Error;

/// Maximum length of a line, and of an event, in bytes.
const LINE_BYTES_MAX: usize = 16 << 20;

/// The lines of a response.
#[derive(Debug)]
pub struct Lines {
    server: String,
    body: Incoming,
    /// What was received and not returned yet.
    buffer: BytesMut,
    /// How much of the buffer has no line break.
    searched: usize,
    is_complete: bool,
}

impl Lines {
    pub(super) fn new(server: String, body: Incoming) -> Lines {
        Lines {
            server,
            body,
            buffer: BytesMut::new(),
            searched: 0,
            is_complete: false,
        }
    }

    /// The next line, without its line break. `None` at the end. Cancel-safe.
    ///
    /// # Errors
    /// If the connection fails, or a line has more than 16 MiB.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(at) = unsearched.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + at + 1).freeze();
                self.searched = 0;
                let end = line.len() - 1;
                let line = line.slice(..end);
                let end = line.strip_suffix(b"\r").map_or(line.len(), <[u8]>::len);
                return Ok(Some(line.slice(..end)));
            }
            self.searched = self.buffer.len();
            if self.searched > LINE_BYTES_MAX {
                return Err(self.unexpected("a line has more than 16 MiB"));
            }
            if self.is_complete {
                let rest = self.buffer.split().freeze();
                self.searched = 0;
                return Ok(Some(rest).filter(|rest| !rest.is_empty()));
            }
            match self.body.frame().await {
                None => self.is_complete = true,
                Some(Err(error)) => return Err(Error::broken(&self.server, &error)),
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
            }
        }
    }

    fn unexpected(&self, why: &str) -> Error {
        Error::Unexpected {
            server: self.server.clone(),
            why: why.to_owned(),
        }
    }
}

/// A server-sent event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its name; `message` if it has none.
    pub name: String,
    pub data: String,
    /// The ID to resume after, in the header `Last-Event-ID`.
    pub id: Option<String>,
}

/// The server-sent events of a response.
#[derive(Debug)]
pub struct Events {
    lines: Lines,
    partial: Partial,
}

/// The fields of an event that is not complete yet.
#[derive(Debug, Default)]
struct Partial {
    name: String,
    /// Each line of it, and a line feed.
    data: String,
    id: Option<String>,
}

impl Partial {
    fn bytes(&self) -> usize {
        self.name.len() + self.data.len() + self.id.as_ref().map_or(0, String::len)
    }
}

impl Events {
    pub(super) fn new(lines: Lines) -> Events {
        Events {
            lines,
            partial: Partial::default(),
        }
    }

    /// The next event. `None` at the end. Cancel-safe.
    ///
    /// # Errors
    /// If the connection fails, or an event has more than 16 MiB.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        while let Some(line) = self.lines.next().await? {
            if let Some(event) = self.partial.add(&String::from_utf8_lossy(&line)) {
                return Ok(Some(event));
            }
            if self.partial.bytes() > LINE_BYTES_MAX {
                return Err(self.lines.unexpected("an event has more than 16 MiB"));
            }
        }
        Ok(None)
    }
}

impl Partial {
    /// Adds a line. Returns the event that it ends.
    fn add(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let Partial { name, mut data, id } = std::mem::take(self);
            self.id.clone_from(&id);
            data.pop()?;
            let name = if name.is_empty() {
                "message".to_owned()
            } else {
                name
            };
            return Some(Event { name, data, id });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            "id" => self.id = Some(value.to_owned()),
            // Comments, and fields that this client does not use.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_a_name_data_and_the_last_id() {
        let text =
            ": a comment\nid: 7\nevent: put\ndata: one\ndata:two\n\n\ndata\n\nevent: lost\n\n";
        let mut partial = Partial::default();
        let events: Vec<Event> = text.lines().filter_map(|line| partial.add(line)).collect();
        let event = |name: &str, data: &str| Event {
            name: name.to_owned(),
            data: data.to_owned(),
            id: Some("7".to_owned()),
        };
        assert_eq!(events, [event("put", "one\ntwo"), event("message", "")]);
    }

    #[test]
    fn each_line_counts_towards_the_size_of_an_event() {
        let mut partial = Partial::default();
        for line in [
            "data",
            "data:",
            "data: ab",
            "event: put",
            "id: 7",
            ": a comment",
        ] {
            partial.add(line);
        }
        assert_eq!(partial.bytes(), "\n\nab\n".len() + "put".len() + "7".len());
    }
}
