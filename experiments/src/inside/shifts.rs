//! Sets of texts and images that differ, seen through networks, and halves of one set that do not.

use super::texts;
use crate::experiment::{Experiment, Needs};
use crate::explain::cifar;
use crate::images::{Images, Part};
use crate::options::Options;
use crate::report::{Cell, Drawing, Format, Report, Table};
use crate::work::{Done, Work};
use crate::{Fallible, row};
use mercer::data::random::stream;
use mercer::data::{Dataset, Source};
use mercer::job::train::TrainingSpec;
use mercer::job::{ShiftJob, TrainJob};
use mercer::report::{Axis, Figure, Panel};
use mercer::spec::{DataRef, DataSpec, DecodingSpec};
use rand::seq::SliceRandom;
use serde_json::Value;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "distribution-shift",
    group: "Layers and spectra",
    title: "Data that differ",
    paper: "Chiang et al., Report on Pure Mathematics of Machine Learning, 2023, section 3",
    claim: "Two sets that are not drawn alike are told apart in the last hidden layer, where the labels say nothing of it (figure 13a); \
        halves of one set are not.",
    published: "as figures only: two principal components of GPT-2's embedding of tweets with emoticons and of tweets about subjects.",
    setting: "The report's tweets with emoticons and GPT-2 are not to be had here. In their place: CoLA's development sentences from the \
        sources of its training set against those from others; phrases of SST-2 against the sentences of its test set; the hand-labelled \
        tweets of Sentiment140 about half of their topics, chosen at random, against those about the others, all through the embedding \
        of all-MiniLM-L6-v2; MNIST against notMNIST through a small network trained on MNIST, and CIFAR-10 against SVHN through a \
        ResNet-20, in all their layers. The null is random halves of the first set. The tests are those of `mercer shift`, with 199 \
        permutations; the report looks at pictures and at a linear classifier. *p* is corrected for all tests and layers, the other \
        p-values are of single tests in the last layer, and ½ is chance for the classifier's held-out accuracy. The claim counts as held \
        if every difference has p ≤ 0.05 and no pair of halves is below 0.05 over the number of such pairs. `--nets DIR` names the folder \
        of minilm_l6.onnx and tokenizer.json, `--more-data DIR` that with `text` (`cola/cola_public.zip`, `sst2/*.tsv.gz`, \
        `sentiment140_manual_test.csv`), `notmnist` (IDX) and `svhn` (an npz file of crops); what is not there is left out.",
    cost: 900,
    needs: &[Needs::Mnist, Needs::Cifar10],
    options: &["samples", "halves", "epochs", "nets", "more-data", "only"],
    threads: 0,
    run,
};

const ARCH: &str = include_str!("../explain/nets/audit_mnist.toml");

/// A difference counts as found up to this.
const LEVEL: f64 = 0.05;

/// Two sets of samples and what they are seen through.
struct Pair {
    name: &'static str,
    net: PathBuf,
    layers: Vec<String>,
    old: DataSpec,
    new: DataRef,
    /// Whether both are halves of one set.
    is_null: bool,
}

/// What the parts have in common.
struct Sets<'a> {
    work: Work,
    options: &'a Options,
    /// Samples of a set, at most.
    most: usize,
    /// Pairs of halves of a set.
    halves: usize,
    pairs: Vec<Pair>,
    notes: Vec<String>,
}

fn run(options: &Options) -> Fallible<Report> {
    let (most, halves) = (options.number("samples", 1000, 24)?, options.number("halves", 3, 1)?);
    let work = Work::new(options)?;
    let mut sets = Sets { work, options, most, halves, pairs: Vec::new(), notes: Vec::new() };
    sets.texts()?;
    sets.digits()?;
    sets.photos()?;
    let Sets { work, pairs, notes, .. } = sets;
    let mut table = Table::new("")
        .column("old and new samples", Format::Plain)
        .column("numbers", Format::Plain)
        .column("p", Format::Fixed(3));
    for name in ["MMD, linear", "MMD, Gaussian", "classifier", "first PC"] {
        table = table.column(name, Format::Fixed(3));
    }
    let mut table = table
        .column("classifier's accuracy", Format::Percent(1))
        .column("kept of the old", Format::Percent(0))
        .column("kept of the new", Format::Percent(0))
        .column("most in layer", Format::Plain)
        .column("s", Format::Fixed(0));
    let nulls = pairs.iter().filter(|pair| pair.is_null).count();
    let (mut holds, mut figure) = (!pairs.is_empty(), Figure::new("").columns(4));
    for (at, pair) in pairs.iter().enumerate() {
        let job = ShiftJob {
            test: vec![pair.new.clone()],
            layers: pair.layers.clone(),
            seed: options.seed,
            ..ShiftJob::new(Some(pair.net.clone()), pair.old.clone())
        };
        let done = work.run(&format!("pair-{at}"), &job)?;
        let p = done.number("/p_value")?;
        holds &= if pair.is_null { p > LEVEL / nulls.max(1) as f64 } else { p <= LEVEL };
        table.push(cells(pair, &done)?);
        if !pair.is_null {
            figure = panels(figure, pair.name, &done)?;
        }
    }
    let figures = match options.quick {
        true => Vec::new(),
        false => vec![Drawing {
            file: "shifts.svg",
            caption: "Old (data) and new (test) samples on the first principal component of the last layer, and on the first two",
            figure,
        }],
    };
    Ok(Report { tables: vec![table], figures, notes, holds: Some(holds), earlier: work.earlier() })
}

