//! Whether attributions predict what happens when training data is left out.
//!
//! The linear datamodelling score (Park et al. 2023, arXiv 2303.14186): networks are retrained on random parts of the
//! data, and for every test sample the sum of the scores of the samples that were kept is compared with the log-odds of
//! the retrained network, by their rank correlation over the parts. Damping is chosen on parts that are not scored.

use super::methods::Method;
use super::retrain::{Retraining, Trial, dependence};
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::surrogate::{Classified, TestSet};
use mercer_data::random::stream;
use mercer_lens::average::Average;
use mercer_lens::lds::{Uncertainty, datamodelling};
use mercer_lens::removal::{RemovalCurve, removal_curve};
use mercer_run::Context;
use ndarray::{Array2, ArrayView2, Axis};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// How an explanation is validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Validation {
    /// The linear datamodelling score.
    Lds,
    /// Removal of the most supporting samples against random removal.
    Removal,
    /// Attributions of the network with shuffled weights.
    Sanity,
}

mercer_run::named! {
    Validation, "validation":
    Lds = "lds", "Linear datamodelling score: networks retrained on random parts of the data";
    Removal = "removal", "Networks retrained without the most supporting samples, against random ones";
    Sanity = "sanity", "Attributions of the network with its weights shuffled, layer by layer";
}

/// The settings of a validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValidateSpec {
    /// What is done.
    pub kind: Validation,
    /// Random parts of the data; for `removal`, test samples.
    pub subsets: usize,
    /// The share of the training samples in a part.
    pub fraction: f64,
    /// Networks per part, which differ in their seed.
    pub repeats: usize,
}

impl Default for ValidateSpec {
    fn default() -> Self {
        Self { kind: Validation::Lds, subsets: 50, fraction: 0.5, repeats: 1 }
    }
}

impl ValidateSpec {
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.kind == Validation::Lds && self.subsets < 10 {
            return Err(Error::new(format!("‹subsets› {}: at least 10 are needed", self.subsets)));
        }
        if !(self.fraction > 0.0 && self.fraction < 1.0) {
            return Err(Error::new(format!("‹fraction› {}: must be between 0 and 1", self.fraction)));
        }
        if !(1..=2).contains(&self.repeats) {
            return Err(Error::new(format!("‹repeats› {}: must be 1 or 2", self.repeats)));
        }
        Ok(())
    }
}

/// The findings of a validation.
#[derive(Clone, Debug, Serialize)]
pub struct ValidationFindings {
    /// What was done.
    pub kind: Validation,
    /// Networks that were retrained.
    pub n_networks: usize,
    /// The linear datamodelling score of every method, best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<MethodFindings>,
    /// Parts that chose the damping, and are not scored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen_on: Option<usize>,
    /// The largest score that the noise of training allows; with two networks per part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<f64>,
    /// The curve of `removal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removal: Option<RemovalCurve>,
    /// The stages of `sanity`, from the last layer to the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sanity: Vec<SanityFindings>,
}

impl ValidationFindings {
    /// Without findings.
    pub(super) fn new(kind: Validation, n_networks: usize) -> Self {
        let (methods, sanity) = (Vec::new(), Vec::new());
        Self { kind, n_networks, methods, chosen_on: None, ceiling: None, removal: None, sanity }
    }
}

/// A network whose weights were shuffled from a layer on.
#[derive(Clone, Debug, Serialize)]
pub struct SanityFindings {
    /// The first layer with shuffled weights; all later ones are shuffled too.
    pub layer: String,
    /// How many layers are shuffled.
    pub n_shuffled: usize,
    /// The rank correlation of the attributions with those of the trained network, over training samples; its mean
    /// over test samples.
    pub correlation: Option<Average>,
    /// The share of correct decisions of the shuffled network; none without labels.
    pub network_accuracy: Option<f64>,
}

/// The linear datamodelling score of a method.
#[derive(Clone, Debug, Serialize)]
pub struct MethodFindings {
    /// The method.
    pub method: String,
    /// Its damping, relative to the mean eigenvalue.
    pub damping: Option<f64>,
    /// The mean rank correlation over the test samples, with its interval.
    pub score: Option<Average>,
    /// The share of test samples whose correlation is significant at 5 %.
    pub significant: Option<f64>,
}

/// The parts of a validation.
pub(super) struct Validator<'a> {
    pub(super) spec: &'a ValidateSpec,
    pub(super) retraining: &'a Retraining,
    pub(super) known: &'a Classified,
    pub(super) test: &'a TestSet,
    pub(super) classes: &'a [usize],
    /// Where results go. Retrained outputs are kept there while the run lasts.
    pub(super) folder: &'a ResultFolder,
    pub(super) seed: u64,
}

