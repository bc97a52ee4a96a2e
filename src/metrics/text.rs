//! The text formats in which Prometheus reads metrics: its own, version 0.0.4, and OpenMetrics 1.0.
//!
//! They differ in the names of counters and info metrics, in the lines about units, and in the last line.

use std::fmt::{Display, Write};

use super::Buckets;

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Prometheus = 0,
    OpenMetrics = 1,
}

/// The media type of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text";

impl Format {
    /// OpenMetrics if the `Accept` header names it and prefers nothing else; Prometheus' format otherwise.
    pub fn accepted(accept: &str) -> Format {
        let weight = |range: &str| {
            let weight = range
                .split(';')
                .skip(1)
                .find_map(|it| it.trim().strip_prefix("q="));
            weight.map_or(Some(1.0), |weight| weight.trim().parse::<f64>().ok())
        };
        let best = |types: &[&str]| {
            let ranges = accept.split(',').map(str::trim);
            let ranges = ranges.filter(|range| {
                let named = range.split(';').next().unwrap_or_default().trim();
                types.iter().any(|it| it.eq_ignore_ascii_case(named))
            });
            ranges.filter_map(weight).fold(0.0, f64::max)
        };
        let open = best(&[OPEN_METRICS]);
        if open > 0.0 && open >= best(&["text/plain", "text/*", "*/*"]) {
            Format::OpenMetrics
        } else {
            Format::Prometheus
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
    /// A gauge that is always 1, whose labels are the information.
    Info,
}

/// Labels of a sample: names and values.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// Metrics as text.
#[derive(Debug)]
pub struct Exposition {
    format: Format,
    text: String,
}

impl Exposition {
    pub fn new(format: Format) -> Exposition {
        let text = String::new();
        Exposition { format, text }
    }

    /// Begins a metric. `name` has no suffix for its kind (`_total`, `_info`); it ends with the unit, if there is one.
    /// `help` is one line without quotes and backslashes.
    pub fn metric(&mut self, name: &'static str, kind: Kind, help: &str) -> Metric<'_> {
        let suffix = match (self.format, kind) {
            (Format::Prometheus, Kind::Counter) => "_total",
            (Format::Prometheus, Kind::Info) => "_info",
            _ => "",
        };
        let shown = match (self.format, kind) {
            (_, Kind::Counter) => "counter",
            (_, Kind::Histogram) => "histogram",
            (Format::OpenMetrics, Kind::Info) => "info",
            (_, Kind::Gauge | Kind::Info) => "gauge",
        };
        let text = &mut self.text;
        line(text, format_args!("# HELP {name}{suffix} {help}"));
        line(text, format_args!("# TYPE {name}{suffix} {shown}"));
        let unit = ["seconds", "bytes"]
            .into_iter()
            .find(|unit| name.ends_with(unit));
        if let (Format::OpenMetrics, Some(unit)) = (self.format, unit) {
            line(text, format_args!("# UNIT {name} {unit}"));
        }
        let suffix = match kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        };
        Metric { text, name, suffix }
    }

    /// A metric with a single sample without labels.
    pub fn single(&mut self, name: &'static str, kind: Kind, help: &str, value: impl Display) {
        self.metric(name, kind, help).sample(&[], value);
    }

    /// The whole text.
    pub fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// A metric whose samples are being written.
#[derive(Debug)]
pub struct Metric<'a> {
    text: &'a mut String,
    name: &'static str,
    suffix: &'static str,
}

impl Metric<'_> {
    pub fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        self.write(self.suffix, labels, None, value);
    }

    /// The samples of a histogram.
    pub fn histogram(&mut self, labels: Labels<'_>, buckets: &Buckets) {
        let mut count = 0;
        let bounds = buckets.bounds.iter().map(|bound| format!("{bound:?}"));
        for (bound, n) in bounds.chain(["+Inf".to_owned()]).zip(&buckets.counts) {
            count += n;
            self.write("_bucket", labels, Some(&bound), count);
        }
        self.write("_sum", labels, None, buckets.sum);
        self.write("_count", labels, None, count);
    }

    fn write(
        &mut self,
        suffix: &str,
        labels: Labels<'_>,
        bound: Option<&str>,
        value: impl Display,
    ) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        let bound = bound.map(|bound| ("le", bound));
        let mut open = '{';
        for (name, value) in labels.iter().copied().chain(bound) {
            self.text.push(open);
            self.text.push_str(name);
            self.text.push_str("=\"");
            escape(self.text, value);
            self.text.push('"');
            open = ',';
        }
        if open == ',' {
            self.text.push('}');
        }
        line(self.text, format_args!(" {value}"));
    }
}

/// Appends a line. Writing to a `String` cannot fail.
fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    text.write_fmt(content).ok();
    text.push('\n');
}

/// Appends a label's value.
fn escape(text: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accept_header_selects_the_format() {
        let open = [
            "application/openmetrics-text",
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "text/plain, Application/OpenMetrics-Text",
        ];
        for accept in open {
            assert_eq!(Format::accepted(accept), Format::OpenMetrics, "{accept}");
        }
        let plain = [
            "",
            "*/*",
            "text/html,application/xhtml+xml,*/*;q=0.8",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=x",
            "application/openmetrics-text;q=0.3,text/plain;q=0.9",
        ];
        for accept in plain {
            assert_eq!(Format::accepted(accept), Format::Prometheus, "{accept}");
        }
    }

    fn written(format: Format) -> String {
        let mut all = Exposition::new(format);
        all.metric("a_b", Kind::Counter, "Counts.")
            .sample(&[("x", "1\"\\\n"), ("y", "")], 5);
        all.single("c_bytes", Kind::Gauge, "Size.", 1.5);
        all.metric("d", Kind::Info, "What.")
            .sample(&[("v", "1")], 1);
        let buckets = Buckets {
            bounds: vec![0.5, 1.0],
            counts: vec![1, 0, 2],
            sum: 9.25,
        };
        all.metric("e_seconds", Kind::Histogram, "How long.")
            .histogram(&[("q", "z")], &buckets);
        all.finish()
    }

    #[test]
    fn both_formats_are_written() {
        let histogram = "e_seconds_bucket{q=\"z\",le=\"0.5\"} 1\ne_seconds_bucket{q=\"z\",le=\"1.0\"} 1\n\
            e_seconds_bucket{q=\"z\",le=\"+Inf\"} 3\ne_seconds_sum{q=\"z\"} 9.25\ne_seconds_count{q=\"z\"} 3\n";
        let counter = "a_b_total{x=\"1\\\"\\\\\\n\",y=\"\"} 5\n";
        let plain = format!(
            "# HELP a_b_total Counts.\n# TYPE a_b_total counter\n{counter}\
             # HELP c_bytes Size.\n# TYPE c_bytes gauge\nc_bytes 1.5\n\
             # HELP d_info What.\n# TYPE d_info gauge\nd_info{{v=\"1\"}} 1\n\
             # HELP e_seconds How long.\n# TYPE e_seconds histogram\n{histogram}"
        );
        assert_eq!(written(Format::Prometheus), plain);
        let open = format!(
            "# HELP a_b Counts.\n# TYPE a_b counter\n{counter}\
             # HELP c_bytes Size.\n# TYPE c_bytes gauge\n# UNIT c_bytes bytes\nc_bytes 1.5\n\
             # HELP d What.\n# TYPE d info\nd_info{{v=\"1\"}} 1\n\
             # HELP e_seconds How long.\n# TYPE e_seconds histogram\n# UNIT e_seconds seconds\n{histogram}# EOF\n"
        );
        assert_eq!(written(Format::OpenMetrics), open);
    }
}
