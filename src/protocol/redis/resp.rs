//! Redis' wire protocol: commands are arrays of bulk strings or inline words; replies have types (RESP2 and RESP3,
//! Redis serialization protocol specification).

use bytes::{Buf, Bytes, BytesMut};

/// Maximum size of a command, in bytes.
pub const COMMAND_BYTES_MAX: usize = 16 << 20;

/// Maximum number of arguments of a command: as many jobs as a request over HTTP may name, and options.
pub const ARGUMENTS_MAX: usize = 10_100;

/// Maximum size of a line: an inline command, or a length.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Maximum number and size of arguments before a client has presented its token.
const ANONYMOUS_ARGUMENTS_MAX: usize = 10;
const ANONYMOUS_BYTES_MAX: usize = 4 << 10;

/// Maximum size of a command, or of a line, before a client has presented its token. Each of thousands of connections of
/// strangers can occupy this, and it is not counted as memory of requests.
const ANONYMOUS_COMMAND_BYTES_MAX: usize = 8 << 10;

/// A command: its name and its arguments.
pub type Command = Vec<Bytes>;

/// Reads commands. It keeps what it has read of an incomplete one, so that each byte is read once.
#[derive(Debug, Default)]
pub struct Reader {
    arguments: Command,
    /// Arguments that are still to come.
    missing: usize,
    /// The length of the argument that is being read.
    length: Option<usize>,
    /// The announced lengths of the command's arguments so far.
    announced: usize,
    /// The memory of the arguments that have arrived.
    arrived: usize,
    /// Bytes of the next line that have no line end.
    searched: usize,
}

/// Bytes that are not a command. The connection ends after the reply that says so.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// Arguments with fewer bytes are copied.
const COPIED_BYTES: usize = 16 << 10;

impl Reader {
    /// The next command; `None` if it is incomplete. An empty one has no arguments and no reply. A client that
    /// `is_anonymous` has lower limits.
    ///
    /// # Errors
    /// If the bytes are not a command, or if the command is too large.
    pub fn next(
        &mut self,
        input: &mut BytesMut,
        is_anonymous: bool,
    ) -> Result<Option<Command>, Malformed> {
        if self.missing == 0 {
            let Some(first) = input.first().copied() else {
                return Ok(None);
            };
            let Some(line) = self.line(input, is_anonymous)? else {
                return Ok(None);
            };
            if first != b'*' {
                return Ok(Some(inline(&line, is_anonymous)?));
            }
            self.begin(&line, is_anonymous)?;
        }
        while self.missing > 0 {
            if !self.argument(input, is_anonymous)? {
                return Ok(None);
            }
        }
        (self.announced, self.arrived) = (0, 0);
        Ok(Some(std::mem::take(&mut self.arguments)))
    }

    /// Whether a part of a command has been taken from the input.
    pub fn is_inside(&self) -> bool {
        self.missing > 0
    }

    /// The memory of the arguments of the incomplete command that have arrived, in bytes. The announced length of an
    /// argument does not count, because a client that announces much need not send it.
    pub fn arrived(&self) -> usize {
        self.arrived
    }

    fn begin(&mut self, line: &[u8], is_anonymous: bool) -> Result<(), Malformed> {
        let count = number(line).ok_or(Malformed("Protocol error: invalid multibulk length"))?;
        if is_anonymous && count > ANONYMOUS_ARGUMENTS_MAX {
            return Err(Malformed(
                "Protocol error: unauthenticated multibulk length",
            ));
        }
        if count > ARGUMENTS_MAX {
            return Err(Malformed("Protocol error: too many arguments"));
        }
        self.missing = count;
        Ok(())
    }

