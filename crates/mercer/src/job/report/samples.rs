//! Single samples: those that a reader would look at first.

use super::Chosen;
use super::data::{Library, Rows, Seen};
use super::figures::one;
use super::run::Run;
use super::section::{figure_id, short};
use super::words::sentence;
use crate::Error;
use crate::csv::records;
use crate::text::{bytes, grouped};
use mercer_data::folder::Blob;
use mercer_data::random::stream;
use mercer_report::page::{Browser, Example, Sample};
use mercer_run::Context;
use rand::seq::index::sample as draw;
use std::collections::{BTreeMap, BTreeSet};

/// The most samples of a browser.
pub(crate) const MOST: usize = 100;

/// Training samples that are listed for each.
const BESIDE: usize = 8;

/// Groups and classes that are listed for each: those with the largest numbers.
const GROUPS: usize = 12;

/// Files beyond this size are not searched for single samples.
const LARGE: u64 = 256 << 20;

/// The reasons for which samples are chosen, in the order in which they are shown.
const ORDER: [&str; 5] = ["asked for", "wrong", "least faithful", "most uncertain", "random"];

/// The browsers of all explanations and audits.
pub(super) fn browsers(
    runs: &[Run],
    chosen: &[Chosen],
    library: &Library,
    context: &Context,
) -> Result<Vec<Browser>, Error> {
    let mut browsers = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let browser = match run.job() {
            "explain" => explained(runs, at, chosen, library, context)?,
            "audit" => audited(runs, run, chosen, library, context)?,
            _ => None,
        };
        browsers.extend(browser.filter(|browser| !browser.samples.is_empty()));
    }
    Ok(browsers)
}

/// How many results have a browser.
fn n_browsers(runs: &[Run]) -> usize {
    runs.iter().filter(|run| matches!(run.job(), "explain" | "audit")).count()
}

/// A table of a run, unless it is too large to be searched.
fn table(run: &Run, name: &str) -> Result<Option<Blob>, Error> {
    let length = std::fs::metadata(run.path.join(name)).map_or(0, |about| about.len());
    if length > LARGE { Ok(None) } else { run.file(name) }
}

/// Why there is no browser of samples, or a browser without some of what a reader may expect.
pub(super) fn unshown(run: &Run) -> Vec<String> {
    let files: &[(&str, &str)] = match run.job() {
        "explain" => &[
            ("local.csv", "single test samples"),
            ("top.csv", "the training samples that matter for a test sample"),
            ("distribution.npy", "the distribution of the attribution of a sample"),
        ],
        "audit" => &[("review.csv", "single training samples")],
        _ => &[],
    };
    let about = |&(name, what): &(&str, &str)| {
        let length = std::fs::metadata(run.path.join(name)).map_or(0, |about| about.len());
        match (run.has(name), length > LARGE) {
            (true, false) => None,
            (false, _) => Some(format!("This page does not show {what}: the result has no {name}.")),
            (true, true) => {
                let (own, most) = (bytes(length as usize), bytes(LARGE as usize));
                Some(format!("This page does not show {what}: {name} has {own}, and files up to {most} are searched."))
            }
        }
    };
    files.iter().filter_map(about).collect()
}

/// The rows with the largest scores, in their order.
fn largest(mut scores: Vec<(f64, usize)>, most: usize) -> Vec<usize> {
    scores.retain(|(score, _)| score.is_finite());
    scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scores.into_iter().take(most).map(|(_, row)| row).collect()
}

/// The chosen rows, with the reasons; of each reason equally many.
fn choose(kinds: Vec<(&'static str, Vec<usize>)>) -> BTreeMap<usize, Vec<String>> {
    let mut reasons: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (why, rows) in kinds {
        for row in rows {
            if reasons.len() < MOST || reasons.contains_key(&row) {
                reasons.entry(row).or_default().push(why.to_owned());
            }
        }
    }
    reasons
}

/// Random rows, the same for the same number of samples.
fn random(n: usize, most: usize) -> Vec<usize> {
    let mut rows = draw(&mut stream(0, "report/samples"), n, most.min(n)).into_vec();
    rows.sort_unstable();
    rows
}

/// The rows that the user named.
fn named(chosen: &[Chosen], n: usize) -> Vec<usize> {
    chosen
        .iter()
        .filter_map(|own| match own {
            Chosen::Row(row) if *row < n => Some(*row),
            _ => None,
        })
        .collect()
}

/// Another run on the same test samples, with the row of a sample in it.
fn beside<'a>(runs: &'a [Run], job: &str, print: Option<&str>) -> Option<&'a Run> {
    runs.iter().find(|run| run.job() == job && print.is_some() && run.fingerprint("test") == print)
}

