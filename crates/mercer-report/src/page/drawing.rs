//! Figures of files, as elements of a page.
//!
//! A file may come from anywhere, so nothing of it is copied. It is read as the few elements and attributes that
//! [`Figure`](crate::Figure) writes, and written again: other elements, links, styles and scripts cannot pass. Panels
//! become elements of their own, so that they can stand beside or below each other. The dark-on-white colours become those
//! of the page.

use super::html::{NAME, shortened};
use crate::figure::{COLOURS, escape, markup_json};
use serde_json::Value;
use std::fmt::Write;

/// The panels of a figure, as elements of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    panels: Vec<String>,
    /// The share of points that was left out to keep the page small, if any: one of this many is drawn.
    every: usize,
}

/// A drawing with more bytes than this is drawn with fewer points.
const LARGE: usize = 120_000;

/// The longest description of a figure, in characters.
const SPOKEN: usize = 800;

/// Beyond this nesting or number of elements, a file is not one of ours.
const DEEPEST: usize = 12;
const LONGEST: usize = 8 << 20;

const ELEMENTS: [&str; 11] =
    ["svg", "g", "title", "desc", "rect", "text", "line", "path", "circle", "image", "metadata"];

/// Attributes that are copied if their value consists of harmless characters.
const ATTRIBUTES: [&str; 31] = [
    "x",
    "y",
    "x1",
    "y1",
    "x2",
    "y2",
    "cx",
    "cy",
    "r",
    "d",
    "width",
    "height",
    "viewBox",
    "fill",
    "fill-opacity",
    "stroke",
    "stroke-opacity",
    "stroke-width",
    "stroke-dasharray",
    "stroke-linejoin",
    "stroke-linecap",
    "font-size",
    "font-weight",
    "font-style",
    "text-anchor",
    "transform",
    "shape-rendering",
    "preserveAspectRatio",
    "image-rendering",
    "data-series",
    "data-panel",
];

/// An element, or a text between elements.
#[derive(Debug)]
enum Node {
    Element { name: &'static str, attributes: Vec<(&'static str, String)>, children: Vec<Node> },
    Text(String),
}

impl Drawing {
    /// Reads an SVG file; none if it is not one that Mercer writes.
    pub fn read(svg: &str) -> Option<Self> {
        if svg.len() > LONGEST {
            return None;
        }
        let every = svg.len().div_ceil(LARGE).max(1);
        let root = Reader { rest: svg, every, in_series: false, in_marks: false, n_marks: 0 }.root()?;
        let Node::Element { attributes, children, .. } = root else { return None };
        let size = attributes.iter().find(|(name, _)| *name == "viewBox").map(|(_, value)| value.clone())?;
        let data = children.iter().find_map(|node| match node {
            Node::Element { name: "metadata", children, .. } => match children.first() {
                Some(Node::Text(text)) => serde_json::from_str::<Value>(text).ok(),
                _ => None,
            },
            _ => None,
        });
        let spoken = |wanted: &str| {
            children.iter().find_map(|node| match node {
                Node::Element { name, children, .. } if *name == wanted => match children.first() {
                    Some(Node::Text(text)) => Some(text.clone()),
                    _ => None,
                },
                _ => None,
            })
        };
        let (title, description) = (spoken("title").unwrap_or_default(), spoken("desc").unwrap_or_default());
        let mut panels = Vec::new();
        for node in &children {
            let Node::Element { name: "g", attributes, .. } = node else { continue };
            let Some((_, place)) = attributes.iter().find(|(name, _)| *name == "data-panel") else { continue };
            let own = data.as_ref().and_then(|data| data["panels"].get(panels.len())).filter(|own| !own.is_null());
            panels.push(panel(node, place, own, (&title, &description), every));
        }
        if panels.is_empty() {
            // A figure of an earlier version: one piece, without data.
            let own = children.iter().filter(|node| {
                !matches!(node, Node::Element { name: "title" | "desc" | "metadata", .. })
                    && !is_background(node, &size)
            });
            let mut text = head(&size, &title, &description);
            own.for_each(|node| write(node, &mut text));
            text.push_str("</svg>");
            panels.push(text);
        }
        Some(Self { panels, every })
    }

    /// The drawing of a figure.
    pub fn of(figure: &crate::Figure) -> Self {
        Self::read(&figure.to_svg()).unwrap_or(Self { panels: Vec::new(), every: 1 })
    }

    /// The panels, as markup.
    pub(super) fn panels(&self) -> &[String] {
        &self.panels
    }