    /// Reads one argument. Returns whether it was complete.
    fn argument(&mut self, input: &mut BytesMut, is_anonymous: bool) -> Result<bool, Malformed> {
        let length = match self.length {
            Some(length) => length,
            None => {
                if input.first().is_some_and(|byte| *byte != b'$') {
                    return Err(Malformed("Protocol error: expected '$'"));
                }
                let Some(line) = self.line(input, is_anonymous)? else {
                    return Ok(false);
                };
                self.announce(&line, is_anonymous)?
            }
        };
        if input.len() < length + 2 {
            return Ok(false);
        }
        // A short argument does not keep the buffer in which it arrived.
        let argument = match input.split_to(length) {
            short if length < COPIED_BYTES => Bytes::copy_from_slice(&short),
            long => long.freeze(),
        };
        if input.get(..2) != Some(b"\r\n") {
            return Err(Malformed("Protocol error: an argument is too long"));
        }
        input.advance(2);
        self.arrived += argument.len() + size_of::<Bytes>();
        self.arguments.push(argument);
        self.length = None;
        self.missing -= 1;
        Ok(true)
    }

    /// Checks the length of the argument that begins.
    fn announce(&mut self, line: &[u8], is_anonymous: bool) -> Result<usize, Malformed> {
        let length = number(line).ok_or(Malformed("Protocol error: invalid bulk length"))?;
        if is_anonymous && length > ANONYMOUS_BYTES_MAX {
            return Err(Malformed("Protocol error: unauthenticated bulk length"));
        }
        self.announced = self.announced.saturating_add(length);
        if is_anonymous && self.announced > ANONYMOUS_COMMAND_BYTES_MAX {
            return Err(Malformed("Protocol error: unauthenticated command length"));
        }
        if self.announced > COMMAND_BYTES_MAX {
            return Err(Malformed("Protocol error: the command is too large"));
        }
        self.length = Some(length);
        Ok(length)
    }

    /// The next line, without its end and without the byte that names its type.
    fn line(
        &mut self,
        input: &mut BytesMut,
        is_anonymous: bool,
    ) -> Result<Option<Bytes>, Malformed> {
        let max = match is_anonymous {
            true => ANONYMOUS_COMMAND_BYTES_MAX,
            false => LINE_BYTES_MAX,
        };
        let rest = input.get(self.searched..).unwrap_or_default();
        let Some(at) = memchr::memchr(b'\n', rest) else {
            self.searched = input.len();
            if self.searched > max {
                return Err(Malformed("Protocol error: too big inline request"));
            }
            return Ok(None);
        };
        let end = self.searched + at;
        self.searched = 0;
        let mut line = input.split_to(end).freeze();
        input.advance(1);
        if line.len() > max {
            return Err(Malformed("Protocol error: too big inline request"));
        }
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        Ok(Some(line))
    }
}

/// The number after the byte that names the type of a line. -1 arguments are an empty command.
fn number(line: &[u8]) -> Option<usize> {
    let digits = std::str::from_utf8(line.get(1..)?).ok()?;
    if digits == "-1" && line.first() == Some(&b'*') {
        return Some(0);
    }
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| digits.parse().ok()).flatten()
}

/// The words of an inline command, which can be quoted. Anything but text ends the connection: a web page can make a
/// browser send a TLS handshake here, in which a line of its choice follows binary ones.
fn inline(line: &Bytes, is_anonymous: bool) -> Result<Command, Malformed> {
    let text = std::str::from_utf8(line).ok();
    let is_plain = |byte: u8| byte == b'\t' || !byte.is_ascii_control();
    let text = text.filter(|text| text.bytes().all(is_plain));
    let text = text.ok_or(Malformed("Protocol error: an inline command must be text"))?;
    // The first line of an HTTP request. A page in a browser can choose its method, which would be the command.
    let last = text.split_ascii_whitespace().next_back();
    if last.is_some_and(|word| word.starts_with("HTTP/")) {
        return Err(Malformed("this is not an HTTP server"));
    }
    let words = match text.contains(['"', '\'']) {
        true => {
            shlex::split(text).ok_or(Malformed("Protocol error: unbalanced quotes in request"))?
        }
        false => text.split_ascii_whitespace().map(str::to_owned).collect(),
    };
    if words.len() > ARGUMENTS_MAX || (is_anonymous && words.len() > ANONYMOUS_ARGUMENTS_MAX) {
        return Err(Malformed("Protocol error: too many arguments"));
    }
    Ok(words.into_iter().map(Bytes::from).collect())
}

