//! Networks that an explanation retrained: which samples they kept, and what they say.

use crate::Fallible;
use crate::work::Done;
use mercer::data::Source;
use mercer::data::folder::digest;
use mercer::data::random::stream;
use mercer::job::train::TrainingSpec;
use mercer::lens::lds::{Datamodelling, Uncertainty, datamodelling};
use ndarray::{Array2, ArrayView2, Axis, s};
use rand::seq::SliceRandom;
use serde_json::Value;
use std::path::Path;

/// Networks of random halves: a row per half.
pub(crate) struct Retrained {
    kept: Array2<bool>,
    /// The log-odds of test samples, by two networks per half.
    outputs: [Array2<f64>; 2],
    /// Halves that choose settings, and are not scored.
    n_choice: usize,
    seed: u64,
}

impl Retrained {
    /// Reads what `explain` kept beside its results. It names files by what they depend on.
    pub(crate) fn read(
        (trained, explained): (&Done, &Done),
        (n_train, n_halves): (usize, usize),
        classes: &[usize],
        seed: u64,
    ) -> Fallible<Self> {
        let record = json(&explained.folder.join("run.json"))?;
        let fingerprint = |setting: &str| {
            let inputs = record["inputs"].as_array().map_or(&[][..], Vec::as_slice);
            let own = inputs.iter().find(|input| input["setting"] == setting);
            own.and_then(|own| own["fingerprint"].as_str()).ok_or("an explanation records its inputs")
        };
        let what = format!("{} {} {} {classes:?}", fingerprint("data")?, fingerprint("labels")?, fingerprint("test")?);
        let training: TrainingSpec =
            serde_json::from_value(json(&trained.folder.join("run.json"))?["job"]["training"].take())?;
        let training = TrainingSpec { checkpoint_every: None, checkpoint_at: Vec::new(), ..training };
        let mut kept = Array2::from_elem((n_halves, n_train), false);
        let mut outputs = [0, 1].map(|_| Array2::zeros((n_halves, classes.len())));
        for half in 0..n_halves {
            let mut rows = shuffled(n_train, seed, &format!("validation/part {half}"));
            rows.truncate(n_train / 2);
            rows.sort_unstable();
            rows.iter().for_each(|&row| kept[(half, row)] = true);
            for (repeat, outputs) in outputs.iter_mut().enumerate() {
                let key = digest(format!("{what} {training:?} {repeat} {rows:?}").as_bytes());
                let file = explained.folder.join("retrained").join(format!("{}.npy", &key[..32]));
                let own = Source::new(file, None).open()?.read::<f64>()?;
                outputs.row_mut(half).iter_mut().zip(&own).for_each(|(slot, value)| *slot = *value);
            }
        }
        Ok(Self { kept, outputs, n_choice: n_halves / 5, seed })
    }

    /// The linear datamodelling score of scores (test × train), as the job computes it. With several settings the best on the halves
    /// that are not scored.
    pub(crate) fn score(&self, candidates: &[Array2<f64>]) -> Fallible<(usize, Datamodelling)> {
        let mut best = (f64::NEG_INFINITY, 0);
        for (at, scores) in candidates.iter().enumerate().filter(|_| candidates.len() > 1) {
            let (kept, outputs) =
                (self.kept.slice(s![..self.n_choice, ..]), self.outputs[0].slice(s![..self.n_choice, ..]));
            let quick = Uncertainty { resamples: 0, seed: self.seed };
            let found = datamodelling(scores.view(), kept, outputs, None, quick)?;
            let mean = found.score.map_or(f64::NEG_INFINITY, |score| score.mean);
            if mean > best.0 {
                best = (mean, at);
            }
        }
        let rest = |of: &Array2<f64>| of.slice(s![self.n_choice.., ..]).to_owned();
        let uncertainty = Uncertainty { seed: self.seed, ..Uncertainty::default() };
        let kept: ArrayView2<'_, bool> = self.kept.view().split_at(Axis(0), self.n_choice).1;
        let [first, again] = self.outputs.each_ref().map(rest);
        Ok((best.1, datamodelling(candidates[best.1].view(), kept, first.view(), Some(again.view()), uncertainty)?))
    }
}

/// Row numbers in random order.
pub(crate) fn shuffled(n: usize, seed: u64, name: &str) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..n).collect();
    rows.shuffle(&mut stream(seed, name));
    rows
}

/// A JSON file.
pub(crate) fn json(path: &Path) -> Fallible<Value> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}
