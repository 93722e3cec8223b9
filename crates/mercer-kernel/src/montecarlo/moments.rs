//! Means and their standard errors, one draw at a time (Welford 1962).

use crate::kernel::Real;
use mercer_linalg::simd::dispatch;

/// The mean of equally long arrays, and its standard error.
///
/// Arrays are added one by one and not kept; the same arrays in the same order give the same bits, for any division
/// into calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments<T> {
    count: usize,
    mean: Vec<T>,
    squares: Vec<T>,
}

impl<T: Real> Moments<T> {
    /// Arrays of this length.
    pub fn new(length: usize) -> Self {
        Self { count: 0, mean: vec![T::zero(); length], squares: vec![T::zero(); length] }
    }

    /// Adds an array, times a factor.
    ///
    /// # Panics
    /// If its length differs.
    pub fn add(&mut self, draw: &[T], factor: T) {
        assert_eq!(draw.len(), self.mean.len(), "arrays of one length");
        self.count += 1;
        add(self.count, draw, factor, &mut self.mean, &mut self.squares);
    }

    /// The number of arrays.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Their mean.
    pub fn mean(&self) -> &[T] {
        &self.mean
    }

    /// The standard error of each number of the mean: `√(Σ (x − mean)² / (n (n − 1)))`; zero before there are two.
    pub fn standard_errors(&self) -> Vec<T> {
        let mut errors = self.squares.clone();
        finish(self.count, &mut errors);
        errors
    }
}

/// Adds draw number `count` to a running mean and a running sum of squared deviations.
pub(super) fn add<T: Real>(count: usize, draw: &[T], factor: T, mean: &mut [T], squares: &mut [T]) {
    let share = T::narrow(1.0 / count as f64);
    let numbers = mean.iter_mut().zip(squares).zip(draw);
    dispatch(
        #[inline(always)]
        || {
            numbers.for_each(|((mean, squares), &x)| {
                let x = factor * x;
                let before = x - *mean;
                *mean += before * share;
                *squares += before * (x - *mean);
            });
        },
    );
}

/// Adds draw number `count` to a running mean only; the same bits as with squares.
pub(super) fn add_mean<T: Real>(count: usize, draw: &[T], factor: T, mean: &mut [T]) {
    let share = T::narrow(1.0 / count as f64);
    dispatch(
        #[inline(always)]
        || mean.iter_mut().zip(draw).for_each(|(mean, &x)| *mean += (factor * x - *mean) * share),
    );
}

/// Turns squared deviations of `count` draws into standard errors of their mean.
pub(super) fn finish<T: Real>(count: usize, squares: &mut [T]) {
    let scale = if count > 1 { 1.0 / (count as f64 * (count - 1) as f64) } else { 0.0 };
    squares.iter_mut().for_each(|x| *x = T::narrow((x.wide().max(0.0) * scale).sqrt()));
}
