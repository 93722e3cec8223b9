//! The kernel between the samples of a batch: from a matrix, from features, or computed when it is needed.

use crate::error::{Result, SpectralError};
use mercer_data::{Dataset, Fingerprint};
use mercer_kernel::{Block, Kernel, Real};
use mercer_linalg::gemm;
use ndarray::{Array2, ArrayView2};
use serde_json::{Value, json};
use std::sync::Arc;

/// Gives the kernel between some samples of a set, as products with it.
///
/// Kernels may be matrix-valued ([`per_sample`](Self::per_sample) rows per sample), and there may be several
/// ([`n_kernels`](Self::n_kernels)), one per output of a network.
pub trait Coupling<T: Real>: Send {
    /// The number of samples.
    fn n_samples(&self) -> usize;

    /// Rows of the kernel matrix per sample.
    fn per_sample(&self) -> usize {
        1
    }

    /// How many kernels there are: 1, or one per output.
    fn n_kernels(&self) -> usize {
        1
    }

    /// Writes `κ(rows, columns)·V`, where `V` has `width` columns and `per_sample` rows for every sample of `columns`.
    fn product(
        &mut self,
        kernel: usize,
        rows: &[usize],
        columns: &[usize],
        v: &[T],
        width: usize,
        out: &mut [T],
    ) -> Result<()>;

    /// As [`product`](Self::product), with the same kernel but sums in double precision: the finish divides by small variances,
    /// which amplifies the rounding of products, though not that of the kernel itself.
    fn product_wide(
        &mut self,
        kernel: usize,
        rows: &[usize],
        columns: &[usize],
        v: &[f64],
        width: usize,
        out: &mut [f64],
    ) -> Result<()>;

    /// The mean of `κ(x, x)` over all rows, or over a sample of them if that would be costly.
    fn mean_diagonal(&mut self, kernel: usize) -> Result<f64>;

    /// What it is: two of the same identity give the same numbers.
    fn identity(&self) -> Result<Value>;
}

/// Kernel matrices in memory.
#[derive(Debug)]
pub struct Matrices<T> {
    grams: Vec<Array2<T>>,
    per_sample: usize,
    gathered: Vec<T>,
    /// One row of a matrix.
    row: Vec<T>,
}

impl<T: Real> Matrices<T> {
    /// A kernel matrix with `per_sample` rows for every sample.
    ///
    /// # Errors
    /// [`SpectralError::Setting`] if it is not square with a multiple of `per_sample` rows, or not finite.
    pub fn new(gram: Array2<T>, per_sample: usize) -> Result<Self> {
        Self::checked(vec![gram], per_sample)
    }

    /// One kernel matrix per output.
    pub fn per_output(grams: Vec<Array2<T>>) -> Result<Self> {
        Self::checked(grams, 1)
    }

    fn checked(grams: Vec<Array2<T>>, per_sample: usize) -> Result<Self> {
        let rows = grams.first().map_or(0, Array2::nrows);
        for gram in &grams {
            let fits = gram.dim() == (rows, rows) && rows > 0 && per_sample > 0 && rows.is_multiple_of(per_sample);
            if !fits {
                let text = format!("a matrix of shape {:?} is no kernel matrix of {rows} rows", gram.shape());
                return Err(SpectralError::Setting(text));
            }
            mercer_linalg::check_symmetric("kernel matrix", gram.view())?;
        }
        if grams.is_empty() {
            return Err(SpectralError::Setting("there is no kernel matrix".to_owned()));
        }
        let grams = grams.into_iter().map(|gram| gram.as_standard_layout().into_owned()).collect();
        Ok(Self { grams, per_sample, gathered: Vec::new(), row: Vec::new() })
    }

    /// Brings the part of these rows and columns together; returns its size.
    fn gather(&mut self, kernel: usize, rows: &[usize], columns: &[usize]) -> [usize; 2] {
        let (each, gram) = (self.per_sample, &self.grams[kernel]);
        let (n, m) = (rows.len() * each, columns.len() * each);
        self.gathered.resize(n * m, T::zero());
        let lines = rows.iter().flat_map(|&row| row * each..(row + 1) * each);
        for (line, to) in lines.zip(self.gathered.chunks_exact_mut(m.max(1))) {
            let from = gram.row(line).to_slice().expect("matrices are kept row by row");
            if each == 1 {
                // Where most cache lines of a row are wanted, reading it as a whole waits for memory once; picking numbers
                // from it waits again and again.
                let mut near = from;
                if from.len() <= 16 * m {
                    self.row.clear();
                    self.row.extend_from_slice(from);
                    near = &self.row;
                }
                to.iter_mut().zip(columns).for_each(|(to, &column)| *to = near[column]);
            } else {
                for (to, &column) in to.chunks_exact_mut(each).zip(columns) {
                    to.copy_from_slice(&from[column * each..(column + 1) * each]);
                }
            }
        }
        [n, m]
    }
}

impl<T: Real> Coupling<T> for Matrices<T> {
    fn n_samples(&self) -> usize {
        self.grams[0].nrows() / self.per_sample
    }

