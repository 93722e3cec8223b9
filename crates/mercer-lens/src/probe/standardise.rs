//! Standardisation by the statistics of the training samples.
//!
//! ```text
//! z = (x − mean) / deviation,   deviation² = Σ (x − mean)² / n
//! ```
//!
//! A unit is dead if its value is the same for all training samples, up to rounding of its own numbers. Dead units say
//! nothing and are left out.

use crate::checks::{check_count, check_rows};
use crate::error::Result;
use mercer_linalg::{Scalar, check_finite, matmul_into, syrk_into};
use ndarray::{Array2, ArrayView2, s};

/// Columns that are converted to double precision at a time.
const STRIP: usize = 512;

/// The means and deviations of the units of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Standardiser {
    means: Vec<f64>,
    /// One over the deviation.
    factors: Vec<f64>,
    /// The units that are not dead.
    alive: Vec<usize>,
}

impl Standardiser {
    /// Learns means and deviations from training samples, a row each.
    ///
    /// ```
    /// use mercer_lens::probe::Standardiser;
    /// let layer = ndarray::array![[1.0, 5.0], [3.0, 5.0]];
    /// let fitted = Standardiser::fit(layer.view())?;
    /// assert_eq!((fitted.width(), fitted.n_dead()), (1, 1));
    /// assert_eq!(fitted.apply(layer.view())?, ndarray::array![[-1.0], [1.0]]);
    /// # Ok::<(), mercer_lens::LensError>(())
    /// ```
    ///
    /// # Errors
    /// Without samples, and for numbers that are not finite.
    pub fn fit<T: Scalar>(features: ArrayView2<'_, T>) -> Result<Self> {
        check_count("standardisation", 1, features.nrows())?;
        check_finite("a layer", features)?;
        let n = features.nrows() as f64;
        let width = features.ncols();
        // Differences from the first sample are exactly zero where nothing changes.
        let first: Vec<f64> = features.row(0).iter().map(|x| x.wide()).collect();
        let (mut shifts, mut largest) = (vec![0.0; width], vec![0.0_f64; width]);
        for row in features.outer_iter() {
            for (((shift, most), start), x) in shifts.iter_mut().zip(&mut largest).zip(&first).zip(row) {
                *shift += (x.wide() - start) / n;
                *most = most.max(x.wide().abs());
            }
        }
        let means: Vec<f64> = first.iter().zip(&shifts).map(|(start, shift)| start + shift).collect();
        let mut squares = vec![0.0; width];
        for row in features.outer_iter() {
            for (((square, mean), most), x) in squares.iter_mut().zip(&means).zip(&largest).zip(row) {
                // Relative to the largest value, so that squares neither overflow nor vanish.
                let relative = (x.wide() - mean) / most.max(f64::MIN_POSITIVE);
                *square += relative * relative / n;
            }
        }
        // Numbers of this precision that differ by their last digits are equal.
        let rounding = 8.0 * T::epsilon().wide();
        let alive: Vec<usize> = (0..width).filter(|&unit| squares[unit].sqrt() > rounding).collect();
        let factors = squares.iter().zip(&largest).map(|(square, most)| 1.0 / (square.sqrt() * most)).collect();
        Ok(Self { means, factors, alive })
    }

    /// The units that are left.
    pub fn width(&self) -> usize {
        self.alive.len()
    }

    /// Units that were dropped because they are constant.
    pub fn n_dead(&self) -> usize {
        self.means.len() - self.alive.len()
    }

    /// The standardised samples.
    ///
    /// # Errors
    /// For samples of another width, and numbers that are not finite.
    pub fn apply<T: Scalar>(&self, features: ArrayView2<'_, T>) -> Result<Array2<f64>> {
        self.check(features)?;
        Ok(self.strip(features, 0..self.width()))
    }

    /// Products of all standardised samples with each other, without a copy of the whole layer.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn gram<T: Scalar>(&self, features: ArrayView2<'_, T>) -> Result<Array2<f64>> {
        self.check(features)?;
        let mut gram = Array2::zeros((features.nrows(), features.nrows()));
        for units in self.strips() {
            syrk_into(1.0, self.strip(features, units).view(), true, gram.view_mut());
        }
        Ok(gram)
    }

    /// Products of some standardised samples with others.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn cross<T: Scalar>(&self, rows: ArrayView2<'_, T>, columns: ArrayView2<'_, T>) -> Result<Array2<f64>> {
        self.check(rows)?;
        self.check(columns)?;
        let mut products = Array2::zeros((rows.nrows(), columns.nrows()));
        for units in self.strips() {
            let (a, b) = (self.strip(rows, units.clone()), self.strip(columns, units));
            matmul_into(1.0, a.view(), b.t(), true, products.view_mut());
        }
        Ok(products)
    }

    /// Products of all units with each other, over the samples.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn covariance<T: Scalar>(&self, features: ArrayView2<'_, T>) -> Result<Array2<f64>> {
        self.check(features)?;
        let mut products = Array2::zeros((self.width(), self.width()));
        for start in (0..features.nrows()).step_by(STRIP) {
            let rows = features.slice(s![start..(start + STRIP).min(features.nrows()), ..]);
            syrk_into(1.0, self.strip(rows, 0..self.width()).t(), true, products.view_mut());
        }
        Ok(products)
    }

    fn check<T: Scalar>(&self, features: ArrayView2<'_, T>) -> Result<()> {
        check_rows("the transposed layer", self.means.len(), features.ncols())?;
        Ok(check_finite("a layer", features)?)
    }

    fn strips(&self) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let width = self.width();
        (0..width).step_by(STRIP).map(move |start| start..(start + STRIP).min(width))
    }

    /// Some of the units that are alive, standardised.
    fn strip<T: Scalar>(&self, features: ArrayView2<'_, T>, units: std::ops::Range<usize>) -> Array2<f64> {
        let units = &self.alive[units];
        let mut strip = Array2::zeros((features.nrows(), units.len()));
        for (mut to, from) in strip.outer_iter_mut().zip(features.outer_iter()) {
            for (z, &unit) in to.iter_mut().zip(units) {
                *z = (from[unit].wide() - self.means[unit]) * self.factors[unit];
            }
        }
        strip
    }
}
