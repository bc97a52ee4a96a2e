//! Draws the samples of a run as SVG.

use super::Sample;

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 110.0;

/// A title and the value of a sample.
type Series = (&'static str, fn(&Sample) -> f64);

const SERIES: [Series; 7] = [
    ("memory, MB", |it| it.memory_mb),
    ("open files", |it| it.files),
    ("database, MB", |it| it.database_mb),
    ("write-ahead log, MB", |it| it.log_mb),
    ("jobs/s", |it| it.jobs_per_s),
    ("p50, ms", |it| it.p50_ms),
    ("p99, ms", |it| it.p99_ms),
];

/// One chart for each value, from 0 to its maximum.
pub fn draw(samples: &[Sample]) -> String {
    let seconds = samples.last().map_or(1.0, |it| it.second);
    let total = (HEIGHT + 30.0) * SERIES.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{total}\" font-family=\"sans-serif\" \
         font-size=\"12\"><rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        WIDTH + 40.0
    );
    for (place, (title, value)) in SERIES.iter().enumerate() {
        let top = (HEIGHT + 30.0) * place as f64 + 20.0;
        let most = samples.iter().map(value).fold(1e-9, f64::max);
        let point = |it: &Sample| {
            let (x, y) = (
                it.second / seconds * WIDTH,
                HEIGHT - value(it) / most * HEIGHT,
            );
            format!("{:.1},{:.1}", x + 20.0, y + top)
        };
        let points: Vec<String> = samples.iter().map(point).collect();
        svg += &format!(
            "<text x=\"20\" y=\"{:.0}\">{title}, at most {most:.1}; {seconds:.0} s</text>\n<path d=\"M20 {:.0}h{WIDTH}\" \
             stroke=\"#ccc\"/>\n<polyline points=\"{}\" fill=\"none\" stroke=\"#2563eb\"/>\n",
            top - 6.0,
            top + HEIGHT,
            points.join(" ")
        );
    }
    svg + "</svg>\n"
}
