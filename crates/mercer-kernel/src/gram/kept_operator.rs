//! Products with a Gram matrix that was computed earlier and does not fit into memory. Its pieces are read, used and
//! dropped.

use super::kept::{KeptGram, Parts};
use crate::error::{KernelError, Result};
use crate::kernel::Real;
use mercer_data::random::stream;
use mercer_linalg::{LinearOperator, gemm};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis, s};
use rand::RngExt;
use rayon::prelude::*;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Bytes of a strip of rows of a file.
const STRIP: usize = 8 << 20;

/// The number of pieces in flight. Their results wait until they are added in order.
const WAVE: usize = 64;

/// A matrix of a store or of files as a linear map. Every product reads every piece once: the tiles of a store (only
/// the upper triangle if it is symmetric), or strips of rows of a file. Pieces are multiplied in parallel and added in
/// a fixed order.
#[derive(Debug)]
pub struct KeptOperator<'a, T> {
    kept: &'a KeptGram,
    rows: usize,
    /// Samples of a strip of a file.
    strip: usize,
    per_sample: usize,
    context: Context,
    failure: Mutex<Option<KernelError>>,
    scalar: PhantomData<T>,
}

/// The position of a piece in the matrix.
struct Piece<T> {
    rows: Range<usize>,
    columns: Range<usize>,
    /// Row by row.
    values: Vec<T>,
    /// Whether it also stands for its transpose, which is not read.
    mirrored: bool,
}

impl KeptGram {
    /// The matrix as a linear map. Products ask the context whether to continue.
    ///
    /// # Errors
    /// If the matrix is not square, not complete or not symmetric.
    pub fn operator<T: Real>(&self, context: &Context) -> Result<KeptOperator<'_, T>> {
        let (rows, per_sample) = self.square()?;
        if let Parts::Store(store, _) = &self.parts {
            store.check_complete()?;
        }
        let strip = (STRIP / (rows * per_sample * size_of::<T>())).max(1);
        let (failure, context) = (Mutex::default(), context.clone());
        let operator = KeptOperator { kept: self, rows, strip, per_sample, context, failure, scalar: PhantomData };
        if !operator.is_symmetric() {
            operator.check_symmetric()?;
        }
        Ok(operator)
    }
}