impl Validator<'_> {
    fn run(&self, trials: &[Trial], context: &Context) -> Result<Vec<Vec<f64>>, Error> {
        let _phase = context.phase("retraining");
        let what = dependence(self.known, &self.test.samples.fingerprint()?, self.classes)?;
        let test = (&self.test.samples.inputs[..], self.classes);
        self.retraining.run(trials, self.known, test, (&self.folder.path().join("retrained"), &what), context)
    }

    /// The linear datamodelling score of every method.
    pub(super) fn lds(&self, methods: &[Method], context: &Context) -> Result<ValidationFindings, Error> {
        let n_train = self.known.samples.n_samples;
        let n_kept = ((self.spec.fraction * n_train as f64).round() as usize).clamp(1, n_train - 1);
        let mut kept = Array2::from_elem((self.spec.subsets, n_train), false);
        for (subset, mut row) in kept.outer_iter_mut().enumerate() {
            let mut rows: Vec<usize> = (0..n_train).collect();
            rows.shuffle(&mut stream(self.seed, &format!("validation/part {subset}")));
            rows[..n_kept].iter().for_each(|&at| row[at] = true);
        }
        let rows = |subset: usize| (0..n_train).filter(|&at| kept[(subset, at)]).collect::<Vec<_>>();
        let trials: Vec<Trial> = (0..self.spec.repeats as u64)
            .flat_map(|repeat| (0..self.spec.subsets).map(move |subset| (subset, repeat)))
            .map(|(subset, repeat)| Trial { rows: rows(subset), repeat })
            .collect();
        let outputs = self.run(&trials, context)?;
        let matrix = |from: usize| {
            Array2::from_shape_fn((self.spec.subsets, self.classes.len()), |(row, at)| outputs[from + row][at])
        };
        let first = matrix(0);
        let again = (self.spec.repeats == 2).then(|| matrix(self.spec.subsets));
        self.folder.array("parts.npy", &kept.mapv(u8::from))?;
        let both: Vec<ArrayView2<'_, f64>> = std::iter::once(&first).chain(&again).map(|own| own.view()).collect();
        let both = ndarray::stack(Axis(0), &both).map_err(|error| Error::new(format!("retrained.npy: {error}")))?;
        self.folder.array("retrained.npy", &both)?;
        // A fifth of the parts chooses the damping.
        let n_choice = self.spec.subsets / 5;
        let split = |from: ArrayView2<'_, f64>| {
            let (a, b) = from.split_at(Axis(0), n_choice);
            (a.to_owned(), b.to_owned())
        };
        let (choice_outputs, outputs) = split(first.view());
        let again = again.map(|again| split(again.view()).1);
        let (choice_kept, scored_kept) = kept.view().split_at(Axis(0), n_choice);
        let uncertainty = Uncertainty { seed: self.seed, ..Uncertainty::default() };
        let quick = Uncertainty { resamples: 0, ..uncertainty };
        let (mut found, mut ceiling) = (Vec::new(), None);
        for Method { name, candidates } in methods {
            let mut best: Option<(f64, usize)> = None;
            for (at, (_, scores)) in candidates.iter().enumerate().filter(|_| candidates.len() > 1) {
                let own = datamodelling(scores.view(), choice_kept, choice_outputs.view(), None, quick)?;
                let mean = own.score.map_or(f64::NEG_INFINITY, |score| score.mean);
                if best.is_none_or(|(most, _)| mean > most) {
                    best = Some((mean, at));
                }
            }
            let (damping, scores) = &candidates[best.map_or(0, |(_, at)| at)];
            let again = again.as_ref().map(|again| again.view());
            let own = datamodelling(scores.view(), scored_kept, outputs.view(), again, uncertainty)?;
            ceiling = ceiling.or(own.ceiling.as_ref().and_then(|ceiling| ceiling.ceiling));
            let (method, damping) = (name.clone(), *damping);
            found.push(MethodFindings { method, damping, score: own.score, significant: own.significant });
        }
        let mean = |own: &MethodFindings| own.score.as_ref().map_or(f64::NEG_INFINITY, |score| score.mean);
        found.sort_by(|a, b| mean(b).total_cmp(&mean(a)));
        let findings = ValidationFindings::new(self.spec.kind, trials.len());
        Ok(ValidationFindings { methods: found, chosen_on: Some(n_choice), ceiling, ..findings })
    }

    /// The log-odds of a test sample after its most supporting training samples were removed, against random ones.
    pub(super) fn removal(&self, scores: &Array2<f64>, context: &Context) -> Result<ValidationFindings, Error> {
        const SHARES: [f64; 4] = [0.01, 0.02, 0.05, 0.1];
        let (n_train, n_queries) = (self.known.samples.n_samples, self.spec.subsets.min(self.classes.len()));
        let counts: Vec<usize> =
            SHARES.iter().map(|share| ((share * n_train as f64).round() as usize).clamp(1, n_train - 1)).collect();
        let all: Vec<usize> = (0..n_train).collect();
        let mut trials = vec![Trial { rows: all.clone(), repeat: 0 }];
        for query in 0..n_queries {
            let mut order = all.clone();
            order.sort_by(|&a, &b| scores[(query, b)].total_cmp(&scores[(query, a)]).then(a.cmp(&b)));
            let mut random = all.clone();
            random.shuffle(&mut stream(self.seed, &format!("validation/query {query}")));
            for (removed, count) in
                [&order, &random].into_iter().flat_map(|order| counts.iter().map(move |n| (order, *n)))
            {
                let mut rows = removed[count..].to_vec();
                rows.sort_unstable();
                trials.push(Trial { rows, repeat: 0 });
            }
        }
        let outputs = self.run(&trials, context)?;
        let n = counts.len();
        let at = |query: usize, kind: usize, size: usize| outputs[1 + query * 2 * n + kind * n + size][query];
        let by_score = Array2::from_shape_fn((n, n_queries), |(size, query)| at(query, 0, size));
        let at_random = Array2::from_shape_fn((n, n_queries), |(size, query)| at(query, 1, size));
        let curve = removal_curve(&counts, &outputs[0][..n_queries], by_score.view(), at_random.view())?;
        Ok(ValidationFindings { removal: Some(curve), ..ValidationFindings::new(self.spec.kind, trials.len()) })
    }
}
