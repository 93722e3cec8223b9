//! Rows of pictures or texts with captions, such as the training samples behind a prediction.

use super::draw::{SMALL, heading};
use super::panel::{Kind, Panel};
use super::picture::Picture;
use super::svg::{Anchor, GRID, OUTLINE, Svg, escape, shortened, width, wrapped};

/// The side of a picture if the figure has no size of its own.
const SIDE: f64 = 84.0;
/// The width that text cells share.
const TEXTS: f64 = 840.0;
/// The height of a text cell: five lines.
const TEXT: f64 = 5.0 * LINE + 8.0;
const LINE: f64 = 13.0;
/// Room for a caption.
const CAPTION: f64 = 18.0;
/// The widest label of a row.
const LABELS: f64 = 130.0;
/// No picture in a figure has more pixels per side: twice as many as are seen.
const PIXELS: usize = 192;
/// The longest text that is kept as the title of a cell.
const FULL: usize = 400;

/// A picture or a text with a caption.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    content: Content,
    caption: String,
    colour: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
enum Content {
    Picture(Picture),
    Text(String),
}

impl Cell {
    /// A picture over its caption. Pixels are drawn as squares, and large pictures with fewer of them.
    pub fn picture(picture: Picture, caption: impl Into<String>) -> Self {
        let small = picture.thumbnail(PIXELS);
        Self { content: Content::Picture(small), caption: caption.into(), colour: None }
    }

    /// A text over its caption: as many lines as have room.
    pub fn text(text: impl Into<String>, caption: impl Into<String>) -> Self {
        Self { content: Content::Text(text.into()), caption: caption.into(), colour: None }
    }

    /// Draws a frame in the colour with this number, such as that of a class, or 0 and 1 for the sign of an attribution.
    #[must_use]
    pub fn colour(mut self, number: usize) -> Self {
        self.colour = Some(number);
        self
    }

    fn skipped(&self) -> usize {
        match &self.content {
            Content::Picture(picture) => picture.skipped(),
            Content::Text(_) => 0,
        }
    }
}

/// A row of cells with a label.
#[derive(Clone, Debug, PartialEq)]
pub struct Strip {
    label: String,
    cells: Vec<Cell>,
}

impl Strip {
    /// A row; the label may be empty.
    pub fn new(label: impl Into<String>, cells: impl IntoIterator<Item = Cell>) -> Self {
        Self { label: label.into(), cells: cells.into_iter().collect() }
    }
}

impl Panel {
    /// Rows of pictures or texts. Unless the figure has a [size](super::Figure::panel_size) of its own, it is as large
    /// as they need.
    pub fn strips(title: impl Into<String>, rows: impl IntoIterator<Item = Strip>) -> Self {
        let rows: Vec<Strip> = rows.into_iter().collect();
        let left_out = rows.iter().flat_map(|row| &row.cells).map(Cell::skipped).sum();
        Self { kind: Kind::Strips(rows), left_out, ..Self::new(title) }
    }
}

/// The most cells of a row, and the width of the labels.
fn measure(rows: &[Strip]) -> (usize, f64) {
    let columns = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0).max(1);
    let label = rows.iter().map(|row| width(&row.label, SMALL)).fold(0.0, f64::max).min(LABELS);
    (columns, if label > 0.0 { label + 14.0 } else { 8.0 })
}

/// The room that strips need.
pub(super) fn wanted(title: &str, rows: &[Strip]) -> (f64, f64) {
    let (columns, labels) = measure(rows);
    let is_text = |cell: &Cell| matches!(cell.content, Content::Text(_));
    let texts = rows.iter().flat_map(|row| &row.cells).any(is_text);
    let cell = if texts { ((TEXTS / columns as f64).clamp(130.0, 560.0), TEXT) } else { (SIDE, SIDE - 8.0) };
    let wide = labels + columns as f64 * cell.0 + 8.0;
    (wide.min(6000.0), top(title) + rows.len().max(1) as f64 * (cell.1 + CAPTION + 6.0) + 8.0)
}

fn top(title: &str) -> f64 {
    if title.is_empty() { 8.0 } else { 28.0 }
}

pub(super) fn draw(svg: &mut Svg, title: &str, rows: &[Strip], corner: (f64, f64), size: (f64, f64)) {
    heading(svg, title, corner.0 + size.0 / 2.0, corner.1, size.0);
    let (columns, labels) = measure(rows);
    let labels = labels.min(0.4 * size.0);
    let room = ((size.0 - labels - 8.0) / columns as f64, (size.1 - top(title) - 8.0) / rows.len().max(1) as f64);
    let inner = ((room.0 - 8.0).max(4.0), (room.1 - CAPTION - 6.0).max(4.0));
    for (at, row) in rows.iter().enumerate() {
        let y = corner.1 + top(title) + at as f64 * room.1;
        for (line, text) in wrapped(&row.label, SMALL, labels - 12.0, 3).iter().enumerate() {
            let lower = y + inner.1 / 2.0 + LINE * line as f64;
            svg.text((corner.0 + labels - 8.0, lower), text, SMALL, Anchor::End, "");
        }
        if at > 0 {
            svg.line((corner.0 + 8.0, y - 3.0), (corner.0 + size.0 - 8.0, y - 3.0), GRID);
        }
        for (column, cell) in row.cells.iter().enumerate() {
            let x = corner.0 + labels + column as f64 * room.0;
            draw_cell(svg, cell, &row.label, (x + 4.0, y + 2.0), inner);
        }
    }
}

