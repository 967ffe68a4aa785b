//! How jobs fared under each policy, as an SVG: for each span of waits, or of slowdowns, a bar for each policy with its part of the jobs.

use std::fmt::Write as _;

use crate::metrics::Fared;
use crate::replay::Replay;

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Wait,
    Slowdown,
}

/// Upper ends of the spans, and their names; the last has none.
type Spans = ([f64; 7], [&'static str; 8]);

const WAITS: Spans =
    ([60.0, 600.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0, 604_800.0], ["1 min", "10 min", "1 h", "4 h", "12 h", "1 d", "7 d", "more"]);
const SLOWDOWNS: Spans = ([1.1, 2.0, 5.0, 10.0, 50.0, 100.0, 1_000.0], ["1.1", "2", "5", "10", "50", "100", "1000", "more"]);

/// Told apart by people who do not see all colours (Okabe and Ito's set).
const COLOURS: [&str; 7] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#f0e442"];

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 70.0;
const BOTTOM: f64 = 50.0;

/// The part of the jobs in each span.
fn parts(fared: &[Fared], subject: Subject) -> [f64; 8] {
    let ends = subject.spans().0;
    let mut counts = [0.0; 8];
    for one in fared {
        let value = if subject == Subject::Wait { one.wait } else { one.bounded_slowdown };
        counts[ends.partition_point(|end| *end < value)] += 1.0;
    }
    counts.map(|count| count / fared.len().max(1) as f64)
}

impl Subject {
    fn spans(self) -> Spans {
        if self == Subject::Wait { WAITS } else { SLOWDOWNS }
    }

    fn title(self) -> &'static str {
        if self == Subject::Wait { "wait, up to" } else { "bounded slowdown, up to" }
    }
}

/// An SVG document.
pub fn draw(replays: &[Replay], subject: Subject, title: &str) -> String {
    let all: Vec<[f64; 8]> = replays.iter().map(|replay| parts(&replay.fared, subject)).collect();
    let most = all.iter().flatten().copied().fold(0.1, f64::max);
    // Up to the next tenth.
    let tenths = (most * 10.0).ceil();
    let floor = HEIGHT - BOTTOM;
    let height = |part: f64| (floor - TOP) * part * 10.0 / tenths;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"24\" font-size=\"16\">{}</text>\n",
        escape(title)
    );
    for tenth in 0..=tenths as u32 {
        let y = floor - height(f64::from(tenth) / 10.0);
        _ = writeln!(svg, "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>");
        _ = writeln!(svg, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{} %</text>", LEFT - 6.0, y + 4.0, tenth * 10);
    }
    let group = (WIDTH - LEFT) / 8.0;
    let bar = group * 0.84 / replays.len().max(1) as f64;
    for (span, name) in subject.spans().1.iter().enumerate() {
        let x = LEFT + group * span as f64;
        _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{name}</text>", x + group / 2.0, floor + 18.0);
        for (i, (replay, parts)) in replays.iter().zip(&all).enumerate() {
            let tall = height(parts[span]);
            _ = writeln!(
                svg,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{bar:.1}\" height=\"{tall:.1}\" fill=\"{}\"><title>{}: {:.1} %</title></rect>",
                x + group * 0.08 + bar * i as f64,
                floor - tall,
                COLOURS[i % COLOURS.len()],
                escape(&replay.policy),
                parts[span] * 100.0
            );
        }
    }
    _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        LEFT + (WIDTH - LEFT) / 2.0,
        HEIGHT - 10.0,
        subject.title()
    );
    let step = (WIDTH - LEFT) / replays.len().max(1) as f64;
    for (i, replay) in replays.iter().enumerate() {
        let x = LEFT + step * i as f64;
        _ = writeln!(svg, "<rect x=\"{x:.1}\" y=\"38\" width=\"12\" height=\"12\" fill=\"{}\"/>", COLOURS[i % COLOURS.len()]);
        _ = writeln!(svg, "<text x=\"{:.1}\" y=\"49\">{}</text>", x + 18.0, escape(&replay.policy));
    }
    svg.push_str("</svg>\n");
    svg
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
