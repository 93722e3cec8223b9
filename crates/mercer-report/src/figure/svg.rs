//! The text of an SVG: escaped strings, rounded numbers.

use super::data::markup_json;
use super::palette::{colour, replaceable};
use super::picture::Picture;
use super::png::base64;
use std::fmt::Write;

/// The anchor of a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// What the figure is drawn on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Paper {
    /// A white page of its own.
    White,
    /// A page with colours of its own, which axes and text take over.
    Page,
}

/// The style of axes.
pub(super) const FRAME: &str = "stroke=\"currentColor\" stroke-opacity=\"0.7\"";
/// The style of a frame around an area.
pub(super) const OUTLINE: &str = "fill=\"none\" stroke=\"currentColor\" stroke-opacity=\"0.7\"";
/// The style of lines behind the data.
pub(super) const GRID: &str = "stroke=\"currentColor\" stroke-opacity=\"0.12\"";

/// An SVG that is being written.
#[derive(Debug)]
pub(super) struct Svg {
    text: String,
    paper: Paper,
    /// The panels so far: where they are, and their data.
    panels: Vec<serde_json::Value>,
}

impl Svg {
    /// A page of this size. The title and the description are for screen readers.
    pub(super) fn new((width, height): (f64, f64), paper: Paper, title: &str, description: &str) -> Self {
        let (width, height) = (number(width), number(height));
        let own = match paper {
            Paper::White => "color=\"#222\"",
            Paper::Page => "style=\"max-width:100%;height:auto\"",
        };
        let mut svg = Self { text: String::new(), paper, panels: Vec::new() };
        svg.put(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"system-ui, Helvetica, Arial, sans-serif\" \
             fill=\"currentColor\" {own}>"
        ));
        svg.put(&format!("<title>{}</title>", escape(title)));
        svg.put(&format!("<desc>{}</desc>", escape(description)));
        if paper == Paper::White {
            svg.put(&format!("<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>"));
        }
        svg
    }

    /// The colour of a series. A page may replace it by its own.
    pub(super) fn colour(&self, at: usize) -> String {
        match self.paper {
            Paper::White => colour(at).to_owned(),
            Paper::Page => replaceable(at),
        }
    }

    /// A line of raw markup.
    pub(super) fn put(&mut self, markup: &str) {
        self.text.push_str(markup);
        self.text.push('\n');
    }

    /// Text at a position, unless it is empty. `more` are further attributes, with a leading space.
    pub(super) fn text(&mut self, (x, y): (f64, f64), text: &str, size: f64, anchor: Anchor, more: &str) {
        if text.is_empty() {
            return;
        }
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y, size, text) = (number(x), number(y), number(size), escape(text));
        self.put(&format!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" text-anchor=\"{anchor}\"{more}>{text}</text>"
        ));
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
        self.put(&format!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" {style}/>"));
    }

    /// A rectangle between two corners, in any order.
    pub(super) fn rectangle(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        let [x, y] = [from.0.min(to.0), from.1.min(to.1)].map(number);
        let [width, height] = [(from.0 - to.0).abs(), (from.1 - to.1).abs()].map(number);
        self.put(&format!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {style}/>"));
    }

    /// A path through points, from one to the next; closed or not.
    pub(super) fn path(&mut self, points: &[(f64, f64)], closed: bool, style: &str) {
        if points.is_empty() {
            return;
        }
        let mut data = String::new();
        for (at, &(x, y)) in points.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(data, "{}{} {}", if at == 0 { "M" } else { "L" }, number(x), number(y));
        }
        if closed {
            data.push('Z');
        }
        self.put(&format!("<path d=\"{data}\" {style}/>"));
    }

    /// A picture with a title. Its pixels stay squares if it is `sharp`.
    pub(super) fn image(&mut self, corner: (f64, f64), size: (f64, f64), picture: &Picture, title: &str, sharp: bool) {
        let [x, y, width, height] = [corner.0, corner.1, size.0, size.1].map(number);
        let sharp = if sharp { " style=\"image-rendering:pixelated\"" } else { "" };
        self.put(&format!(
            "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" preserveAspectRatio=\"none\"{sharp} \
             href=\"data:image/png;base64,{}\"><title>{}</title></image>",
            base64(&picture.to_png()),
            escape(title)
        ));
    }

    /// Begins the group of a panel.
    pub(super) fn begin_panel(&mut self, corner: (f64, f64), size: (f64, f64)) {
        let [x, y, width, height] = [corner.0, corner.1, size.0, size.1].map(number);
        self.put(&format!("<g data-panel=\"{x} {y} {width} {height}\">"));
        self.panels.push(serde_json::Value::Null);
    }

    /// The data of the panel that was begun last.
    pub(super) fn keep(&mut self, data: serde_json::Value) {
        if let Some(last) = self.panels.last_mut() {
            *last = data;
        }
    }

    pub(super) fn finish(mut self) -> String {
        if self.panels.iter().any(|data| !data.is_null()) {
            let data = markup_json(&serde_json::json!({ "panels": self.panels }));
            self.put(&format!("<metadata>{data}</metadata>"));
        }
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// A coordinate with at most two decimals, from an integer: never `-0`, never an exponent.
pub(super) fn number(x: f64) -> String {
    // Far outside any page, and clipped there anyway.
    let hundredths = (x.clamp(-1e6, 1e6) * 100.0).round() as i64;
    let (whole, rest) = (hundredths.abs() / 100, hundredths.abs() % 100);
    let sign = if hundredths < 0 { "-" } else { "" };
    match rest {
        0 => format!("{sign}{whole}"),
        rest if rest % 10 == 0 => format!("{sign}{whole}.{}", rest / 10),
        rest => format!("{sign}{whole}.{rest:02}"),
    }
}

/// Text for XML: special characters are escaped, invalid ones replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// The approximate width of a text. The viewer chooses the font; this is the average of Helvetica with a little room.
pub(super) fn width(text: &str, size: f64) -> f64 {
    0.58 * size * text.chars().count() as f64
}

/// The text, or as much of its beginning as has room, with an ellipsis.
pub(super) fn shortened(text: &str, size: f64, room: f64) -> String {
    let fit = (room / (0.58 * size)).floor().max(1.0) as usize;
    if text.chars().count() <= fit {
        return text.to_owned();
    }
    text.chars().take(fit - 1).chain(['…']).collect()
}

/// A text in lines of this width, broken between words if possible. What exceeds the last line ends in an ellipsis.
pub(super) fn wrapped(text: &str, size: f64, room: f64, lines: usize) -> Vec<String> {
    let fit = (room / (0.58 * size)).floor().max(2.0) as usize;
    // No more than could be shown is looked at.
    let text: Vec<char> = text.chars().take(fit * lines + 1).map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    let mut wrapped = Vec::new();
    let mut rest = &text[..];
    while !rest.is_empty() && wrapped.len() < lines {
        if rest.len() <= fit {
            wrapped.push(rest.iter().collect::<String>());
            break;
        }
        if wrapped.len() + 1 == lines {
            wrapped.push(rest[..fit - 1].iter().chain(&['…']).collect());
            break;
        }
        let end = rest[..=fit].iter().rposition(|&c| c == ' ').filter(|&at| at > 0).unwrap_or(fit);
        wrapped.push(rest[..end].iter().collect::<String>());
        rest = &rest[end..];
        while let [' ', after @ ..] = rest {
            rest = after;
        }
    }
    wrapped
}

/// A count with its digits in groups of three.
pub(crate) fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let comma = |at: usize| if at > 0 && (digits.len() - at).is_multiple_of(3) { "," } else { "" };
    digits.chars().enumerate().map(|(at, digit)| format!("{}{digit}", comma(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_shortened_and_wrapped() {
        assert_eq!([7, 1234, 1_234_567].map(grouped), ["7", "1,234", "1,234,567"]);
        assert_eq!(shortened("abcdef", 10.0, 5.8 * 6.0), "abcdef");
        assert_eq!(shortened("abcdefg", 10.0, 5.8 * 6.0), "abcde…");
        let room = 5.8 * 8.0 + 0.1;
        assert_eq!(wrapped("the quick brown fox", 10.0, room, 9), ["the", "quick", "brown", "fox"]);
        assert_eq!(wrapped("a b c d e f g h", 10.0, room, 2), ["a b c d", "e f g h"]);
        assert_eq!(wrapped("abcdefghijklmnopqrstuvwxyz", 10.0, room, 2), ["abcdefgh", "ijklmno…"]);
        assert!(wrapped("", 10.0, room, 2).is_empty() && wrapped("a", 10.0, 0.0, 0).is_empty());
    }
}