    fn per_sample(&self) -> usize {
        self.per_sample
    }

    fn n_kernels(&self) -> usize {
        self.grams.len()
    }

    fn product(
        &mut self,
        kernel: usize,
        rows: &[usize],
        columns: &[usize],
        v: &[T],
        width: usize,
        out: &mut [T],
    ) -> Result<()> {
        let [n, m] = self.gather(kernel, rows, columns);
        gemm([n, width, m], (&self.gathered, m, 1), (v, width, 1), false, out);
        Ok(())
    }

    fn product_wide(
        &mut self,
        kernel: usize,
        rows: &[usize],
        columns: &[usize],
        v: &[f64],
        width: usize,
        out: &mut [f64],
    ) -> Result<()> {
        let [n, m] = self.gather(kernel, rows, columns);
        gemm([n, width, m], (&widened(&self.gathered), m, 1), (v, width, 1), false, out);
        Ok(())
    }

    fn mean_diagonal(&mut self, kernel: usize) -> Result<f64> {
        let diagonal = self.grams[kernel].diag();
        Ok(diagonal.iter().map(|x| x.wide()).sum::<f64>() / diagonal.len() as f64)
    }

    fn identity(&self) -> Result<Value> {
        Ok(json!({ "coupling": "matrices", "per_sample": self.per_sample, "digest": digest(&self.grams) }))
    }
}

/// Kernels by their features: `κ(x, x') = φ(x)·φ(x')`, which is never formed.
#[derive(Debug)]
pub struct FeatureRows<T> {
    features: Vec<Array2<T>>,
    per_sample: usize,
    left: Vec<T>,
    right: Vec<T>,
    small: Vec<T>,
}

impl<T: Real> FeatureRows<T> {
    /// Features with `per_sample` rows for every sample.
    ///
    /// # Errors
    /// [`SpectralError::Setting`] if there are none, or a number is not finite.
    pub fn new(features: Array2<T>, per_sample: usize) -> Result<Self> {
        if features.is_empty() || per_sample == 0 || !features.nrows().is_multiple_of(per_sample) {
            let text = format!("features of shape {:?} with {per_sample} rows per sample", features.shape());
            return Err(SpectralError::Setting(text));
        }
        mercer_linalg::check_finite("features", features.view())?;
        let features = vec![features.as_standard_layout().into_owned()];
        Ok(Self { features, per_sample, left: Vec::new(), right: Vec::new(), small: Vec::new() })
    }
}

/// The rows of some samples, one after the other.
fn gather<T: Copy>(from: ArrayView2<'_, T>, each: usize, samples: &[usize], to: &mut Vec<T>) {
    to.clear();
    for &sample in samples {
        for row in sample * each..(sample + 1) * each {
            to.extend_from_slice(from.row(row).to_slice().expect("features are kept row by row"));
        }
    }
}

impl<T: Real> FeatureRows<T> {
    /// Brings the features of these rows and columns together.
    fn gather_both(&mut self, kernel: usize, rows: &[usize], columns: &[usize]) -> (&[T], &[T]) {
        let (each, features) = (self.per_sample, self.features[kernel].view());
        gather(features, each, columns, &mut self.right);
        if rows == columns {
            return (&self.right, &self.right);
        }
        gather(features, each, rows, &mut self.left);
        (&self.left, &self.right)
    }
}

impl<T: Real> Coupling<T> for FeatureRows<T> {
    fn n_samples(&self) -> usize {
        self.features[0].nrows() / self.per_sample
    }

    fn per_sample(&self) -> usize {
        self.per_sample
    }

    fn product(
        &mut self,
        kernel: usize,
        rows: &[usize],
        columns: &[usize],
        v: &[T],
        width: usize,
        out: &mut [T],
    ) -> Result<()> {
        let (each, size) = (self.per_sample, self.features[kernel].ncols());
        let mut small = std::mem::take(&mut self.small);
        small.resize(size * width, T::zero());
        let (left, right) = self.gather_both(kernel, rows, columns);
        gemm([size, width, columns.len() * each], (right, 1, size), (v, width, 1), false, &mut small);
        gemm([rows.len() * each, width, size], (left, size, 1), (&small, width, 1), false, out);
        self.small = small;
        Ok(())
    }

    fn product_wide(
        &mut self,
        kernel: usize,
        rows: &[usize],
        columns: &[usize],
        v: &[f64],
        width: usize,
        out: &mut [f64],
    ) -> Result<()> {
        let (each, size) = (self.per_sample, self.features[kernel].ncols());
        let mut small = vec![0.0; size * width];
        let (left, right) = self.gather_both(kernel, rows, columns);
        gemm([size, width, columns.len() * each], (&widened(right), 1, size), (v, width, 1), false, &mut small);
        gemm([rows.len() * each, width, size], (&widened(left), size, 1), (&small, width, 1), false, out);
        Ok(())
    }

    fn mean_diagonal(&mut self, kernel: usize) -> Result<f64> {
        let features = &self.features[kernel];
        Ok(features.iter().map(|x| x.wide() * x.wide()).sum::<f64>() / features.nrows() as f64)
    }