/// The version of the protocol that a client has chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    #[default]
    Resp2,
    Resp3,
}

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Status(&'static str),
    Error(String),
    Integer(i64),
    Text(String),
    /// In RESP2 a text.
    Number(f64),
    Null,
    List(Vec<Reply>),
    /// In RESP2 a list of keys and values.
    Map(Vec<(Reply, Reply)>),
    /// A message of a channel. In RESP2 a list.
    Push(Vec<Reply>),
}

impl Reply {
    pub const OK: Reply = Reply::Status("OK");

    /// Approximately the memory that it occupies, in bytes.
    pub fn size(&self) -> usize {
        let content = match self {
            Reply::Error(text) | Reply::Text(text) => text.len(),
            Reply::List(parts) | Reply::Push(parts) => parts.iter().map(Reply::size).sum(),
            Reply::Map(pairs) => pairs
                .iter()
                .map(|(key, value)| key.size() + value.size())
                .sum(),
            Reply::Status(_) | Reply::Integer(_) | Reply::Number(_) | Reply::Null => 0,
        };
        size_of::<Reply>() + content
    }

    /// Whether it says that the command can succeed later.
    pub fn is_try_again(&self) -> bool {
        matches!(self, Reply::Error(text) if text.starts_with("TRYAGAIN"))
    }

    pub fn text(text: impl Into<String>) -> Reply {
        Reply::Text(text.into())
    }

    pub fn error(text: impl Into<String>) -> Reply {
        Reply::Error(text.into())
    }

    /// The error for a command with too few or too many arguments.
    pub fn wrong_arguments(name: &str) -> Reply {
        let name = name.to_ascii_lowercase();
        Reply::Error(format!(
            "ERR wrong number of arguments for '{name}' command"
        ))
    }

    /// An error that a script raises.
    pub fn script_error(words: &str) -> Reply {
        Reply::Error(format!("ERR user_script:1: {words}"))
    }

