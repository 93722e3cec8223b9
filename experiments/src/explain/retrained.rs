//! Networks that an explanation retrained: which samples they kept, and what they say.

use crate::Fallible;
use crate::work::Done;
use mercer::data::Source;
use mercer::lens::lds::{Datamodelling, Uncertainty, datamodelling};
use ndarray::{Array2, ArrayView2, Axis, Ix3, s};

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
    /// Reads what an explanation found with two networks per half.
    pub(crate) fn read(explained: &Done, seed: u64) -> Fallible<Self> {
        let kept = explained.matrix("parts.npy")?.mapv(|kept| kept > 0.0);
        let outputs = Source::new(explained.folder.join("retrained.npy"), None).open()?.read::<f64>()?;
        let outputs = outputs.into_dimensionality::<Ix3>()?;
        let [first, again] = [0, 1].map(|repeat| outputs.index_axis(Axis(0), repeat).to_owned());
        let n_choice = kept.nrows() / 5;
        Ok(Self { kept, outputs: [first, again], n_choice, seed })
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
