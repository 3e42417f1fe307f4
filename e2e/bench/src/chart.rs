//! One picture: pods a second, vanilla beside Spillway. Pure.

use std::fmt::Write;

use crate::report::Comparison;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 70.0;
const COLOURS: [(&str, &str); 2] = [("vanilla, on both clusters", "#8c96a3"), ("through Spillway", "#1f6feb")];

struct Group {
    lines: [String; 2],
    rates: [Option<f64>; 2],
}

pub fn render(pairs: &[Comparison<'_>]) -> String {
    let groups: Vec<_> = pairs.iter().map(group).collect();
    let most = groups.iter().flat_map(|group| group.rates).flatten().fold(1.0, f64::max);
    let (step, top) = scale(most);
    let plot = HEIGHT - TOP - BOTTOM;
    let y = |rate: f64| HEIGHT - BOTTOM - rate / top * plot;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"16\">Pods a second, from the order to the last one Ready</text>\n"
    );
    // Writing to a String cannot fail.
    for (index, (name, colour)) in COLOURS.iter().enumerate() {
        let x = LEFT + 200.0 * index as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"36\" width=\"12\" height=\"12\" fill=\"{colour}\"/><text x=\"{}\" y=\"46\">{name}</text>",
            x + 18.0
        );
    }
    let mut line = 0.0;
    while line <= top + step / 2.0 {
        let at = y(line);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{line}</text>",
            WIDTH - 20.0,
            LEFT - 8.0,
            at + 4.0
        );
        line += step;
    }
    let slot = (WIDTH - LEFT - 20.0) / groups.len().max(1) as f64;
    let bar = (slot * 0.35).min(60.0);
    for (index, group) in groups.iter().enumerate() {
        let middle = LEFT + slot * (index as f64 + 0.5);
        for ((rate, (_, colour)), side) in group.rates.iter().zip(COLOURS).zip([-1.0, 0.0]) {
            let Some(rate) = rate else { continue };
            let (x, at) = (middle + side * bar, y(*rate));
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{at:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{rate:.1}</text>",
                bar - 2.0,
                HEIGHT - BOTTOM - at,
                x + bar / 2.0,
                at - 4.0
            );
        }
        for (line, text) in group.lines.iter().enumerate() {
            let _ = writeln!(
                svg,
                "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
                HEIGHT - BOTTOM + 20.0 + 16.0 * line as f64
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn group(pair: &Comparison<'_>) -> Group {
    let case = pair.case;
    let link = if case.rtt_ms == 0 { String::new() } else { format!(", {} ms", case.rtt_ms) };
    Group {
        lines: [format!("{} pods", case.pods), format!("{}, {}{link}", case.load, case.limits)],
        rates: [pair.vanilla, Some(pair.spillway)]
            .map(|figures| figures.map(|figures| pair.pods() / figures.start.seconds)),
    }
}

/// A round distance of the lines, and the uppermost one.
fn scale(most: f64) -> (f64, f64) {
    let power = 10f64.powf((most / 4.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| step * 5.0 >= most);
    let step = step.unwrap_or(power * 10.0);
    (step, (most / step).ceil() * step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::System;
    use crate::report::comparisons;
    use crate::report::tests::run;

    #[test]
    fn lines_are_at_round_numbers_and_enclose_every_bar() {
        assert_eq!(scale(64.0), (20.0, 80.0));
        assert_eq!(scale(9.0), (2.0, 10.0));
        assert_eq!(scale(100.0), (20.0, 100.0));
    }

    #[test]
    fn a_case_without_vanilla_has_one_bar() {
        let runs = [run(System::Vanilla, 0, 4.0), run(System::Spillway, 0, 5.0), run(System::Spillway, 50, 8.0)];
        let svg = render(&comparisons(&runs));
        assert_eq!(svg.matches(COLOURS[0].1).count(), 2, "legend and one bar");
        assert_eq!(svg.matches(COLOURS[1].1).count(), 3);
        assert!(svg.contains(">12.5<") && svg.contains("100 pods") && svg.ends_with("</svg>\n"));
    }
}