fn explained(
    runs: &[Run],
    at: usize,
    chosen: &[Chosen],
    library: &Library,
    context: &Context,
) -> Result<Option<Browser>, Error> {
    let run = &runs[at];
    let Some(local) = table(run, "local.csv")? else { return Ok(None) };
    let print = run.fingerprint("test");
    let sure = beside(runs, "uncertainty", print);
    let probabilities = [array(sure, "map_probabilities.npy")?, array(sure, "probabilities.npy")?];
    let (mut wrong, mut unfaithful, mut uncertain) = (Vec::new(), Vec::new(), Vec::new());
    let mut n = 0;
    for (row, cells) in records(&local).skip(1).enumerate() {
        let number = |at: usize| cells.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(f64::NAN);
        if cells.len() < 9 {
            continue;
        }
        n = row + 1;
        if !cells[1].is_empty() && cells[1] != cells[3] {
            wrong.push((-number(5), row));
        }
        unfaithful.push((number(7).abs(), row));
        uncertain.push((-number(5).abs(), row));
    }
    if let Some(array) = &probabilities[1]
        && array.n_samples() == n
    {
        uncertain = entropies(array)?;
    }
    let each = MOST / 4;
    let mut kinds = vec![("asked for", named(chosen, n))];
    for (kind, why, scores) in [
        (Chosen::Wrong, "wrong", Some(wrong)),
        (Chosen::Unfaithful, "least faithful", Some(unfaithful)),
        (Chosen::Uncertain, "most uncertain", Some(uncertain)),
        (Chosen::Random, "random", None),
    ] {
        if chosen.contains(&kind) {
            kinds.push((why, scores.map_or_else(|| random(n, each), |scores| largest(scores, each))));
        }
    }
    let reasons = choose(kinds);
    let classes: Vec<String> = names(run, "/classes");
    let groups = {
        let own = names(run, "/summary/groups");
        if own.is_empty() { classes.clone() } else { own }
    };
    let (test, train) = (library.of(run, "test").ok(), library.of(run, "data").ok());
    let rows = Rows::of(run, run.number("/n_train").unwrap_or(0.0) as usize, train.as_deref(), context);
    let mut texts = texts_of(test.as_deref(), &reasons.keys().copied().collect());
    let distribution = match std::fs::metadata(run.path.join("distribution.npy")).map_or(u64::MAX, |about| about.len())
    {
        length if length <= LARGE => run.array("distribution.npy")?,
        _ => None,
    };
    let functions = Functions::of(runs, print)?;
    let mut browser = Browser::new(format!("Test samples of {}", run.place), n_browsers(runs));
    let mut predicted: BTreeMap<usize, String> = BTreeMap::new();
    for (row, cells) in records(&local).skip(1).enumerate() {
        let Some(why) = reasons.get(&row).filter(|_| cells.len() >= 9) else { continue };
        let number = |at: usize| cells[at].parse::<f64>().unwrap_or(f64::NAN);
        predicted.insert(row, cells[3].clone());
        let mut sample =
            Sample { name: cells[0].clone(), why: why.clone(), warning: sentence(&cells[8]), ..Sample::default() };
        if let Some(test) = &test {
            sample.picture = browser.picture(&format!("test {row}"), || test.picture(row));
        }
        sample.text = texts.remove(&row).unwrap_or_default();
        if !cells[1].is_empty() {
            sample.facts.push(("label".to_owned(), cells[1].clone()));
        }
        sample.facts.push(("network".to_owned(), cells[3].clone()));
        sample.facts.push(("surrogate".to_owned(), cells[4].clone()));
        sample.facts.push(("log-odds of the network".to_owned(), short(number(5))));
        sample.facts.push(("log-odds of the surrogate".to_owned(), short(number(6))));
        sample.marks.push((figure_id(at, "faithfulness.svg"), vec![number(6), number(5)]));
        if let Some(array) = &distribution
            && row < array.n_samples()
        {
            sample.distribution = boxes(&one(array, row)?, &groups);
        }
        if let [Some(own), Some(other)] = &probabilities
            && row < own.n_samples().min(other.n_samples())
        {
            let (own, other) = (one(own, row)?, one(other, row)?);
            sample.facts.push(("entropy of the network".to_owned(), short(entropy(&own))));
            sample.facts.push(("entropy with uncertainty".to_owned(), short(entropy(&other))));
            sample.probabilities = probable(&classes, &own, Some(&other));
        }
        if let Some(functions) = &functions {
            functions.place(row, &mut sample)?;
        }
        browser.samples.push(sample);
    }
    if let Some(top) = table(run, "top.csv")? {
        let mut found: BTreeMap<usize, Vec<(String, f64)>> = BTreeMap::new();
        for cells in records(&top).skip(1) {
            let (Some(row), true) = (cells[0].parse::<usize>().ok(), cells.len() >= 5) else { continue };
            // Samples are in order: nothing follows after the last one.
            if predicted.last_key_value().is_some_and(|(last, _)| row > *last) {
                break;
            }
            let ranked = cells[2].parse::<i64>().is_ok_and(|rank| (1..=BESIDE as i64).contains(&rank));
            if ranked && predicted.get(&row).is_some_and(|class| *class == cells[1]) {
                found.entry(row).or_default().push((cells[3].clone(), cells[4].parse().unwrap_or(f64::NAN)));
            }
        }
        let order: Vec<usize> = predicted.keys().copied().collect();
        let wanted = found.values().flatten().filter_map(|(name, _)| rows.row(name)).collect();
        let texts = texts_of(train.as_deref(), &wanted);
        for (position, row) in order.into_iter().enumerate() {
            for (name, value) in found.remove(&row).unwrap_or_default() {
                let own = rows.row(&name);
                let label = own.and_then(|own| train.as_ref()?.class(own)).unwrap_or_default().to_owned();
                let picture = own.and_then(|own| {
                    let train = train.as_ref()?;
                    browser.picture(&format!("train {own}"), || train.picture(own))
                });
                let text = own.and_then(|own| texts.get(&own)).cloned().unwrap_or_default();
                browser.samples[position].examples.push(Example { name, label, value, picture, text });
            }
        }
    }
    // Those that a reader would look at first are first.
    browser.samples.sort_by_key(|own| ORDER.iter().position(|why| own.why.iter().any(|own| own == why)));
    browser.note = note(&browser, n, "test");
    for (setting, kind) in [("test", "test"), ("data", "training")] {
        if let Err(why) = library.of(run, setting) {
            browser.note.push_str(&format!(" The {kind} samples themselves are not shown: {why}."));
        }
    }
    Ok(Some(browser))
}

