//! The sample browser: single samples with everything that is known about them.
//!
//! A table of all samples is part of the page. What is known about one of them is data, which the script of the page
//! shows when a reader picks it. Pictures are stored once, however often they are shown.

use super::table::Table;
use crate::figure::{Picture, base64, markup_json};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The bytes that the pictures of all browsers of a page may take.
const LIMIT: usize = 600_000;

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
}

impl Browser {
    /// A browser without samples, one of several on a page.
    pub fn new(title: impl Into<String>, n_browsers: usize) -> Self {
        Self { title: title.into(), limit: LIMIT / n_browsers.max(1), ..Self::default() }
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

    /// What is known, as data for the script.
    pub(super) fn data(&self) -> String {
        let number = |x: f64| if x.is_finite() { json!((x * 1e6).round() / 1e6) } else { Value::Null };
        let samples = self.samples.iter().map(|own| {
            json!({
                "name": own.name,
                "why": own.why,
                "picture": own.picture,
                "facts": own.facts,
                "warning": own.warning,
                "examples": own.examples.iter().map(|one| json!([one.name, one.label, number(one.value), one.picture]))
                    .collect::<Vec<_>>(),
                "distribution": own.distribution.iter()
                    .map(|(name, numbers)| json!([name, numbers.map(number)])).collect::<Vec<_>>(),
                "probabilities": own.probabilities.iter()
                    .map(|(name, own, other)| json!([name, number(*own), other.map(number)])).collect::<Vec<_>>(),
                "coordinates": own.coordinates.iter().map(|(name, x)| json!([name, number(*x)])).collect::<Vec<_>>(),
                "marks": own.marks.iter()
                    .map(|(figure, place)| json!([figure, place.iter().copied().map(number).collect::<Vec<_>>()])).collect::<Vec<_>>(),
            })
        });
        markup_json(&json!({ "samples": samples.collect::<Vec<_>>(), "pictures": self.pictures }))
    }

    /// All samples as a table, for readers without the script, and to search in.
    pub(super) fn table(&self) -> Table {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.samples.iter().flat_map(|own| &own.facts) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let columns = ["sample", "chosen as"].into_iter().chain(names.iter().copied()).chain(["warning"]);
        let mut table = Table::new("The samples", columns, "");
        for own in &self.samples {
            let fact = |name: &&str| {
                own.facts.iter().find(|(own, _)| own == name).map(|(_, text)| text.clone()).unwrap_or_default()
            };
            let start = [own.name.clone(), own.why.join(", ")];
            table.row(start.into_iter().chain(names.iter().map(fact)).chain([own.warning.clone()]));
        }
        table
    }
}
