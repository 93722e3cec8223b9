//! What was looked at: networks and data.

use super::data::{Library, Seen, plain};
use super::run::Run;
use super::section::{brief, once};
use crate::info::{Findings, Look};
use crate::text::{count, grouped, short};
use mercer_report::page::{Card, Table};
use mercer_run::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Pictures on a card.
const PICTURES: usize = 12;

/// Texts on a card.
const TEXTS: usize = 4;

/// Data that runs name, and what a reader calls them.
const DATA: [(&str, &str); 6] = [
    ("data", "Data"),
    ("test", "Test data"),
    ("eval-data", "Test data"),
    ("validation", "Validation data"),
    ("ood", "Data of another kind"),
    ("against", "Data that is compared with"),
];

/// A card per network and per data set that the runs name; each once.
pub(super) fn cards(runs: &[Run], library: &Library, context: &Context) -> Vec<Card> {
    let mut cards = Vec::new();
    let mut known: BTreeSet<PathBuf> = BTreeSet::new();
    for run in runs {
        let own = (run.job() == "train" && run.has("model.onnx")).then(|| run.path.join("model.onnx"));
        let named = run.written.job.pointer("/net").or_else(|| run.written.job.pointer("/kernel/net"));
        let named = named.and_then(|net| net.as_str()).map(PathBuf::from);
        for path in own.into_iter().chain(named) {
            // The same file, however it is named.
            let same = path.canonicalize().unwrap_or_else(|_| path.clone());
            if known.insert(same) {
                cards.push(network(&path.display().to_string(), context));
            }
        }
    }
    // The same samples in other runs: the card of the first that can show them.
    let mut at: BTreeMap<&str, usize> = BTreeMap::new();
    for run in runs {
        for (setting, what) in DATA {
            let Some(print) = run.fingerprint(setting) else { continue };
            let known = at.get(print).copied();
            if known.is_some_and(|known: usize| !is_unseen(&cards[known])) {
                continue;
            }
            let seen = library.of(run, setting);
            match known {
                Some(known) if seen.is_ok() => cards[known] = data(run, (setting, what), print, seen.as_deref()),
                Some(_) => {}
                None => {
                    at.insert(print, cards.len());
                    cards.push(data(run, (setting, what), print, seen.as_deref()));
                }
            }
        }
    }
    cards
}

/// The fact of a card whose samples cannot be shown.
const UNSEEN: &str = "samples not shown";

fn is_unseen(card: &Card) -> bool {
    card.facts.iter().any(|(name, _)| name == UNSEEN)
}

fn fact(name: &str, text: impl Into<String>) -> (String, String) {
    (name.to_owned(), text.into())
}

/// A network, as its file is now.
fn network(file: &str, context: &Context) -> Card {
    let mut card = Card { title: format!("Network {file}"), ..Card::default() };
    let found = match Look::at(file).run(context).map(|looked| looked.findings) {
        Ok(Findings::Model(found)) => found,
        Ok(_) => {
            card.facts.push(fact("not shown", "the file is no network any more"));
            return card;
        }
        Err(error) => {
            card.facts.push(fact("not shown", plain(&error)));
            return card;
        }
    };
    card.facts.push(fact("parameters", format!("{} in {}", grouped(found.n_params), count(found.n_tensors, "tensor"))));
    for input in &found.inputs {
        card.facts.push(fact("input", input.name.clone()));
    }
    for output in &found.outputs {
        card.facts.push(fact("output", output.name.clone()));
    }
    if let Some(flops) = found.flops {
        card.facts.push(fact("operations per sample", short(flops)));
    }
    if let Some(layers) = &found.layers {
        card.facts.push(fact("primitives", grouped(layers.len())));
        let mut table = Table::new("Layers", ["name", "primitive", "shape", "operations"], file);
        for layer in layers {
            let name = if layer.output.is_empty() { &layer.name } else { &layer.output };
            table.row([name.clone(), layer.primitive.to_owned(), layer.shape_text.clone(), layer.flops.to_string()]);
        }
        card.table = Some(table);
    }
    card.facts.extend(found.remarks.iter().map(|remark| fact("remark", remark.clone())));
    card
}

/// Samples: how many, of which classes, and how some of them look; or why that is not shown.
fn data(run: &Run, (setting, what): (&str, &str), print: &str, seen: Result<&Seen, &String>) -> Card {
    let place = run.written.inputs.iter().find(|input| input.setting == setting).map(|input| input.place.clone());
    let mut card = Card { title: format!("{what} {}", once(&place.unwrap_or_default())), ..Card::default() };
    match seen {
        Ok(seen) => {
            card.facts.push(fact("samples", grouped(seen.count())));
            card.facts.push(fact("each", seen.about()));
            if let (Some(names), Some(sizes)) = (seen.class_names(), seen.class_sizes()) {
                let listed: Vec<String> = names
                    .iter()
                    .zip(&sizes)
                    .take(12)
                    .map(|(name, size)| format!("{} ({})", brief(name), grouped(*size)))
                    .collect();
                let more = if names.len() > 12 { ", …" } else { "" };
                card.facts.push(fact("classes", format!("{}: {}{more}", names.len(), listed.join(", "))));
            }
            let caption = |row: usize| seen.class(row).map_or_else(|| format!("#{row}"), str::to_owned);
            for row in some(seen.count(), PICTURES) {
                let Some(picture) = seen.picture(row) else { break };
                card.pictures.push((picture, caption(row)));
            }
            for (row, text) in seen.texts(&some(seen.count(), TEXTS).collect()) {
                card.texts.push((text, caption(row)));
            }
        }
        Err(why) => {
            let key = if setting == "data" { "/n_samples" } else { "/n_test" };
            let train = || run.number("/n_train").or_else(|| run.number("/samples"));
            let n = run.number(key).or_else(|| train().filter(|_| setting == "data"));
            let n = n.filter(|_| matches!(setting, "data" | "test"));
            card.facts.extend(n.map(|n| fact("samples", grouped(n as usize))));
            card.facts.push(fact(UNSEEN, why.as_str()));
        }
    }
    card.facts.push(fact("fingerprint", print));
    card
}

/// Rows that are spread evenly.
fn some(n: usize, most: usize) -> impl Iterator<Item = usize> {
    (0..n).step_by((n / most).max(1)).take(most)
}