fn audited(
    runs: &[Run],
    run: &Run,
    chosen: &[Chosen],
    library: &Library,
    context: &Context,
) -> Result<Option<Browser>, Error> {
    let Some(review) = table(run, "review.csv")? else { return Ok(None) };
    let n = run.number("/n_samples").unwrap_or(0.0) as usize;
    let seen = library.of(run, "data");
    let train = seen.as_ref().ok().cloned();
    let rows = Rows::of(run, n, train.as_deref(), context);
    let mut found = Vec::new();
    let suspicious = if chosen.contains(&Chosen::Wrong) { MOST / 2 } else { 0 };
    let by_chance: BTreeSet<usize> =
        if chosen.contains(&Chosen::Random) { random(n, MOST / 4).into_iter().collect() } else { BTreeSet::new() };
    let asked: BTreeSet<usize> = named(chosen, n).into_iter().collect();
    let mut browser = Browser::new(format!("Training samples of {}", run.place), n_browsers(runs));
    for (rank, cells) in records(&review).skip(1).enumerate() {
        if cells.len() < 6 || browser.samples.len() >= MOST {
            continue;
        }
        let row = rows.row(&cells[1]);
        let mut why = Vec::new();
        for (yes, word) in [
            (rank < suspicious, "most suspicious"),
            (row.is_some_and(|row| asked.contains(&row)), "asked for"),
            (by_chance.contains(&rank), "random"),
        ] {
            why.extend(yes.then(|| word.to_owned()));
        }
        if why.is_empty() {
            continue;
        }
        let mut sample = Sample { name: cells[1].clone(), why, warning: sentence(&cells[5]), ..Sample::default() };
        if let (Some(train), Some(row)) = (&train, row) {
            sample.picture = browser.picture(&format!("train {row}"), || train.picture(row));
        }
        let score = cells[4].parse::<f64>().map_or_else(|_| cells[4].clone(), short);
        for (name, text) in
            [("rank", cells[0].clone()), ("label", cells[2].clone()), ("suggested", cells[3].clone()), ("score", score)]
        {
            sample.facts.push((name.to_owned(), text));
        }
        found.push(row);
        browser.samples.push(sample);
    }
    let texts = texts_of(train.as_deref(), &found.iter().flatten().copied().collect());
    for (sample, row) in browser.samples.iter_mut().zip(found) {
        sample.text = row.and_then(|row| texts.get(&row)).cloned().unwrap_or_default();
    }
    browser.note = note(&browser, n, "training");
    if let Err(why) = seen {
        browser.note.push_str(&format!(" The samples themselves are not shown: {why}."));
    }
    Ok(Some(browser))
}