impl Sets<'_> {
    /// A folder or nothing, with a note.
    fn folder(&mut self, name: &str, what: &str) -> Option<PathBuf> {
        let found = self.options.more(name);
        if found.is_none() {
            self.notes.push(format!("There was no folder {name}, so {what} are left out."));
        }
        found
    }

    fn texts(&mut self) -> Fallible<()> {
        if !self.options.wants("text") {
            return Ok(());
        }
        let Some(folder) = self.folder("text", "the texts") else { return Ok(()) };
        let Some(nets) = self.options.path("nets") else {
            self.notes.push("There was no network for texts, so they are left out.".to_owned());
            return Ok(());
        };
        let seed = self.options.seed;
        for (name, own, null) in [
            ("CoLA: in-domain, out-of-domain", texts::cola(&folder)?, "CoLA: in-domain"),
            ("SST-2: phrases, sentences", texts::sst2(&folder)?, "SST-2: phrases"),
            ("tweets: some topics, others", texts::tweets(&folder, seed)?, "tweets: some topics"),
        ] {
            let [old, new] = own.map(|all| some(all, self.most, seed, name));
            self.text(&nets, name, (&old, &new), false)?;
            for half in 0..self.halves as u64 {
                let (a, b) = halved(&old, seed, half);
                self.text(&nets, null, (&a, &b), true)?;
            }
        }
        Ok(())
    }

    fn text(
        &mut self,
        nets: &Path,
        name: &'static str,
        (old, new): (&[String], &[String]),
        is_null: bool,
    ) -> Fallible<()> {
        let file = |part: &str, texts: &[String]| self.work.texts(&format!("text-{part}"), texts);
        let decoding = DecodingSpec { tokenizer: Some(nets.join("tokenizer.json")), ..DecodingSpec::default() };
        let old = DataSpec { data: vec![file("old", old)?], decoding, ..DataSpec::default() };
        let (net, layers) = (nets.join("minilm_l6.onnx"), vec!["embedding".to_owned()]);
        self.pairs.push(Pair { name, net, layers, old, new: file("new", new)?, is_null });
        Ok(())
    }

    /// MNIST and notMNIST through a small network.
    fn digits(&mut self) -> Fallible<()> {
        if !self.options.wants("mnist") {
            return Ok(());
        }
        let Some(letters) = self.folder("notmnist", "the letters") else { return Ok(()) };
        let mnist = self.options.set(Needs::Mnist)?;
        let epochs = self.options.number("epochs", 5, 1)?;
        let first =
            |part, most: usize| Images::chosen((Needs::Mnist, &mnist), part, |all| (0..most.min(all.len())).collect());
        let data = self.work.images("mnist", &first(Part::Train, 10 * self.most)?)?;
        let epochs = NonZeroUsize::new(epochs).ok_or("--epochs 0")?;
        let training = TrainingSpec { epochs, seed: self.options.seed, ..TrainingSpec::default() };
        let job = TrainJob { training, ..TrainJob::new(self.work.architecture("mnist", ARCH)?, data) };
        let net = self.work.run("mnist", &job)?.model();
        let own = first(Part::Test, self.most)?;
        let other = Images::idx(&letters, "t10k", 0..self.most)?;
        self.images((&net, "MNIST, notMNIST", "MNIST"), &own, &other.data[0])
    }

    fn images(
        &mut self,
        (net, name, null): (&Path, &'static str, &'static str),
        own: &Images,
        other: &Dataset,
    ) -> Fallible<()> {
        let old = self.work.images("digits", own)?;
        let new = self.work.array("letters", &other.read::<f32>()?)?;
        let pair = |name, old, new, is_null| Pair { name, net: net.to_owned(), layers: Vec::new(), old, new, is_null };
        self.pairs.push(pair(name, old, new, false));
        for half in 0..self.halves as u64 {
            let rows: Vec<usize> = (0..own.samples()).collect();
            let (a, b) = halved(&rows, self.options.seed, half);
            let part = |rows: &[usize]| -> Fallible<Images> {
                let pixels = own.data[0].select::<f32>(rows)?;
                let data = [Dataset::from_array("images", pixels.view())?];
                Ok(Images { data, classes: rows.iter().map(|&row| own.classes[row]).collect() })
            };
            let [a, b] = [("a", a), ("b", b)]
                .map(|(which, rows)| self.work.images(&format!("digits-half-{which}"), &part(&rows)?));
            self.pairs.push(pair(null, a?, b?.data.remove(0), true));
        }
        Ok(())
    }

    /// CIFAR-10 and SVHN through the ResNet-20.
    fn photos(&mut self) -> Fallible<()> {
        if !self.options.wants("cifar") {
            return Ok(());
        }
        let Some(crops) = self.folder("svhn", "the crops of house numbers") else { return Ok(()) };
        let folder = self.options.set(Needs::Cifar10)?;
        let new = cifar::crops(&self.work, &crops)?;
        let pair =
            |name, old, new, is_null| Pair { name, net: cifar::network(), layers: Vec::new(), old, new, is_null };
        let all: Vec<usize> = (0..self.most).collect();
        let old = cifar::chosen(&self.work, &folder, false, ("all", &all))?;
        self.pairs.push(pair("CIFAR-10, SVHN", old, new, false));
        for half in 0..self.halves as u64 {
            let (a, b) = halved(&all, self.options.seed, half);
            let old = cifar::chosen(&self.work, &folder, false, ("half-a", &a))?;
            let mut new = cifar::chosen(&self.work, &folder, false, ("half-b", &b))?;
            self.pairs.push(pair("CIFAR-10", old, new.data.remove(0), true));
        }
        Ok(())
    }
}

