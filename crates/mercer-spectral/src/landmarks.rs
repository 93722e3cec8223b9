//! The choice of landmarks.
//!
//! | choice | a sample is drawn with probability |
//! |---|---|
//! | uniform | equal, without replacement |
//! | k-means++ | `min_z ‖φ(x) - φ(z)‖²`, the distance in the kernel's feature space to the landmarks so far (Arthur and Vassilvitskii 2007) |
//! | pivoted Cholesky | `κ(x, x) - κ̃(x, x)`, what the landmarks so far leave unexplained (Chen, Epperly, Tropp and Webber 2022, arXiv 2207.06503, algorithm 2.1) |
//!
//! k-means++ uses the distances of the kernel, `κ(x,x) + κ(z,z) - 2κ(x,z)`, not those of the raw samples, so it works
//! for any kernel and any data. The last two never draw a sample or a copy of it twice: once drawn, its probability is
//! zero.

use crate::error::{Result, SpectralError};
use crate::samples;
use mercer_data::{Dataset, random};
use mercer_kernel::{Block, Kernel, Real};
use mercer_linalg::PivotedCholesky;
use mercer_run::Context;
use ndarray::Array1;
use rand::seq::index;
use rand::{Rng, RngExt};
use std::ops::Range;

/// How landmarks are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landmarks {
    /// All samples, which is exact.
    All,
    /// This many, at random.
    Uniform(usize),
    /// This many, far from each other.
    KMeansPlusPlus(usize),
    /// This many, each where the error is large.
    PivotedCholesky(usize),
}

/// A residual trace below this share is rounding, which does not justify another landmark.
const NOTHING_LEFT: f64 = 64.0;

impl Landmarks {
    /// The name that a user writes.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Uniform(_) => "uniform",
            Self::KMeansPlusPlus(_) => "k-means++",
            Self::PivotedCholesky(_) => "rpcholesky",
        }
    }

    /// The requested number of landmarks, out of this many samples.
    pub fn count(self, samples: usize) -> usize {
        match self {
            Self::All => samples,
            Self::Uniform(count) | Self::KMeansPlusPlus(count) | Self::PivotedCholesky(count) => count.min(samples),
        }
    }

    /// The rows of the landmarks: ascending for `All` and `Uniform`, otherwise in the order they were drawn. Fewer than
    /// requested if all other samples are copies of them.
    pub fn choose<T: Real>(
        self,
        kernel: &dyn Kernel<T>,
        data: &[Dataset],
        seed: u64,
        context: &Context,
    ) -> Result<Vec<usize>> {
        let samples = samples::count(data);
        let count = self.count(samples);
        if count == 0 {
            return Err(SpectralError::Setting(format!(
                "0 landmarks of {samples} samples were requested; choose at least 1"
            )));
        }
        let mut stream = random::stream(seed, "landmarks");
        match self {
            Self::All => Ok((0..samples).collect()),
            Self::Uniform(_) => {
                let mut rows = index::sample(&mut stream, samples, count).into_vec();
                rows.sort_unstable();
                Ok(rows)
            }
            Self::KMeansPlusPlus(_) => spread(Columns::new(kernel, data, context)?, count, &mut stream, context),
            Self::PivotedCholesky(_) => pivots(Columns::new(kernel, data, context)?, count, &mut stream, context),
        }
    }
}

/// k-means++ in feature space.
fn spread<T: Real>(
    columns: Columns<'_, T>,
    count: usize,
    stream: &mut impl Rng,
    context: &Context,
) -> Result<Vec<usize>> {
    let floor = NOTHING_LEFT * T::epsilon().wide() * columns.diagonal.iter().fold(0.0, |most: f64, d| most.max(*d));
    let mut distances = Array1::ones(columns.samples);
    let mut chosen = Vec::new();
    while chosen.len() < count {
        let Some(row) = draw(&distances, stream) else { break };
        let column = columns.column(row)?;
        let update = |at: usize| {
            // Negative only where the kernel is indefinite; such a sample is not similar to the landmark either.
            let distance = (columns.diagonal[at] + columns.diagonal[row] - 2.0 * column[at]).abs();
            let nearest = if chosen.is_empty() { distance } else { distance.min(distances[at]) };
            if at == row || nearest <= floor { 0.0 } else { nearest }
        };
        distances = Array1::from_shape_fn(columns.samples, update);
        chosen.push(row);
        advance(context, chosen.len(), count)?;
    }
    Ok(chosen)
}