impl<T: Real> KeptOperator<'_, T> {
    /// The diagonal of the matrix.
    pub fn diagonal(&self) -> Result<Array1<T>> {
        let mut diagonal = Array1::zeros(self.rows);
        for index in 0..self.n_pieces() {
            if let Some(range) = self.on_diagonal(index) {
                let Piece { rows, columns, values, .. } = self.read(index)?;
                let width = columns.len();
                for row in range {
                    diagonal[row] = values[(row - rows.start) * width + row - columns.start];
                }
            }
        }
        Ok(diagonal)
    }

    /// The error of a failed product since the last call, because methods see only numbers.
    pub fn failure(&self) -> Option<KernelError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the store says that the matrix is symmetric.
    fn is_symmetric(&self) -> bool {
        matches!(&self.kept.parts, Parts::Store(store, _) if store.layout().is_symmetric())
    }

    fn n_pieces(&self) -> usize {
        match &self.kept.parts {
            Parts::Store(store, _) => store.n_tiles(),
            Parts::Files(_) => (self.rows / self.per_sample).div_ceil(self.strip),
        }
    }

    /// The rows of a piece that contain a diagonal entry, if any.
    fn on_diagonal(&self, index: usize) -> Option<Range<usize>> {
        let samples = match &self.kept.parts {
            Parts::Store(store, _) => {
                store.layout().tile(index).filter(|place| place.row_block == place.column_block)?.rows
            }
            Parts::Files(_) => self.strip_of(index),
        };
        Some(self.of_samples(samples))
    }

    fn strip_of(&self, index: usize) -> Range<usize> {
        index * self.strip..((index + 1) * self.strip).min(self.rows / self.per_sample)
    }

    fn of_samples(&self, samples: Range<usize>) -> Range<usize> {
        samples.start * self.per_sample..samples.end * self.per_sample
    }

    /// A piece of the sum of all parts.
    fn read(&self, index: usize) -> Result<Piece<T>> {
        self.context.check()?;
        let mut sum: Vec<T> = Vec::new();
        let mut add = |part: Vec<T>| match sum.is_empty() {
            true => sum = part,
            false => sum.iter_mut().zip(part).for_each(|(sum, value)| *sum += value),
        };
        let (rows, columns, mirrored) = match &self.kept.parts {
            Parts::Store(store, names) => {
                let place = store.tile(index)?;
                for name in names {
                    add(store.read::<T>(name, index)?);
                }
                let mirrored = store.layout().is_symmetric() && place.row_block != place.column_block;
                (place.rows, place.columns, mirrored)
            }
            Parts::Files(sets) => {
                let rows = self.strip_of(index);
                for set in sets {
                    add(set.rows::<T>(rows.clone())?.as_standard_layout().iter().copied().collect());
                }
                (rows, 0..self.rows / self.per_sample, false)
            }
        };
        Ok(Piece { rows: self.of_samples(rows), columns: self.of_samples(columns), values: sum, mirrored })
    }

    /// The rows that a piece contributes to, with its contribution; twice for a mirrored piece.
    fn products(&self, index: usize, x: ArrayView2<'_, T>) -> Result<Vec<(Range<usize>, Vec<T>)>> {
        let Piece { rows, columns, values, mirrored } = self.read(index)?;
        let (m, n, width) = (rows.len(), columns.len(), x.ncols());
        let product = |to: &Range<usize>, from: &Range<usize>, strides: (usize, usize)| {
            let part = x.slice(s![from.clone(), ..]);
            let part = part.as_standard_layout();
            let mut y = vec![T::zero(); to.len() * width];
            let sizes = [to.len(), width, from.len()];
            gemm(sizes, (&values, strides.0, strides.1), (part.as_slice().unwrap_or(&[]), width, 1), false, &mut y);
            (to.clone(), y)
        };
        debug_assert_eq!(values.len(), m * n);
        let forward = product(&rows, &columns, (n, 1));
        Ok(if mirrored { vec![forward, product(&columns, &rows, (1, n))] } else { vec![forward] })
    }

    fn multiply(&self, x: ArrayView2<'_, T>, mut y: ArrayViewMut2<'_, T>) -> Result<()> {
        y.fill(T::zero());
        let n_pieces = self.n_pieces();
        for start in (0..n_pieces).step_by(WAVE) {
            let wave = (start..(start + WAVE).min(n_pieces)).into_par_iter();
            let found: Vec<_> = wave.map(|index| self.products(index, x)).collect::<Result<_>>()?;
            for (rows, values) in found.into_iter().flatten() {
                y.slice_mut(s![rows, ..]).iter_mut().zip(values).for_each(|(to, value)| *to += value);
            }
        }
        Ok(())
    }

    /// A matrix in a file is not guaranteed to be symmetric, and it is not in memory as a whole. For random signs `u`
    /// and `v`, `u·Av` and `v·Au` differ by about the length of `A - Aᵀ`, and `Au` is about as long as `A`.
    fn check_symmetric(&self) -> Result<()> {
        let mut random = stream(0, "symmetry of a matrix");
        let sign = || if random.random::<bool>() { T::one() } else { -T::one() };
        let x = Array2::from_shape_simple_fn((self.rows, 2), sign);
        let mut y = Array2::zeros(x.dim());
        self.multiply(x.view(), y.view_mut())?;
        let dot = |a: ArrayView1<'_, T>, b: ArrayView1<'_, T>| -> f64 {
            a.iter().zip(b).map(|(&a, &b)| a.wide() * b.wide()).sum()
        };
        let difference = (dot(x.column(0), y.column(1)) - dot(x.column(1), y.column(0))).abs();
        let length = dot(y.column(0), y.column(0)).sqrt();
        if difference <= T::epsilon().wide().sqrt() * length {
            return Ok(());
        }
        Err(KernelError::Setting(format!("{}: the matrix is not symmetric", self.kept.place())))
    }
}

