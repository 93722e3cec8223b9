//! What was looked at: networks and data.

use super::data::Seen;
use super::run::Run;
use crate::info::{Findings, Look};
use crate::text::{count, grouped, short};
use mercer_report::page::{Card, Table};
use mercer_run::Context;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Pictures on a card.
const PICTURES: usize = 12;

/// A card per network and per data set that the runs name; each once.
pub(super) fn cards(runs: &[Run], context: &Context) -> Vec<Card> {
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
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for run in runs {
        for setting in ["data", "test"] {
            let Some(print) = run.fingerprint(setting) else { continue };
            if seen.insert(print.to_owned()) {
                cards.push(data(run, setting, print));
            }
        }
    }
    cards
}

fn fact(name: &str, text: impl Into<String>) -> (String, String) {
    (name.to_owned(), text.into())
}

/// A network, as its file is now.
fn network(file: &str, context: &Context) -> Card {
    let mut card = Card { title: format!("Network {file}"), ..Card::default() };
    let looked = Look::at(file).run(context);
    let Some(Findings::Model(found)) = looked.ok().map(|looked| looked.findings) else {
        card.facts.push(fact("file", "cannot be read any more"));
        return card;
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

/// Samples: how many, of which classes, and how some of them look.
fn data(run: &Run, setting: &str, print: &str) -> Card {
    let place = run.written.inputs.iter().find(|input| input.setting == setting).map(|input| input.place.clone());
    let what = if setting == "test" { "Test data" } else { "Data" };
    let mut card = Card { title: format!("{what} {}", place.unwrap_or_default()), ..Card::default() };
    match Seen::of(run, setting) {
        Some(seen) => {
            card.facts.push(fact("samples", grouped(seen.count())));
            card.facts.push(fact("each", seen.about()));
            if let (Some(names), Some(sizes)) = (seen.class_names(), seen.class_sizes()) {
                let listed: Vec<String> = names
                    .iter()
                    .zip(&sizes)
                    .take(12)
                    .map(|(name, size)| format!("{name} ({})", grouped(*size)))
                    .collect();
                let more = if names.len() > 12 { ", …" } else { "" };
                card.facts.push(fact("classes", format!("{}: {}{more}", names.len(), listed.join(", "))));
            }
            let step = (seen.count() / PICTURES).max(1);
            for row in (0..seen.count()).step_by(step).take(PICTURES) {
                let Some(picture) = seen.picture(row) else { break };
                let caption = seen.class(row).map_or_else(|| format!("#{row}"), str::to_owned);
                card.pictures.push((picture, caption));
            }
        }
        None => {
            let key = if setting == "test" { "/n_test" } else { "/n_samples" };
            let n = run.number(key).or_else(|| run.number("/n_train")).or_else(|| run.number("/samples"));
            card.facts.extend(n.map(|n| fact("samples", grouped(n as usize))));
            card.facts.push(fact(
                "pictures",
                "none: the files are not there any more, or were read with the preprocessing of a network",
            ));
        }
    }
    card.facts.push(fact("fingerprint", print));
    card
}