    /// What was left out, in words; empty if nothing was.
    pub(super) fn note(&self) -> String {
        match self.every {
            1 => String::new(),
            every => format!("One of {every} points is drawn in this page; the file of the figure has all of them."),
        }
    }

    /// The bytes of its markup.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.panels.iter().map(String::len).sum()
    }
}

fn head(size: &str, title: &str, description: &str) -> String {
    let label = match (title, description) {
        ("" | "Figure", description) => description.to_owned(),
        (title, description) if description.starts_with(title) => description.to_owned(),
        (title, description) => format!("{title}. {description}"),
    };
    let wide = size.split(' ').nth(2).unwrap_or("440");
    format!(
        "<svg role=\"img\" aria-label=\"{}\" viewBox=\"{}\" width=\"{}\" fill=\"currentColor\">",
        escape(&shortened(&label, SPOKEN)),
        escape(size),
        escape(wide)
    )
}

/// A panel as an element of its own, with its data. Thinned points are thinned in the data as well.
fn panel(node: &Node, place: &str, data: Option<&Value>, (title, whole): (&str, &str), every: usize) -> String {
    let own = data.and_then(|data| data["title"].as_str()).unwrap_or_default();
    let title = if own.is_empty() { title } else { own };
    // The sentence of this panel, if the description has one per panel.
    let sentence = whole.split(". ").find(|part| !own.is_empty() && part.starts_with(own)).unwrap_or(whole);
    let mut text = head(place, title, sentence);
    write(node, &mut text);
    if let Some(data) = data {
        let mut data = data.clone();
        shorten_names(&mut data);
        if let Some(series) = data["series"].as_array_mut().filter(|_| every > 1) {
            for own in series.iter_mut().filter(|own| own["look"] != "line") {
                for column in ["x", "y", "z", "low", "high"] {
                    if let Some(values) = own[column].as_array_mut() {
                        *values = values.iter().step_by(every).cloned().collect();
                    }
                }
            }
        }
        let _ = write!(text, "<metadata>{}</metadata>", markup_json(&data));
    }
    text.push_str("</svg>");
    text
}

/// Names of any length would not fit into a page.
fn shorten_names(data: &mut Value) {
    match data {
        Value::String(name) if name.len() > NAME => *name = shortened(name, NAME),
        Value::Array(items) => items.iter_mut().for_each(shorten_names),
        Value::Object(map) => map.values_mut().for_each(shorten_names),
        _ => {}
    }
}

/// The white rectangle behind a figure.
fn is_background(node: &Node, size: &str) -> bool {
    let Node::Element { name: "rect", attributes, .. } = node else { return false };
    let get = |wanted: &str| attributes.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_str());
    let sides: Vec<&str> = size.split(' ').collect();
    get("fill") == Some("#fff") && get("width") == sides.get(2).copied() && get("x").is_none()
}

