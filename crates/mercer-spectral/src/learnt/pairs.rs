//! Pairs of views as a kernel: contrastive neural eigenmaps (Deng, Shi, Zhang, Cui, Lu and Zhu 2022, arXiv 2210.12637).
//!
//! Two views `x`, `x'` of the same thing have a joint density `p(x, x')`, and `κ(x, x') = p(x, x') / (p(x) p(x'))` is a
//! kernel that is only averaged, never evaluated: `E_{p(x)p(x')}[κ f(x) g(x')] = E_{p(x,x')}[f(x) g(x')]`. On a batch
//! of `b` pairs, `n = 2b` rows, that is `(1/n) Σ ψ_i(x) ψ_j(x')` over both orders of each pair, which makes it
//! symmetric. In terms of a kernel matrix, `K = n·S` with `S` the exchange of the views.
//!
//! The first eigenfunction of `κ` is the constant, with `μ = 1`. It carries no information and is skipped: we learn the
//! eigenfunctions of `κ − 1`, which are all the others, so `K = n·S − 1 1ᵀ`.

use super::augment::Augmentation;
use super::draws::{Draws, Eval, FINISH, Pool, SecondMoments, same_samples};
use crate::error::{Result, SpectralError};
use mercer_data::random::stream;
use mercer_data::{Dataset, shuffled};
use mercer_kernel::Real;
use mercer_run::Context;
use ndarray::{Array2, ArrayView2, Axis};
use serde_json::{Value, json};

/// Batches of pairs.
pub struct Pairs<'a, T: Real> {
    data: &'a [Dataset],
    pool: Pool<'a, T>,
    views: Views<'a, T>,
    shapes: Vec<Vec<usize>>,
    samples: usize,
    pairs: usize,
    seed: u64,
    /// Rows of the last batch.
    rows: usize,
    order: Vec<usize>,
    epoch: Option<usize>,
    clean: Vec<Vec<T>>,
}

/// Where the second view comes from.
enum Views<'a, T> {
    /// Both views are random augmentations of a sample.
    Augmented(Augmentation),
    /// The user gives it.
    Given(&'a [Dataset], Pool<'a, T>),
}

impl<'a, T: Real> Pairs<'a, T> {
    /// Pairs of random views of images, this many per batch.
    ///
    /// # Errors
    /// [`SpectralError::Setting`] for invalid settings, or samples that are not images.
    pub fn augmented(
        data: &'a [Dataset],
        augmentation: Augmentation,
        pairs: usize,
        seed: u64,
        context: &Context,
    ) -> Result<Self> {
        if data.len() != 1 {
            return Err(SpectralError::Setting(format!(
                "there are {} inputs, but images are a single one",
                data.len()
            )));
        }
        augmentation.check(data[0].sample_shape())?;
        Self::new(data, Views::Augmented(augmentation), pairs, seed, context)
    }

    /// Pairs given by the user: sample `i` of the first set belongs to sample `i` of the second.
    ///
    /// # Errors
    /// [`SpectralError::Setting`] if the sets do not match.
    pub fn given(
        first: &'a [Dataset],
        second: &'a [Dataset],
        pairs: usize,
        seed: u64,
        context: &Context,
    ) -> Result<Self> {
        let shapes = |data: &[Dataset]| data.iter().map(|set| set.shape().to_vec()).collect::<Vec<_>>();
        if shapes(first) != shapes(second) {
            let text =
                format!("the samples of a pair have different shapes: {:?} and {:?}", shapes(first), shapes(second));
            return Err(SpectralError::Setting(text));
        }
        Self::new(first, Views::Given(second, Pool::new(second, context)?), pairs, seed, context)
    }

    fn new(data: &'a [Dataset], views: Views<'a, T>, pairs: usize, seed: u64, context: &Context) -> Result<Self> {
        let samples = same_samples(data)?;
        if pairs == 0 {
            return Err(SpectralError::Setting("batch size = 0; accepted: at least 1 pair".to_owned()));
        }
        Ok(Self {
            pool: Pool::new(data, context)?,
            shapes: data.iter().map(|set| set.sample_shape().to_vec()).collect(),
            clean: vec![Vec::new(); data.len()],
            pairs: pairs.min(samples),
            order: Vec::new(),
            epoch: None,
            rows: 0,
            data,
            views,
            samples,
            seed,
        })
    }

    /// The views of some samples: all first views, then all second views.
    fn views(&mut self, rows: &[usize], name: &str, inputs: &mut [Vec<T>]) -> Result<()> {
        match &self.views {
            Views::Given(_, second) => {
                self.pool.select(rows, inputs)?;
                second.select(rows, &mut self.clean)?;
                inputs.iter_mut().zip(&self.clean).for_each(|(to, other)| to.extend_from_slice(other));
            }
            Views::Augmented(augmentation) => {
                self.pool.select(rows, &mut self.clean)?;
                let (clean, shape) = (&self.clean[0], &self.shapes[0]);
                let size = clean.len() / rows.len().max(1);
                inputs[0].resize(2 * clean.len(), T::zero());
                let mut random = stream(self.seed, name);
                for half in inputs[0].chunks_exact_mut(clean.len().max(1)) {
                    for (image, out) in clean.chunks_exact(size).zip(half.chunks_exact_mut(size)) {
                        augmentation.view(image, shape, &mut random, out);
                    }
                }
            }
        }
        self.rows = 2 * rows.len();
        Ok(())
    }
}

