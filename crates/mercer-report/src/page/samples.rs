//! The sample browser: single samples with everything that is known about them.
//!
//! A table of all samples is part of the page. What is known about one of them is data, which the script of the page
//! shows when a reader picks it. Pictures are stored once, however often they are shown.

use super::html::{NAME, WHOLE, shortened};
use super::table::Table;
use crate::figure::{Picture, base64, markup_json};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The bytes that the pictures of all browsers of a page may take.
const LIMIT: usize = 600_000;

/// The bytes that everything else of them may take.
const DATA: usize = 400_000;

/// The longest text of an example, in characters.
const TEXT: usize = 240;

/// A browser of samples.
#[derive(Clone, Debug, Default)]
pub struct Browser {
    /// Its heading.
    pub title: String,
    /// How the samples were chosen.
    pub note: String,
    /// The samples.
    pub samples: Vec<Sample>,
    pictures: Vec<String>,
    known: BTreeMap<String, usize>,
    left_out: usize,
    spent: usize,
    limit: usize,
    room: usize,
}

/// A sample, and what is known about it.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// What it is called.
    pub name: String,
    /// Why it was chosen, such as `wrong`.
    pub why: Vec<String>,
    /// A picture of it, as [`Browser::picture`] numbers them.
    pub picture: Option<usize>,
    /// The sample itself, if it is a text.
    pub text: String,
    /// Short facts, with names.
    pub facts: Vec<(String, String)>,
    /// A warning.
    pub warning: String,
    /// Training samples that matter for it.
    pub examples: Vec<Example>,
    /// The distribution of its attribution by group: name, lower whisker, quartiles, upper whisker, mean.
    pub distribution: Vec<(String, [f64; 6])>,
    /// Probabilities with names of classes: of the network, and with uncertainty.
    pub probabilities: Vec<(String, f64, Option<f64>)>,
    /// Coordinates, with names.
    pub coordinates: Vec<(String, f64)>,
    /// Where it is in figures: the identifier of the figure, and the position in the units of its two or three axes.
    pub marks: Vec<(String, Vec<f64>)>,
}

/// A training sample that matters for another one.
#[derive(Clone, Debug, Default)]
pub struct Example {
    /// What it is called.
    pub name: String,
    /// Its label.
    pub label: String,
    /// How much it matters.
    pub value: f64,
    /// A picture of it.
    pub picture: Option<usize>,
    /// The sample itself, if it is a text.
    pub text: String,
}

impl Browser {
    /// A browser without samples, one of several on a page.
    pub fn new(title: impl Into<String>, n_browsers: usize) -> Self {
        let share = |all: usize| all / n_browsers.max(1);
        Self { title: title.into(), limit: share(LIMIT), room: share(DATA), ..Self::default() }
    }

    /// Keeps a picture under a name, once; none if there is no room left.
    pub fn picture(&mut self, name: &str, picture: impl FnOnce() -> Option<Picture>) -> Option<usize> {
        if let Some(&at) = self.known.get(name) {
            return Some(at);
        }
        let text = base64(&picture()?.thumbnail(64).to_png());
        if self.spent + text.len() > self.limit {
            self.left_out += 1;
            return None;
        }
        self.spent += text.len();
        self.pictures.push(text);
        self.known.insert(name.to_owned(), self.pictures.len() - 1);
        Some(self.pictures.len() - 1)
    }

    /// Pictures that had no room.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// What is known, as data for the script, of the first samples for which there is room; and how many these are.
    pub(super) fn data(&self) -> (usize, String) {
        let mut room = self.room;
        let mut found = Vec::new();
        for sample in &self.samples {
            let own = markup_json(&sample.data());
            let Some(left) = room.checked_sub(own.len()) else { break };
            room = left;
            found.push(own);
        }
        let pictures = markup_json(&json!(self.pictures));
        (found.len(), format!("{{\"samples\":[{}],\"pictures\":{pictures}}}", found.join(",")))
    }

    /// All samples as a table, for readers without the script, and to search in.
    pub(super) fn table(&self, n_shown: usize) -> Table {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.samples.iter().flat_map(|own| &own.facts) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let has_texts = self.samples.iter().any(|own| !own.text.is_empty());
        let start = ["sample", "text", "chosen as"].into_iter().filter(|name| has_texts || *name != "text");
        let columns = start.chain(names.iter().copied()).chain(["warning"]);
        let mut table = Table::new("The samples", columns, "");
        for own in self.samples.iter().take(n_shown) {
            let fact = |name: &&str| {
                own.facts.iter().find(|(own, _)| own == name).map(|(_, text)| text.clone()).unwrap_or_default()
            };
            let start = [Some(&own.name), has_texts.then_some(&own.text)].into_iter().flatten().cloned();
            table.row(start.chain([own.why.join(", ")]).chain(names.iter().map(fact)).chain([own.warning.clone()]));
        }
        table
    }
}

impl Sample {
    /// What is known about it, as data for the script. Names are shortened; the whole name of the sample is beside it.
    fn data(&self) -> Value {
        let number = |x: f64| if x.is_finite() { json!((x * 1e6).round() / 1e6) } else { Value::Null };
        let name = |text: &str| shortened(text, NAME);
        let short = name(&self.name);
        let example = |one: &Example| {
            let text = shortened(&one.text, TEXT);
            json!([name(&one.name), name(&one.label), number(one.value), one.picture, text])
        };
        let group = |(group, numbers): &(String, [f64; 6])| json!([name(group), numbers.map(number)]);
        let class =
            |(class, own, other): &(String, f64, Option<f64>)| json!([name(class), number(*own), other.map(number)]);
        let mark = |(figure, place): &(String, Vec<f64>)| {
            json!([figure, place.iter().copied().map(number).collect::<Vec<_>>()])
        };
        let fact = |(fact, text): &(String, String)| json!([name(fact), name(text)]);
        let mut data = json!({
            "name": short,
            "why": self.why.iter().map(|why| name(why)).collect::<Vec<_>>(),
            "picture": self.picture,
            "facts": self.facts.iter().map(fact).collect::<Vec<_>>(),
            "warning": shortened(&self.warning, 240),
            "examples": self.examples.iter().map(example).collect::<Vec<_>>(),
            "distribution": self.distribution.iter().map(group).collect::<Vec<_>>(),
            "probabilities": self.probabilities.iter().map(class).collect::<Vec<_>>(),
            "coordinates": self.coordinates.iter().map(|(own, x)| json!([name(own), number(*x)])).collect::<Vec<_>>(),
            "marks": self.marks.iter().filter(|(figure, _)| figure.len() <= NAME).map(mark).collect::<Vec<_>>(),
        });
        if !self.text.is_empty() {
            data["text"] = json!(shortened(&self.text, 3 * TEXT));
        }
        if short.len() != self.name.len() {
            data["whole"] = json!(shortened(&self.name, WHOLE / 4));
        }
        data
    }
}
