//! Sources of batches: samples of a set with a kernel between them, or pairs of augmentations.
//!
//! Batches depend only on the seed and the step, so a resumed run draws the same batches as an uninterrupted one.

use super::coupling::Coupling;
use crate::error::{Result, SpectralError};
use mercer_data::{Dataset, shuffled};
use mercer_kernel::Real;
use mercer_linalg::matmul;
use mercer_run::Context;
use ndarray::{Array2, ArrayD, ArrayView2, Axis};
use serde_json::{Value, json};

/// Batches of samples, and the kernel between the samples of the last batch.
pub trait Draws<T: Real>: Send {
    /// The shape of a sample, for every input.
    fn input_shapes(&self) -> Vec<Vec<usize>>;

    /// Rows of the kernel matrix per sample.
    fn per_sample(&self) -> usize {
        1
    }

    /// The number of kernels: 1, or one per output.
    fn n_kernels(&self) -> usize {
        1
    }

    /// The largest number of samples of a batch.
    fn batch_size(&self) -> usize;

    /// Writes the samples of a batch, one array per input, and returns how many there are.
    fn draw(&mut self, step: usize, inputs: &mut [Vec<T>]) -> Result<usize>;

    /// Writes `K·V` for the batch that was drawn last; `V` has `width` columns.
    fn product(&mut self, kernel: usize, v: &[T], width: usize, out: &mut [T]) -> Result<()>;

    /// The mean of `κ(x, x)`.
    fn mean_diagonal(&mut self, kernel: usize) -> Result<f64>;

    /// `Σ = ΨᵀΨ/R` and `Π = ΨᵀKΨ/R²` of functions over the data, for every kernel. `eval` evaluates them on samples and
    /// gives a `rows × k` matrix per kernel.
    fn moments(&mut self, eval: Eval<'_, T>) -> Result<Vec<SecondMoments>>;

    /// The identity: two sources with the same identity give the same numbers.
    fn identity(&self) -> Result<Value>;
}

/// Functions on samples: a matrix of `rows × k` for every kernel.
pub type Eval<'a, T> = &'a mut dyn FnMut(&[&[T]], usize) -> Result<Vec<Array2<T>>>;

/// Second moments of functions.
#[derive(Clone, Debug)]
pub struct SecondMoments {
    /// `Σ = ΨᵀΨ/R`.
    pub covariance: Array2<f64>,
    /// `Π = ΨᵀKΨ/R²`.
    pub kernel: Array2<f64>,
    /// `Ψ` itself, `R × k`.
    pub functions: Array2<f64>,
}

impl SecondMoments {
    /// From the functions and their image `KΨ`, both `R × k`.
    pub fn new(functions: Array2<f64>, image: ArrayView2<'_, f64>) -> Self {
        let rows = functions.nrows().max(1) as f64;
        let covariance = matmul(functions.t(), functions.view()) / rows;
        let kernel = matmul(functions.t(), image) / (rows * rows);
        let kernel = (&kernel + &kernel.t()) * 0.5;
        Self { covariance, kernel, functions }
    }
}

/// The number of samples of all inputs.
pub(super) fn same_samples(data: &[Dataset]) -> Result<usize> {
    let counts: Vec<usize> = data.iter().map(Dataset::n_samples).collect();
    match counts.first() {
        Some(&first) if first > 0 && counts.iter().all(|&count| count == first) => Ok(first),
        _ => Err(SpectralError::Setting(format!("the inputs have different numbers of samples: {counts:?}"))),
    }
}

/// Samples in memory if they fit, otherwise read on demand.
#[derive(Debug)]
pub(super) enum Pool<'a, T> {
    Memory(Vec<ArrayD<T>>),
    Stored(&'a [Dataset]),
}

impl<'a, T: Real> Pool<'a, T> {
    pub(super) fn new(data: &'a [Dataset], context: &Context) -> Result<Self> {
        let numbers: usize = data.iter().map(|set| set.shape().iter().product::<usize>()).sum();
        if numbers.saturating_mul(size_of::<T>()) > context.memory() / 4 {
            return Ok(Self::Stored(data));
        }
        let read = |set: &Dataset| Ok(set.read::<T>()?.as_standard_layout().into_owned());
        Ok(Self::Memory(data.iter().map(read).collect::<Result<_>>()?))
    }

    /// The samples with these indices, one array per input.
    pub(super) fn select(&self, samples: &[usize], inputs: &mut [Vec<T>]) -> Result<()> {
        match self {
            Self::Memory(arrays) => {
                for (array, to) in arrays.iter().zip(inputs) {
                    let data = array.as_slice().unwrap_or(&[]);
                    let size = data.len() / array.shape()[0].max(1);
                    to.clear();
                    samples.iter().for_each(|&row| to.extend_from_slice(&data[row * size..(row + 1) * size]));
                }
            }
            Self::Stored(data) => {
                for (set, to) in data.iter().zip(inputs) {
                    to.clear();
                    to.extend(set.select::<T>(samples)?.iter().copied());
                }
            }
        }
        Ok(())
    }
}

/// Batches of a set of samples with a kernel between them.
///
/// Every epoch goes through the samples in a new order. An incomplete batch at its end is dropped.
pub struct Batches<'a, T: Real> {
    pool: Pool<'a, T>,
    coupling: &'a mut dyn Coupling<T>,
    shapes: Vec<Vec<usize>>,
    size: usize,
    seed: u64,
    order: Vec<usize>,
    epoch: Option<usize>,
    batch: Vec<usize>,
    finish: usize,
    context: Context,
}