impl<T: Real> LinearOperator<T> for KeptOperator<'_, T> {
    fn dim(&self) -> usize {
        self.rows
    }

    fn apply(&self, x: ArrayView1<'_, T>, y: ArrayViewMut1<'_, T>) {
        self.apply_block(x.insert_axis(Axis(1)), y.insert_axis(Axis(1)));
    }

    fn apply_block(&self, x: ArrayView2<'_, T>, mut y: ArrayViewMut2<'_, T>) {
        if let Err(error) = self.multiply(x, y.view_mut()) {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            y.fill(T::nan());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gram::{Gram, Listing};
    use crate::store::{Manifest, Store};
    use crate::{Kernel, Ntk, NtkKind};
    use mercer_data::{Dataset, Existing, Source, write_npy};
    use mercer_net::arch::Mlp;
    use ndarray::ArrayD;
    use std::path::Path;

    /// Products, the diagonal and the matrix itself agree for every kind of source.
    fn check(path: &Path, matrix: &Array2<f64>) {
        let context = Context::new();
        let kept = KeptGram::open(&Source::new(path, None)).unwrap();
        let operator = kept.operator::<f64>(&context).unwrap();
        let rows = matrix.nrows();
        let x = Array2::from_shape_fn((rows, 2), |(i, j)| ((i + 5 * j) as f64).cos());
        let mut y = Array2::from_elem((rows, 2), f64::NAN);
        operator.apply_block(x.view(), y.view_mut());
        assert!(operator.failure().is_none());
        let expected = matrix.dot(&x);
        let scale = expected.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
        assert!((&y - &expected).iter().all(|d| d.abs() < 1e-12 * scale), "{}", path.display());
        assert_eq!(operator.diagonal().unwrap(), matrix.diag());
        let read: ArrayD<f64> = kept.read(&context).unwrap();
        assert_eq!(read.to_shape((rows, rows)).unwrap(), matrix);
        context.cancel();
        operator.apply_block(x.view(), y.view_mut());
        assert!(y.iter().all(|v| v.is_nan()));
        assert!(matches!(operator.failure(), Some(KernelError::Cancelled)));
    }

    #[test]
    fn products_are_those_of_the_matrix() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let network = Mlp::new(3, &[8], 2).build(1).unwrap();
        let x = Array2::from_shape_fn((300, 3), |(i, j)| ((i * 7 + j * 3) as f64).sin());
        let data = [Dataset::from_array("x", x.into_dyn().view()).unwrap()];
        for (name, kind) in [("trace", NtkKind::Trace), ("full", NtkKind::Full)] {
            let kernel = Ntk::<f64>::new(&network, &[vec![3]], kind).unwrap();
            let rows = 300 * kernel.per_sample();
            let context = Context::new();
            // Several tiles, also off the diagonal, and a last one that is not full.
            for symmetric in [true, false] {
                let gram = Gram::new(&kernel, &data);
                let gram = if symmetric { gram } else { gram.against(&data) };
                let layout = crate::store::StoreLayout { tile: 128, ..gram.layout() };
                let store = Store::create(&path(&format!("{name}-{symmetric}.zarr")), Manifest::new(layout.clone()));
                let store = store.unwrap();
                let whole: ArrayD<f64> = Gram::new(&kernel, &data).to_kernel(&context).unwrap();
                let whole = whole.to_shape((rows, rows)).unwrap().into_owned();
                for index in 0..layout.n_tiles() {
                    let place = layout.tile(index).unwrap();
                    let each = kernel.per_sample();
                    let part = whole.slice(s![
                        place.rows.start * each..place.rows.end * each,
                        place.columns.start * each..place.columns.end * each
                    ]);
                    let values: Vec<f64> = part.iter().copied().collect();
                    store.write(index, &vec![&values[..]; layout.arrays.len()]).unwrap();
                }
                check(&path(&format!("{name}-{symmetric}.zarr")), &(&whole * layout.arrays.len() as f64));
                let file = path(&format!("{name}-{symmetric}.npy"));
                write_npy(&file, &whole, Existing::Refuse).unwrap();
                check(&file, &whole);
            }
        }
    }

    #[test]
    fn what_is_no_symmetric_matrix_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let context = Context::new();
        let refused = |name: &str, word: &str| {
            let kept = KeptGram::open(&Source::new(path(name), None)).unwrap();
            let error = kept.operator::<f64>(&context).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        };
        let skew = Array2::from_shape_fn((40, 40), |(i, j)| (i as f64 - 1.5 * j as f64).sin());
        write_npy(&path("skew.npy"), &skew, Existing::Refuse).unwrap();
        refused("skew.npy", "not symmetric");
        write_npy(&path("flat.npy"), &skew.slice(s![..3, ..]), Existing::Refuse).unwrap();
        refused("flat.npy", "no Gram matrix");
        // Layers may differ from their transposes as long as their sum does not.
        write_npy(&path("sum.one.npy"), &skew, Existing::Refuse).unwrap();
        write_npy(&path("sum.two.npy"), &skew.t(), Existing::Refuse).unwrap();
        let files = vec![path("sum.one.npy"), path("sum.two.npy")];
        let listing = Listing::new(vec!["one".to_owned(), "two".to_owned()], files);
        listing.write(&path("sum.json"), Existing::Refuse).unwrap();
        check(&path("sum.json"), &(&skew + &skew.t()));
    }
}