fn write(node: &Node, text: &mut String) {
    match node {
        Node::Text(own) => text.push_str(&escape(own)),
        Node::Element { name, attributes, children } => {
            let _ = write!(text, "<{name}");
            for (name, value) in attributes.iter().filter(|(name, _)| *name != "data-panel") {
                let paint = matches!(*name, "fill" | "stroke");
                match COLOURS.iter().position(|colour| paint && colour == value) {
                    Some(at) => drop(write!(text, " {name}=\"var(--mercer-colour-{at}, {value})\"")),
                    None => drop(write!(text, " {name}=\"{}\"", escape(value))),
                }
            }
            if children.is_empty() {
                text.push_str("/>");
                return;
            }
            text.push('>');
            children.iter().for_each(|child| write(child, text));
            let _ = write!(text, "</{name}>");
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
    /// One mark of this many is kept.
    every: usize,
    in_series: bool,
    /// In a group of marks of a series.
    in_marks: bool,
    /// Marks of the series so far.
    n_marks: usize,
}

impl Reader<'_> {
    /// The whole document.
    fn root(&mut self) -> Option<Node> {
        self.rest = self.rest.trim_start();
        let root = self.element(0)?.filter(|node| matches!(node, Node::Element { name: "svg", .. }))?;
        self.rest.trim().is_empty().then_some(root)
    }

    /// An element at the beginning of the rest; `Some(None)` for one that is left out.
    fn element(&mut self, depth: usize) -> Option<Option<Node>> {
        let rest = self.rest.strip_prefix('<').filter(|_| depth < DEEPEST)?;
        let end = rest.find('>')?;
        let (tag, after) = (&rest[..end], &rest[end + 1..]);
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let name = ELEMENTS.into_iter().find(|own| *own == name)?;
        let attributes = attributes_of(name, attributes)?;
        self.rest = after;
        let before = (self.in_series, self.in_marks);
        if name == "g" {
            self.in_marks = self.in_series;
            if attributes.iter().any(|(name, _)| *name == "data-series") {
                (self.in_series, self.in_marks, self.n_marks) = (true, false, 0);
            }
        }
        let children = if closed { Vec::new() } else { self.children(name, depth)? };
        (self.in_series, self.in_marks) = before;
        if self.in_marks && matches!(name, "circle" | "rect") {
            self.n_marks += 1;
            if !(self.n_marks - 1).is_multiple_of(self.every) {
                return Some(None);
            }
        }
        Some(Some(Node::Element { name, attributes, children }))
    }

    /// What is inside an element, up to its end.
    fn children(&mut self, name: &str, depth: usize) -> Option<Vec<Node>> {
        let mut children = Vec::new();
        loop {
            let at = self.rest.find('<')?;
            let (between, rest) = self.rest.split_at(at);
            self.rest = rest;
            // Line breaks between elements are layout.
            if !between.trim_matches('\n').is_empty() {
                children.push(Node::Text(unescape(between)?));
            }
            if let Some(closing) = rest.strip_prefix("</") {
                let end = closing.find('>')?;
                self.rest = &closing[end + 1..];
                if &closing[..end] == name {
                    return Some(children);
                }
                return None;
            }
            // In HTML these hold text that ends only at their own end.
            if matches!(name, "title" | "desc" | "metadata") {
                return None;
            }
            children.extend(self.element(depth + 1)?);
        }
    }
}

/// The attributes of a tag that a page may have.
fn attributes_of(element: &str, mut text: &str) -> Option<Vec<(&'static str, String)>> {
    let mut found = Vec::new();
    loop {
        text = text.trim_start();
        if text.is_empty() {
            return Some(found);
        }
        let (name, rest) = text.split_once("=\"")?;
        let (value, rest) = rest.split_once('"')?;
        text = rest;
        let value = unescape(value)?;
        if element == "image" && name == "href" {
            let data = value.strip_prefix("data:image/png;base64,")?;
            let plain = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
            found.push(plain.then_some(("href", value))?);
        } else if name == "style" && value == "image-rendering:pixelated" {
            found.push(("image-rendering", "pixelated".to_owned()));
        } else if let Some(name) = ATTRIBUTES.into_iter().find(|own| *own == name) {
            let harmless = |c: char| c.is_ascii_alphanumeric() || " .,-+#()".contains(c);
            if !value.chars().all(harmless) || value.to_ascii_lowercase().contains("url") {
                return None;
            }
            found.push((name, value));
        } else if !matches!(name, "xmlns" | "role" | "font-family" | "color" | "class") {
            return None;
        }
    }
}

/// Text with its entities replaced; none if there are unknown ones.
fn unescape(text: &str) -> Option<String> {
    if !text.contains('&') {
        return Some(text.to_owned());
    }
    let mut found = String::with_capacity(text.len());
    let mut parts = text.split('&');
    found.push_str(parts.next()?);
    for part in parts {
        let (entity, rest) = part.split_once(';')?;
        found.push_str(match entity {
            "amp" => "&",
            "lt" => "<",
            "gt" => ">",
            "quot" => "\"",
            "#39" => "'",
            _ => return None,
        });
        found.push_str(rest);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Figure, Panel, Picture, Series, Strip};

    fn figure() -> Figure {
        let line = Series::marked_line("<b>", [(1.0, 2.0), (2.0, 4.0), (3.0, 3.0)]).errors([0.5, 0.5, 0.5]);
        let picture = Picture::from_chw((0..16).map(f64::from), [1, 4, 4], None).unwrap();
        Figure::new("A & B")
            .panel(Panel::lines("First", Axis::linear("x"), Axis::log("y"), [line]))
            .panel(Panel::named_heat_map("Second", ["a", "b"], ["c", "d"], [1.0, 2.0, 3.0, f64::NAN]))
            .panel(Panel::scatter3("Third", ["u", "v", "w"], [("p", vec![[0.0, 1.0, 2.0], [1.0, 0.0, 1.0]])]))
            .panel(Panel::strips("Fourth", [Strip::new("row", [crate::Cell::picture(picture, "one")])]))
    }

    #[test]
    fn panels_stand_alone_and_carry_their_data() {
        let drawing = Drawing::read(&figure().to_svg()).unwrap();
        assert_eq!(drawing.panels().len(), 4);
        let data = |at: usize| -> Value {
            let text = &drawing.panels()[at];
            let text = text.split("<metadata>").nth(1).unwrap().split("</metadata>").next().unwrap();
            serde_json::from_str(text).unwrap()
        };
        let first = data(0);
        assert_eq!(first["series"][0]["name"], "<b>");
        assert_eq!(first["series"][0]["y"], serde_json::json!([2, 4, 3]));
        assert_eq!(first["series"][0]["low"], serde_json::json!([1.5, 3.5, 2.5]));
        assert_eq!(first["y"]["scale"], "log");
        assert_eq!(data(1)["values"], serde_json::json!([1, 2, 3, null]));
        assert_eq!(data(2)["kind"], "space");
        assert_eq!(data(2)["series"][0]["z"].as_array().unwrap().len(), 2);
        assert!(!drawing.panels()[3].contains("<metadata>") && drawing.panels()[3].contains("href=\"data:image/png"));
        for panel in drawing.panels() {
            assert!(panel.starts_with("<svg role=\"img\" aria-label=\"") && !panel.contains("style="));
            assert!(!panel.contains("#0072B2\"") && !panel.contains(" id="));
        }
        assert!(drawing.panels()[0].contains("var(--mercer-colour-0, #0072B2)"));
    }

    /// Positions of the data area are those of the drawing: a point in the data is where its circle is.
    #[test]
    fn data_and_drawing_agree() {
        let drawing = Drawing::read(&figure().to_svg()).unwrap();
        let text = &drawing.panels()[0];
        let data: Value =
            serde_json::from_str(text.split("<metadata>").nth(1).unwrap().split("</metadata>").next().unwrap())
                .unwrap();
        let end = |axis: &str, at: usize| data[axis]["ends"][at].as_f64().unwrap();
        let (wide, high) = (data["area"][2].as_f64().unwrap(), data["area"][3].as_f64().unwrap());
        let x = (2.0 - end("x", 0)) / (end("x", 1) - end("x", 0)) * wide;
        let y = high - (4.0_f64.log10() - end("y", 0)) / (end("y", 1) - end("y", 0)) * high;
        let near = |name: &str, wanted: f64| {
            let mark = format!(" {name}=\"");
            let parts = text.split(&mark).skip(1).map(|part| part.split('"').next().unwrap());
            parts.filter_map(|part| part.parse::<f64>().ok()).any(|found| (found - wanted).abs() < 0.02)
        };
        assert!(near("cx", x) && near("cy", y), "{x} {y} in {text}");
    }

    #[test]
    fn hostile_drawings_do_not_pass() {
        let good = figure().to_svg();
        assert!(Drawing::read(&good).is_some());
        for (from, to) in [
            ("</svg>\n", "<script>alert(1)</script></svg>\n"),
            ("<title>", "<title onload=\"alert(1)\">"),
            ("<title>", "<foreignObject><title>"),
            ("<title>", "<a href=\"https://example.org\"><title>"),
            ("<title>", "<style>*{}</style><title>"),
            ("<title>", "<!-- --><title>"),
            ("data:image/png;base64,", "https://example.org/"),
            ("data:image/png;base64,", "data:image/svg+xml;base64,"),
            ("fill=\"#fff\"", "fill=\"url(https://example.org)\""),
            ("fill=\"#fff\"", "style=\"background:url(x)\""),
            ("<title>A &amp; B", "<title>A &#x41; B"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good, "{from}");
            assert_eq!(Drawing::read(&bad), None, "{to}");
        }
        for bad in ["", "<svg", "<svg>", "<html></html>", "<svg></g></svg>", "<svg viewBox=\"0 0 1 1\"><g></svg>"] {
            assert_eq!(Drawing::read(bad), None, "{bad}");
        }
        assert_eq!(Drawing::read(&"<g>".repeat(100_000)), None);
    }

    #[test]
    fn large_scatter_plots_are_thinned() {
        let points = (0..5000).map(|at| (f64::from(at), f64::from(at % 77)));
        let panel = Panel::scatter("s", Axis::linear("x"), Axis::linear("y"), [("all", points)]);
        let drawing = Drawing::of(&Figure::new("").panel(panel));
        assert!(drawing.bytes() < 130_000, "{}", drawing.bytes());
        assert!(drawing.note().starts_with("One of "));
    }
}