fn draw_cell(svg: &mut Svg, cell: &Cell, label: &str, (x, y): (f64, f64), (wide, high): (f64, f64)) {
    let named = [label, &cell.caption].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
    let frame = match cell.colour {
        Some(number) => format!("fill=\"none\" stroke=\"{}\" stroke-width=\"2.4\"", svg.colour(number)),
        None => OUTLINE.to_owned(),
    };
    match &cell.content {
        Content::Picture(picture) => {
            let scale = (wide / picture.width() as f64).min(high / picture.height() as f64);
            let size = (scale * picture.width() as f64, scale * picture.height() as f64);
            let from = (x + (wide - size.0) / 2.0, y + (high - size.1) / 2.0);
            svg.image(from, size, picture, &named, true);
            svg.rectangle(from, (from.0 + size.0, from.1 + size.1), &frame);
        }
        Content::Text(text) => {
            let full: String = text.chars().take(FULL).collect();
            svg.put(&format!("<g><title>{}</title>", escape(&format!("{named} – {full}"))));
            svg.rectangle((x, y), (x + wide, y + high), &frame);
            let lines = ((high - 8.0) / LINE).floor().max(1.0) as usize;
            for (at, line) in wrapped(text, SMALL, wide - 10.0, lines).iter().enumerate() {
                svg.text((x + 5.0, y + 14.0 + LINE * at as f64), line, SMALL, Anchor::Start, "");
            }
            svg.put("</g>");
        }
    }
    let caption = shortened(&cell.caption, SMALL - 1.0, wide + 4.0);
    svg.text((x + wide / 2.0, y + high + 12.0), &caption, SMALL - 1.0, Anchor::Middle, "");
}

/// What the strips show, for those who cannot see them.
pub(super) fn describe(rows: &[Strip]) -> String {
    const NAMED: usize = 40;
    let row = |row: &Strip| {
        let captions: Vec<&str> = row.cells.iter().take(NAMED).map(|cell| cell.caption.as_str()).collect();
        format!("{}: {}", row.label, captions.join(", "))
    };
    let rows: Vec<String> = rows.iter().take(NAMED).map(row).collect();
    format!("rows of samples. {}", rows.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Figure;
    use crate::figure::picture::Channels;

    fn picture(side: usize) -> Picture {
        let bytes = (0..side * side * 3).map(|at| crate::figure::thin::scrambled(at) as u8).collect();
        Picture::new(side, side, Channels::Rgb, bytes).unwrap()
    }

    #[test]
    fn pictures_have_titles_and_captions() {
        let cells = (0..4).map(|at| Cell::picture(picture(8), format!("ship & {at}")).colour(at));
        let row = Strip::new("<test> 17", cells);
        let figure = Figure::new("").panel(Panel::strips("Nearest", [row.clone(), row]));
        let svg = figure.to_svg();
        assert_eq!(svg.matches("<image ").count(), 8);
        assert_eq!(svg.matches("href=\"data:image/png;base64,iVBORw0KGgo").count(), 8);
        assert_eq!(svg.matches("image-rendering:pixelated").count(), 8);
        assert_eq!(svg.matches("<title>&lt;test&gt; 17: ship &amp; 2</title>").count(), 2);
        assert_eq!(svg.matches(">ship &amp; 2<").count(), 2);
        let desc = svg.lines().find(|line| line.starts_with("<desc>")).unwrap();
        assert!(desc.contains("&lt;test&gt; 17: ship &amp; 0, ship &amp; 1"), "{desc}");
        let bad = Picture::from_chw([f64::NAN, 0.0, 1.0, 2.0], [1, 2, 2], None).unwrap();
        let panel = Panel::strips("", [Strip::new("", [Cell::picture(bad, "")])]);
        assert_eq!(Figure::new("").panel(panel).skipped(), 1);
    }

    /// Photographs are drawn as thumbnails: ten of them take less than ten of 500 pixels would.
    #[test]
    fn large_pictures_are_made_smaller() {
        let photograph = picture(500);
        let full = photograph.to_png().len();
        let row = Strip::new("", (0..10).map(|_| Cell::picture(photograph.clone(), "")));
        let svg = Figure::new("").panel(Panel::strips("", [row])).to_svg();
        assert!(svg.len() < 2 * full && full > 700_000, "{} {full}", svg.len());
    }

    #[test]
    fn texts_are_wrapped_escaped_and_cut() {
        let long = "a <b>bold</b> word and ".repeat(500);
        let row = Strip::new("review", [Cell::text(long, "0.93"), Cell::text("", "empty"), Cell::text("one", "")]);
        let figure = Figure::new("").panel(Panel::strips("Texts", [row]));
        let svg = figure.to_svg();
        assert!(!svg.contains("<b>") && svg.contains("&lt;b&gt;bold&lt;/b&gt;") && svg.contains("…</text>"));
        assert!(svg.len() < 5000, "{}", svg.len());
        // Nothing, and much in too little room.
        let crowd = (0..50).map(|at| Strip::new("r", (0..50).map(|_| Cell::text("t", format!("{at}")))));
        for rows in [vec![], vec![Strip::new("x", [])], crowd.collect()] {
            Figure::new("").panel_size(120, 120).panel(Panel::strips("", rows)).to_svg();
        }
    }
}