/// Randomly pivoted Cholesky.
fn pivots<T: Real>(
    columns: Columns<'_, T>,
    count: usize,
    stream: &mut impl Rng,
    context: &Context,
) -> Result<Vec<usize>> {
    let mut drawn = 0;
    let column = |row: usize| {
        drawn += 1;
        advance(context, drawn, count)?;
        Ok::<_, SpectralError>(columns.column(row)?.mapv(T::narrow))
    };
    // In the precision of the kernel, so that its rounding is not mistaken for a residual.
    let found = PivotedCholesky::new(columns.diagonal.mapv(T::narrow).view(), column, count, || stream.random())?;
    // Division by the root of a small pivot amplifies rounding to at most its square root.
    if found.least < -T::epsilon().wide().sqrt() {
        return Err(SpectralError::Indefinite { method: "pivoted Cholesky", least: found.least });
    }
    Ok(found.pivots)
}

fn advance(context: &Context, done: usize, total: usize) -> Result<()> {
    context.report(done, total, "landmarks");
    Ok(context.check()?)
}

/// Draws a row with probability proportional to its weight; `None` if all weights are zero.
fn draw(weights: &Array1<f64>, stream: &mut impl Rng) -> Option<usize> {
    let total: f64 = weights.sum();
    if total.partial_cmp(&0.0) != Some(std::cmp::Ordering::Greater) {
        return None;
    }
    let mut remaining = stream.random::<f64>() * total;
    let mut last = None;
    for (row, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        last = Some(row);
        remaining -= weight;
        if remaining < 0.0 {
            break;
        }
    }
    last
}

/// Columns of a Gram matrix, one at a time; for a matrix-valued kernel, the traces of its blocks.
struct Columns<'a, T: Real> {
    kernel: &'a dyn Kernel<T>,
    data: &'a [Dataset],
    samples: usize,
    /// `κ(x, x)`.
    diagonal: Array1<f64>,
    /// Prepared samples, if they fit into a quarter of the free memory.
    kept: Option<Vec<Block>>,
}

impl<'a, T: Real> Columns<'a, T> {
    fn new(kernel: &'a dyn Kernel<T>, data: &'a [Dataset], context: &Context) -> Result<Self> {
        let samples = samples::count(data);
        let fits = kernel.cost().sample_bytes.saturating_mul(samples) <= context.memory() / 4;
        let mut columns = Self { kernel, data, samples, diagonal: Array1::zeros(samples), kept: None };
        let mut blocks = Vec::new();
        for rows in columns.blocks() {
            context.check()?;
            let block = columns.prepare(rows.clone())?;
            let values = kernel.diagonal(&block);
            for (row, values) in rows.zip(values.chunks(kernel.per_sample())) {
                columns.diagonal[row] = values.iter().map(|v| v.wide()).sum::<f64>();
            }
            if fits {
                blocks.push(block);
            }
        }
        columns.kept = fits.then_some(blocks);
        Ok(columns)
    }

    fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<T> {
        samples::pieces(self.samples, 512)
    }

    fn prepare(&self, rows: Range<usize>) -> Result<Block> {
        samples::prepare(self.kernel, self.data, rows)
    }

    fn column(&self, landmark: usize) -> Result<Array1<f64>> {
        let one = self.prepare(landmark..landmark + 1)?;
        let mut column = Array1::zeros(self.samples);
        for (at, rows) in self.blocks().enumerate() {
            let fresh;
            let block = match &self.kept {
                Some(blocks) => &blocks[at],
                None => {
                    fresh = self.prepare(rows.clone())?;
                    &fresh
                }
            };
            let outputs = self.kernel.per_sample();
            let size = rows.len() * outputs * outputs;
            let tile = samples::whole(self.kernel, block, &one, size);
            for (row, values) in rows.zip(tile.chunks_exact(outputs * outputs)) {
                column[row] = (0..outputs).map(|c| values[c * outputs + c].wide()).sum::<f64>();
            }
        }
        match column.iter().position(|v: &f64| !v.is_finite()) {
            None => Ok(column),
            Some(row) => Err(mercer_kernel::KernelError::Overflow { row, column: landmark }.into()),
        }
    }
}