    /// A count, such as the length of a list.
    pub fn integer(count: usize) -> Reply {
        Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Appends the bytes of an error, which are the same in both versions.
    pub fn encode_error(&self, output: &mut Vec<u8>) {
        self.encode(Version::Resp2, output);
    }

    /// Appends the reply's bytes. Drops each element of a list after it, so that a long reply does not exist twice.
    pub fn encode_and_drop(self, version: Version, output: &mut Vec<u8>) {
        match self {
            Reply::List(items) => {
                line(b'*', &items.len().to_string(), output);
                for item in items {
                    item.encode_and_drop(version, output);
                }
            }
            reply => reply.encode(version, output),
        }
    }

    /// Appends the reply's bytes.
    pub fn encode(&self, version: Version, output: &mut Vec<u8>) {
        let is_resp3 = version == Version::Resp3;
        match self {
            Reply::Status(text) => line(b'+', text, output),
            // A line end would end the reply.
            Reply::Error(text) => {
                let text = beginning(text, ERROR_BYTES_MAX);
                line(b'-', &text.replace(['\r', '\n'], " "), output);
            }
            Reply::Integer(number) => line(b':', &number.to_string(), output),
            Reply::Text(text) => {
                line(b'$', &text.len().to_string(), output);
                // At once, so that a long text is not copied again for the line end.
                output.reserve(text.len() + 2);
                output.extend_from_slice(text.as_bytes());
                output.extend_from_slice(b"\r\n");
            }
            Reply::Number(number) if is_resp3 => line(b',', &number.to_string(), output),
            Reply::Number(number) => Reply::Text(number.to_string()).encode(version, output),
            Reply::Null => output.extend_from_slice(if is_resp3 { b"_\r\n" } else { b"$-1\r\n" }),
            Reply::List(items) => list(b'*', items, version, output),
            Reply::Push(items) => list(if is_resp3 { b'>' } else { b'*' }, items, version, output),
            Reply::Map(entries) => {
                match is_resp3 {
                    true => line(b'%', &entries.len().to_string(), output),
                    false => line(b'*', &(2 * entries.len()).to_string(), output),
                }
                for (key, value) in entries {
                    key.encode(version, output);
                    value.encode(version, output);
                }
            }
        }
    }
}

/// The longest line of an error, in bytes.
const ERROR_BYTES_MAX: usize = 1_024;

/// The characters that an error repeats of an argument.
const REPEATED_CHARS_MAX: usize = 128;

/// What an error repeats of an argument.
pub fn repeated(argument: &str) -> &str {
    let end = argument.char_indices().nth(REPEATED_CHARS_MAX);
    end.and_then(|(end, _)| argument.get(..end))
        .unwrap_or(argument)
}

/// Whole characters from the beginning of a text, up to `max` bytes.
fn beginning(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

fn line(kind: u8, text: &str, output: &mut Vec<u8>) {
    output.push(kind);
    output.extend_from_slice(text.as_bytes());
    output.extend_from_slice(b"\r\n");
}

fn list(kind: u8, items: &[Reply], version: Version, output: &mut Vec<u8>) {
    line(kind, &items.len().to_string(), output);
    for item in items {
        item.encode(version, output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_up_to_1024_bytes_and_no_line_end() {
        let encoded = |text: String| {
            let mut output = Vec::new();
            Reply::Error(text).encode(Version::Resp3, &mut output);
            String::from_utf8(output).unwrap()
        };
        for (bytes, kept) in [(1_023, 1_023), (1_024, 1_024), (1_025, 1_024)] {
            assert_eq!(
                encoded("x".repeat(bytes)),
                format!("-{}\r\n", "x".repeat(kept))
            );
        }
        // A character is not divided.
        let odd = format!("x{}", "é".repeat(600));
        assert_eq!(encoded(odd), format!("-x{}\r\n", "é".repeat(511)));
        assert_eq!(encoded("a\r\nb".to_owned()), "-a  b\r\n");
    }

    #[test]
    fn an_error_repeats_up_to_128_characters_of_an_argument() {
        for (chars, kept) in [(0, 0), (127, 127), (128, 128), (129, 128)] {
            assert_eq!(repeated(&"é".repeat(chars)), "é".repeat(kept));
        }
    }

    #[test]
    fn only_arguments_that_have_arrived_count() {
        let (mut reader, mut input) = (Reader::default(), BytesMut::new());
        for (part, is_inside, arrived) in [
            (&b"*3\r\n"[..], true, 0),
            (b"$4\r\nECHO\r\n", true, 4 + size_of::<Bytes>()),
            (b"$16000000\r\n", true, 4 + size_of::<Bytes>()),
            (b"xxxx", true, 4 + size_of::<Bytes>()),
        ] {
            input.extend_from_slice(part);
            assert_eq!(reader.next(&mut input, false), Ok(None));
            let found = (reader.is_inside(), reader.arrived());
            assert_eq!(found, (is_inside, arrived), "{part:?}");
        }
        assert_eq!(input.len(), 4, "what has arrived of the argument");
    }

    #[test]
    fn a_command_before_authentication_has_up_to_32_kib() {
        let limit = ANONYMOUS_COMMAND_BYTES_MAX;
        for (length, is_read) in [(limit - 1, true), (limit, true), (limit + 1, false)] {
            // In three arguments, because each has at most 16 KiB.
            let first = length / 2;
            let parts = [first, length - first - 1, 1];
            let mut input = BytesMut::from(&b"*3\r\n"[..]);
            for part in parts {
                input.extend_from_slice(format!("${part}\r\n{}\r\n", "x".repeat(part)).as_bytes());
            }
            let read = Reader::default().next(&mut input.clone(), true);
            assert_eq!(read.is_ok(), is_read, "{length} bytes");
            assert!(Reader::default().next(&mut input, false).is_ok());
            let mut line = BytesMut::from(&*(" ".repeat(length) + "\n"));
            let read = Reader::default().next(&mut line, true);
            assert_eq!(read.is_ok(), is_read, "a line of {length} bytes");
        }
    }

    #[test]
    fn an_inline_command_is_text() {
        for (line, is_text) in [
            (&b"ECHO \t \"\xc3\xa9\"\r\n"[..], true),
            (b"\x16\x03\x01\n", false),
            (b"ECHO \xff\n", false),
            (b"ECHO \0\n", false),
            (b"ECHO \x7f\n", false),
            (b"ECHO\rPING\r\n", false),
        ] {
            let mut input = BytesMut::from(line);
            let read = Reader::default().next(&mut input, false);
            assert_eq!(read.is_ok(), is_text, "{line:?}");
        }
    }
}