/// How the samples were chosen.
fn note(browser: &Browser, n: usize, kind: &str) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for why in browser.samples.iter().flat_map(|own| &own.why) {
        if !reasons.contains(&why.as_str()) {
            reasons.push(why);
        }
    }
    let mut text = format!(
        "{} of {} {kind} samples: {}. Pick one to see what is known about it; the ‹samples› setting chooses others.",
        grouped(browser.samples.len()),
        grouped(n),
        reasons.join(", ")
    )
    .replace("‹samples›", "--samples");
    if browser.left_out() > 0 {
        text.push_str(&format!(" {} pictures are left out, to keep the page small.", grouped(browser.left_out())));
    }
    text
}

/// The texts of some samples, if they are texts.
fn texts_of(seen: Option<&Seen>, rows: &BTreeSet<usize>) -> BTreeMap<usize, String> {
    seen.map(|seen| seen.texts(rows)).unwrap_or_default()
}

fn array(run: Option<&Run>, name: &str) -> Result<Option<mercer_data::Dataset>, Error> {
    run.map_or(Ok(None), |run| run.array(name))
}

fn names(run: &Run, pointer: &str) -> Vec<String> {
    let list = run.result.pointer(pointer).and_then(|list| list.as_array());
    list.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn entropy(probabilities: &[f64]) -> f64 {
    -probabilities.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>()
}

/// The entropy of every row, a few rows at a time.
fn entropies(array: &mercer_data::Dataset) -> Result<Vec<(f64, usize)>, Error> {
    let mut found = Vec::with_capacity(array.n_samples());
    for batch in array.batches::<f64>(4096)? {
        for row in batch?.rows.outer_iter() {
            let own: Vec<f64> = row.iter().copied().collect();
            found.push((entropy(&own), found.len()));
        }
    }
    Ok(found)
}

/// The groups with the largest mean attributions, from the statistics of `distribution.npy`.
fn boxes(statistics: &[f64], groups: &[String]) -> Vec<(String, [f64; 6])> {
    let all = statistics.chunks_exact(8).zip(groups).filter(|(own, _)| own[0] > 0.0);
    let mut all: Vec<(String, [f64; 6])> =
        all.map(|(own, name)| (name.clone(), [own[5], own[2], own[3], own[4], own[6], own[1]])).collect();
    if all.len() > GROUPS {
        all.sort_by(|a, b| b.1[5].abs().total_cmp(&a.1[5].abs()));
        all.truncate(GROUPS);
    }
    all
}

/// The most probable classes, with both probabilities.
fn probable(classes: &[String], own: &[f64], other: Option<&[f64]>) -> Vec<(String, f64, Option<f64>)> {
    let name = |at: usize| classes.get(at).cloned().unwrap_or_else(|| at.to_string());
    let mut all: Vec<(String, f64, Option<f64>)> =
        own.iter().enumerate().map(|(at, &p)| (name(at), p, other.and_then(|other| other.get(at).copied()))).collect();
    if all.len() > GROUPS {
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.truncate(GROUPS);
    }
    all
}

/// Eigenfunctions that were evaluated on the same samples.
struct Functions {
    psi: mercer_data::Dataset,
    values: Vec<f64>,
    /// The figure, if it shows these samples.
    figure: Option<String>,
}

impl Functions {
    fn of(runs: &[Run], print: Option<&str>) -> Result<Option<Self>, Error> {
        for (at, run) in runs.iter().enumerate().filter(|(_, run)| run.job() == "eigen") {
            for (setting, file) in [("data", "psi_data.npy"), ("test", "psi.npy")] {
                if print.is_none() || run.fingerprint(setting) != print {
                    continue;
                }
                let values = run.result["values"].as_array().into_iter().flatten().filter_map(|x| x.as_f64()).collect();
                if let Some(psi) = run.array(file)? {
                    let figure = (setting == "data").then(|| figure_id(at, "functions.svg"));
                    return Ok(Some(Self { psi, values, figure }));
                }
            }
        }
        Ok(None)
    }

    /// The coordinates of a sample, `√μ ψ`.
    fn place(&self, row: usize, sample: &mut Sample) -> Result<(), Error> {
        if row >= self.psi.n_samples() {
            return Ok(());
        }
        let own = one(&self.psi, row)?;
        let scaled: Vec<f64> = own.iter().zip(&self.values).map(|(psi, mu)| psi * mu.max(0.0).sqrt()).collect();
        let named = scaled.iter().take(6).enumerate().map(|(j, &x)| (format!("√μ ψ, {}", j + 1), x));
        sample.coordinates = named.collect();
        if let (Some(figure), [x, y, z, ..]) = (&self.figure, &scaled[..]) {
            sample.marks.push((figure.clone(), vec![*x, *y, *z]));
        }
        Ok(())
    }
}