/// So many, at random.
fn some(mut all: Vec<String>, most: usize, seed: u64, name: &str) -> Vec<String> {
    all.shuffle(&mut stream(seed, name));
    all.truncate(most);
    all
}

/// Two halves, at random.
fn halved<T: Clone>(all: &[T], seed: u64, which: u64) -> (Vec<T>, Vec<T>) {
    let mut all = all.to_vec();
    all.shuffle(&mut stream(seed, &format!("half {which}")));
    let second = all.split_off(all.len() / 2);
    (all, second)
}

fn cells(pair: &Pair, done: &Done) -> Fallible<Vec<Cell>> {
    let layers = done.found["layers"].as_array().ok_or("there are no layers")?;
    let last = layers.last().ok_or("there are no layers")?;
    let tests = done.found["tests"].as_array().ok_or("there are no tests")?;
    let p = |name: &str| {
        let own = tests.iter().find(|test| test["name"] == name && test["node"] == last["node"]);
        Cell::from(own.and_then(|test| test["p_value"].as_f64()))
    };
    let most = tests.iter().max_by(|a, b| deviations(a).total_cmp(&deviations(b)));
    let (n, n_test) = (done.number("/n_samples")?, done.number("/n_test")?);
    let null = if pair.is_null { ", two halves" } else { "" };
    let mut row = row![format!("{}{null}", pair.name), format!("{n}, {n_test}"), done.number("/p_value")?];
    row.extend(["mmd-linear", "mmd-gaussian", "classifier", "pc1"].map(p));
    row.push(last["accuracy"].as_f64().into());
    row.extend([done.number("/samples/n_kept")? / n, done.number("/samples/n_kept_test")? / n_test].map(Cell::from));
    row.push(most.and_then(|test| test["node"].as_str()).unwrap_or_default().into());
    row.push(done.seconds.into());
    Ok(row)
}

fn deviations(test: &Value) -> f64 {
    test["deviations"].as_f64().unwrap_or(f64::NEG_INFINITY)
}

/// The first principal component of both sets, and the first two.
fn panels(figure: Figure, name: &str, done: &Done) -> Fallible<Figure> {
    let path = done.folder.join("samples.csv");
    let column = |name: &str| -> Fallible<Vec<f64>> {
        Ok(Source::new(&path, Some(name)).open()?.read::<f64>()?.into_iter().collect())
    };
    let (first, second) = (column("pc1")?, column("pc2")?);
    let n = done.number("/n_samples")? as usize;
    let sets = [("old", 0..n), ("new", n..first.len())];
    let points = |rows: std::ops::Range<usize>| rows.map(|row| (first[row], second[row])).collect::<Vec<_>>();
    let axis = |which: &str| Axis::linear(format!("{which} principal component"));
    Ok(figure
        .panel(Panel::density(
            name,
            "first principal component",
            sets.clone().map(|(set, rows)| (set, first[rows].to_vec())),
        ))
        .panel(Panel::scatter(name, axis("first"), axis("second"), sets.map(|(set, rows)| (set, points(rows))))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_a_partition() {
        let all: Vec<usize> = (0..21).collect();
        let (a, b) = halved(&all, 0, 0);
        assert_eq!((a.len(), b.len()), (10, 11));
        let mut both = [a.clone(), b].concat();
        both.sort_unstable();
        assert!(both == all && a != halved(&all, 0, 1).0);
    }
}