/// `(n·S − 1 1ᵀ)·V` for rows whose two halves are exchanged by `S`.
fn exchange<T: Real>(v: &[T], width: usize, out: &mut [T]) {
    let half = v.len() / 2;
    let n = T::narrow((v.len() / width.max(1)) as f64);
    let mut sums = vec![T::zero(); width];
    for row in v.chunks_exact(width) {
        sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += x);
    }
    let (first, second) = v.split_at(half);
    let swapped = second.chunks_exact(width).chain(first.chunks_exact(width));
    for (row, out) in swapped.zip(out.chunks_exact_mut(width)) {
        out.iter_mut().zip(row.iter().zip(&sums)).for_each(|(out, (&x, &sum))| *out = n * x - sum);
    }
}

impl<T: Real> Draws<T> for Pairs<'_, T> {
    fn input_shapes(&self) -> Vec<Vec<usize>> {
        self.shapes.clone()
    }

    fn batch_size(&self) -> usize {
        2 * self.pairs
    }

    fn draw(&mut self, step: usize, inputs: &mut [Vec<T>]) -> Result<usize> {
        let per_epoch = self.samples / self.pairs;
        let (epoch, batch) = (step / per_epoch, step % per_epoch);
        if self.epoch != Some(epoch) {
            self.order = shuffled(self.samples, self.seed, epoch as u64);
            self.epoch = Some(epoch);
        }
        let rows = self.order[batch * self.pairs..(batch + 1) * self.pairs].to_vec();
        self.views(&rows, &format!("views/step {step}"), inputs)?;
        Ok(self.rows)
    }

    fn product(&mut self, _: usize, v: &[T], width: usize, out: &mut [T]) -> Result<()> {
        exchange(v, width, out);
        Ok(())
    }

    /// The diagonal of this kernel cannot be evaluated. Its eigenvalues are already between 0 and 1.
    fn mean_diagonal(&mut self, _: usize) -> Result<f64> {
        Ok(1.0)
    }

    fn moments(&mut self, eval: Eval<'_, T>) -> Result<Vec<SecondMoments>> {
        let count = FINISH.min(self.samples);
        let rows: Vec<usize> = (0..count).map(|index| index * self.samples / count).collect();
        let mut halves: [Vec<Array2<T>>; 2] = Default::default();
        let mut inputs = vec![Vec::new(); self.shapes.len()];
        for (piece, part) in rows.chunks(self.pairs.max(64)).enumerate() {
            self.views(part, &format!("views/finish {piece}"), &mut inputs)?;
            let slices: Vec<&[T]> = inputs.iter().map(Vec::as_slice).collect();
            let values = eval(&slices, 2 * part.len())?.swap_remove(0);
            let (first, second) = values.view().split_at(Axis(0), part.len());
            halves[0].push(first.to_owned());
            halves[1].push(second.to_owned());
        }
        let parts: Vec<ArrayView2<'_, T>> = halves.iter().flatten().map(|part| part.view()).collect();
        let all = ndarray::concatenate(Axis(0), &parts).map_err(|error| SpectralError::Setting(error.to_string()))?;
        let all = all.mapv(mercer_linalg::Scalar::wide).as_standard_layout().into_owned();
        let mut image = Array2::zeros(all.dim());
        exchange(
            all.as_slice().expect("standard layout"),
            all.ncols(),
            image.as_slice_mut().expect("a fresh array is contiguous"),
        );
        Ok(vec![SecondMoments::new(all, image.view())])
    }

    fn identity(&self) -> Result<Value> {
        let prints = |data: &[Dataset]| data.iter().map(Dataset::fingerprint).collect::<Result<Vec<_>, _>>();
        let views = match &self.views {
            Views::Augmented(augmentation) => json!(augmentation),
            Views::Given(second, _) => json!(prints(second)?),
        };
        Ok(json!({ "pairs": self.pairs, "seed": self.seed, "data": prints(self.data)?, "views": views }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the matrix itself.
    #[test]
    fn exchanging_is_a_product_with_the_kernel() {
        let v = [1.0, 2.0, 3.0, 4.0, -1.0, 0.5, 2.0, 0.0];
        let mut out = [0.0; 8];
        exchange(&v, 2, &mut out);
        for row in 0..4 {
            for column in 0..2 {
                let entry = |other: usize| if other == (row + 2) % 4 { 3.0 } else { -1.0 };
                let expected: f64 = (0..4).map(|other| entry(other) * v[other * 2 + column]).sum();
                assert_eq!(out[row * 2 + column], expected);
            }
        }
    }
}
