//! The text of an SVG: escaped strings, rounded numbers.

use std::fmt::Write;

/// The anchor of a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// An SVG that is being written.
#[derive(Debug)]
pub(super) struct Svg {
    text: String,
}

impl Svg {
    /// A white page of this size. The title is for screen readers.
    pub(super) fn new((width, height): (f64, f64), title: &str) -> Self {
        let (width, height) = (number(width), number(height));
        let mut svg = Self { text: String::new() };
        svg.put(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\" fill=\"#222\">"
        ));
        if !title.is_empty() {
            svg.put(&format!("<title>{}</title>", escape(title)));
        }
        svg.put(&format!("<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>"));
        svg
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

    pub(super) fn finish(mut self) -> String {
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
pub(super) fn escape(text: &str) -> String {
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
