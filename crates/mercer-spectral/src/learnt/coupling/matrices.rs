//! Kernel matrices in memory.

use super::{Between, Coupling, CouplingForm, digest};
use crate::error::{Result, SpectralError};
use mercer_kernel::Real;
use ndarray::Array2;
use serde_json::{Value, json};

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
                let text = format!("a matrix of shape {:?} is not a kernel matrix of {rows} rows", gram.shape());
                return Err(SpectralError::Setting(text));
            }
            mercer_linalg::check_symmetric("kernel matrix", gram.view())?;
        }
        if grams.is_empty() {
            return Err(SpectralError::Setting("no kernel matrix was given".to_owned()));
        }
        let grams = grams.into_iter().map(|gram| gram.as_standard_layout().into_owned()).collect();
        Ok(Self { grams, per_sample, gathered: Vec::new(), row: Vec::new() })
    }

    /// Gathers the part with these rows and columns; returns its size.
    fn gather(&mut self, kernel: usize, rows: &[usize], columns: &[usize]) -> [usize; 2] {
        let (each, gram) = (self.per_sample, &self.grams[kernel]);
        let (n, m) = (rows.len() * each, columns.len() * each);
        self.gathered.resize(n * m, T::zero());
        let lines = rows.iter().flat_map(|&row| row * each..(row + 1) * each);
        for (line, to) in lines.zip(self.gathered.chunks_exact_mut(m.max(1))) {
            let from = gram.row(line).to_slice().expect("matrices are kept row by row");
            if each == 1 {
                // Where most cache lines of a row are needed, reading it as a whole waits for memory once, whereas
                // picking numbers waits repeatedly.
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

    fn between(&mut self, kernel: usize, rows: &[usize], columns: &[usize]) -> Result<Between<'_, T>> {
        let [rows, columns] = self.gather(kernel, rows, columns);
        Ok(Between { rows, columns, form: CouplingForm::Entries(&self.gathered) })
    }

    fn mean_diagonal(&mut self, kernel: usize) -> Result<f64> {
        let diagonal = self.grams[kernel].diag();
        Ok(diagonal.iter().map(|x| x.wide()).sum::<f64>() / diagonal.len() as f64)
    }

    fn identity(&self) -> Result<Value> {
        Ok(json!({ "coupling": "matrices", "per_sample": self.per_sample, "digest": digest(&self.grams) }))
    }
}