/// The default number of samples for the finish, so that it costs less than training.
pub const FINISH: usize = 4096;

impl<'a, T: Real> Batches<'a, T> {
    /// Batches of this many samples, or of all samples if there are fewer.
    ///
    /// # Errors
    /// [`SpectralError::Setting`] if the kernel has another number of samples, or the size is zero.
    pub fn new(
        data: &'a [Dataset],
        coupling: &'a mut dyn Coupling<T>,
        size: usize,
        seed: u64,
        context: &Context,
    ) -> Result<Self> {
        let samples = same_samples(data)?;
        if coupling.n_samples() != samples {
            return Err(SpectralError::Setting(format!(
                "the kernel has {} samples, but there are {samples}",
                coupling.n_samples()
            )));
        }
        if size == 0 {
            return Err(SpectralError::Setting("batch size = 0; accepted: at least 1".to_owned()));
        }
        let shapes = data.iter().map(|set| set.sample_shape().to_vec()).collect();
        Ok(Self {
            pool: Pool::new(data, context)?,
            coupling,
            shapes,
            size: size.min(samples),
            seed,
            order: Vec::new(),
            epoch: None,
            batch: Vec::new(),
            finish: FINISH,
            context: context.clone(),
        })
    }

    /// Sets the number of samples for the finish, evenly spaced over the set.
    pub fn finish_on(self, samples: usize) -> Self {
        Self { finish: samples.max(1), ..self }
    }
}

/// Samples per block of the kernel matrix while moments are computed.
const BLOCK: usize = 512;

impl<T: Real> Draws<T> for Batches<'_, T> {
    fn input_shapes(&self) -> Vec<Vec<usize>> {
        self.shapes.clone()
    }

    fn per_sample(&self) -> usize {
        self.coupling.per_sample()
    }

    fn n_kernels(&self) -> usize {
        self.coupling.n_kernels()
    }

    fn batch_size(&self) -> usize {
        self.size
    }

    fn draw(&mut self, step: usize, inputs: &mut [Vec<T>]) -> Result<usize> {
        let samples = self.coupling.n_samples();
        let per_epoch = samples / self.size;
        let (epoch, batch) = (step / per_epoch, step % per_epoch);
        if self.epoch != Some(epoch) {
            self.order = shuffled(samples, self.seed, epoch as u64);
            self.epoch = Some(epoch);
        }
        self.batch.clear();
        self.batch.extend_from_slice(&self.order[batch * self.size..(batch + 1) * self.size]);
        // The order within a batch does not matter. Sorting makes memory access sequential.
        self.batch.sort_unstable();
        self.pool.select(&self.batch, inputs)?;
        Ok(self.size)
    }

    fn product(&mut self, kernel: usize, v: &[T], width: usize, out: &mut [T]) -> Result<()> {
        self.coupling.between(kernel, &self.batch, &self.batch)?.product(v, width, out);
        Ok(())
    }

    fn mean_diagonal(&mut self, kernel: usize) -> Result<f64> {
        self.coupling.mean_diagonal(kernel)
    }

    fn moments(&mut self, eval: Eval<'_, T>) -> Result<Vec<SecondMoments>> {
        let (total, each) = (self.coupling.n_samples(), self.coupling.per_sample());
        let count = self.finish.min(total);
        let samples: Vec<usize> = (0..count).map(|index| index * total / count).collect();
        let mut values: Vec<Vec<Array2<T>>> = Vec::new();
        for block in samples.chunks(BLOCK) {
            let mut inputs = vec![Vec::new(); self.shapes.len()];
            self.pool.select(block, &mut inputs)?;
            let slices: Vec<&[T]> = inputs.iter().map(Vec::as_slice).collect();
            values.push(eval(&slices, block.len())?);
        }
        (0..self.coupling.n_kernels())
            .map(|kernel| {
                let parts: Vec<ArrayView2<'_, T>> = values.iter().map(|each| each[kernel].view()).collect();
                let all = ndarray::concatenate(Axis(0), &parts).map_err(|e| SpectralError::Setting(e.to_string()))?;
                let all = all.mapv(mercer_linalg::Scalar::wide).as_standard_layout().into_owned();
                let (rows, k) = all.dim();
                let mut image = Array2::<f64>::zeros((rows, k));
                let mut out = Vec::new();
                for (left, mut sum) in samples.chunks(BLOCK).zip(image.axis_chunks_iter_mut(Axis(0), BLOCK * each)) {
                    out.resize(sum.len(), 0.0);
                    self.context.check()?;
                    for (right, v) in samples.chunks(BLOCK).zip(all.axis_chunks_iter(Axis(0), BLOCK * each)) {
                        let between = self.coupling.between(kernel, left, right)?;
                        between.product_wide(v.as_slice().unwrap_or(&[]), k, &mut out);
                        sum.iter_mut().zip(&out).for_each(|(sum, x)| *sum += x);
                    }
                }
                Ok(SecondMoments::new(all, image.view()))
            })
            .collect()
    }

    fn identity(&self) -> Result<Value> {
        Ok(json!({ "coupling": self.coupling.identity()?, "batch_size": self.size, "seed": self.seed }))
    }
}