    fn identity(&self) -> Result<Value> {
        Ok(json!({ "coupling": "features", "per_sample": self.per_sample, "digest": digest(&self.features) }))
    }
}

/// A kernel that is computed for every batch, so that the number of samples does not matter.
#[derive(Debug)]
pub struct PerBatch<'a, T: Real> {
    kernel: Arc<dyn Kernel<T>>,
    data: &'a [Dataset],
    n_samples: usize,
    tile: Vec<T>,
}

impl<'a, T: Real> PerBatch<'a, T> {
    /// A kernel on data, one set per input.
    ///
    /// # Errors
    /// [`SpectralError::Setting`] if there are no samples, or not as many in every input.
    pub fn new(kernel: Arc<dyn Kernel<T>>, data: &'a [Dataset]) -> Result<Self> {
        let n_samples = super::draws::same_samples(data)?;
        Ok(Self { kernel, data, n_samples, tile: Vec::new() })
    }

    fn prepare(&self, samples: &[usize]) -> Result<Block> {
        let read = |set: &Dataset| Ok(set.select::<T>(samples)?.as_standard_layout().into_owned());
        let arrays = self.data.iter().map(read).collect::<Result<Vec<_>>>()?;
        let inputs: Vec<&[T]> = arrays.iter().map(|array| array.as_slice().unwrap_or(&[])).collect();
        Ok(self.kernel.prepare(&inputs, samples.len())?)
    }

    /// Computes the parts of the kernel between rows and columns; returns how many there are, and their size.
    fn contract(&mut self, rows: &[usize], columns: &[usize]) -> Result<[usize; 3]> {
        let right = self.prepare(columns)?;
        let left = if rows == columns { None } else { Some(self.prepare(rows)?) };
        let each = self.kernel.per_sample();
        let (n, m) = (rows.len() * each, columns.len() * each);
        // What stands beside the parts is no summand.
        let parts = self.kernel.parts().len();
        self.tile.resize((parts + self.kernel.beside().len()) * n * m, T::zero());
        self.kernel.contract(left.as_ref().unwrap_or(&right), &right, &mut self.tile);
        Ok([parts, n, m])
    }
}

/// Numbers in double precision.
fn widened<T: Real>(numbers: &[T]) -> Vec<f64> {
    numbers.iter().map(|x| x.wide()).collect()
}

/// Samples whose diagonal is looked at.
const DIAGONAL: usize = 4096;

impl<T: Real> Coupling<T> for PerBatch<'_, T> {
    fn n_samples(&self) -> usize {
        self.n_samples
    }

    fn per_sample(&self) -> usize {
        self.kernel.per_sample()
    }

    fn product(
        &mut self,
        _: usize,
        rows: &[usize],
        columns: &[usize],
        v: &[T],
        width: usize,
        out: &mut [T],
    ) -> Result<()> {
        let [parts, n, m] = self.contract(rows, columns)?;
        for part in 0..parts {
            gemm([n, width, m], (&self.tile[part * n * m..], m, 1), (v, width, 1), part > 0, out);
        }
        Ok(())
    }

    fn product_wide(
        &mut self,
        _: usize,
        rows: &[usize],
        columns: &[usize],
        v: &[f64],
        width: usize,
        out: &mut [f64],
    ) -> Result<()> {
        let [parts, n, m] = self.contract(rows, columns)?;
        for part in 0..parts {
            let tile = widened(&self.tile[part * n * m..(part + 1) * n * m]);
            gemm([n, width, m], (&tile, m, 1), (v, width, 1), part > 0, out);
        }
        Ok(())
    }

    fn mean_diagonal(&mut self, _: usize) -> Result<f64> {
        // Evenly spaced samples: the order of a set may mean something.
        let step = self.n_samples.div_ceil(DIAGONAL).max(1);
        let samples: Vec<usize> = (0..self.n_samples).step_by(step).collect();
        let (mut sum, mut count) = (0.0, 0);
        for piece in samples.chunks(256) {
            let diagonal = self.kernel.diagonal(&self.prepare(piece)?);
            sum += diagonal.iter().map(|x| x.wide()).sum::<f64>();
            count += diagonal.len();
        }
        Ok(sum / count.max(1) as f64)
    }

    fn identity(&self) -> Result<Value> {
        let data = self.data.iter().map(Dataset::fingerprint).collect::<Result<Vec<_>, _>>()?;
        Ok(json!({ "coupling": "kernel", "kernel": self.kernel.identity(), "data": data }))
    }
}

/// A digest of the numbers of some arrays.
fn digest<T: Real>(arrays: &[Array2<T>]) -> String {
    let mut digest = Fingerprint::new();
    let mut bytes = Vec::new();
    for array in arrays {
        array.shape().iter().for_each(|&size| digest.update_count(size));
        for row in array.rows() {
            bytes.clear();
            row.iter().for_each(|x| bytes.extend_from_slice(&x.wide().to_le_bytes()));
            digest.update(&bytes);
        }
    }
    digest.finish()
}
