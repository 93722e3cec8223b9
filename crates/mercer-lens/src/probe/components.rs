//! Principal components of a standardised layer.
//!
//! For standardised training samples `Z = UΣVᵀ` the coordinates are `ZV = UΣ`, and those of new samples `z·V`. They are
//! computed from the smaller of `ZᵀZ` (units) and `ZZᵀ` (samples, "Gram-matrix PCA"); with the latter `V = ZᵀUΣ⁻¹`
//! is never formed, because `z·V = (z·Zᵀ)UΣ⁻¹`.

use super::Standardiser;
use crate::checks::check_count;
use crate::error::Result;
use mercer_linalg::{Scalar, matmul, symmetric_eigen};
use ndarray::{Array1, Array2, ArrayView2, Axis, s};

/// Principal components, with the coordinates of the training samples.
#[derive(Clone, Debug)]
pub struct Components {
    standardiser: Standardiser,
    /// The sum of squares along each component, descending.
    values: Array1<f64>,
    coordinates: Array2<f64>,
    /// `V`, or `UΣ⁻¹` if there are fewer samples than units.
    map: Array2<f64>,
    from_samples: bool,
}

impl Components {
    /// All components of training samples, a row each. Components that are only rounding are left out.
    ///
    /// ```
    /// use mercer_lens::probe::{Components, Standardiser};
    /// let layer = ndarray::array![[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]];
    /// let fitted = Components::fit(layer.view(), Standardiser::fit(layer.view())?)?;
    /// assert_eq!(fitted.count(), 1);
    /// assert!((fitted.explained(1) - 1.0).abs() < 1e-12);
    /// # Ok::<(), mercer_lens::LensError>(())
    /// ```
    ///
    /// # Errors
    /// Without samples, and for numbers that are not finite.
    pub fn fit<T: Scalar>(train: ArrayView2<'_, T>, standardiser: Standardiser) -> Result<Self> {
        check_count("principal components", 1, train.nrows())?;
        let from_samples = train.nrows() < standardiser.width();
        if standardiser.width() == 0 {
            let (values, coordinates) = (Array1::zeros(0), Array2::zeros((train.nrows(), 0)));
            return Ok(Self { standardiser, values, coordinates, map: Array2::zeros((0, 0)), from_samples });
        }
        let products = match from_samples {
            true => standardiser.gram(train)?,
            false => standardiser.covariance(train)?,
        };
        let eigen = symmetric_eigen(products.view())?;
        drop(products);
        let size = eigen.values.len();
        let least = eigen.values[0] * size as f64 * f64::EPSILON;
        let kept = eigen.values.iter().take_while(|value| **value > least && **value > 0.0).count();
        let values = eigen.values.slice(s![..kept]).to_owned();
        let mut vectors = eigen.vectors;
        if kept < size {
            vectors = vectors.slice(s![.., ..kept]).to_owned();
        }
        let (coordinates, map) = match from_samples {
            true => {
                let mut coordinates = vectors.clone();
                for ((mut own, mut map), value) in
                    coordinates.axis_iter_mut(Axis(1)).zip(vectors.axis_iter_mut(Axis(1))).zip(&values)
                {
                    own *= value.sqrt();
                    map /= value.sqrt();
                }
                (coordinates, vectors)
            }
            false => (projected(&standardiser, train, &vectors)?, vectors),
        };
        Ok(Self { standardiser, values, coordinates, map, from_samples })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// The coordinates of the training samples, a column per component.
    pub fn coordinates(&self) -> ArrayView2<'_, f64> {
        self.coordinates.view()
    }

    /// Units that were dropped because they are constant.
    pub fn n_dead(&self) -> usize {
        self.standardiser.n_dead()
    }

    /// The variance along each component, descending.
    pub fn variances(&self) -> Vec<f64> {
        let n = self.coordinates.nrows() as f64;
        self.values.iter().map(|value| value / n).collect()
    }

    /// The share of the variance that the first components explain.
    pub fn explained(&self, count: usize) -> f64 {
        let total = self.values.sum();
        if total > 0.0 { self.values.iter().take(count).sum::<f64>() / total } else { 0.0 }
    }

    /// The least number of components that explain this share of the variance.
    pub fn needed(&self, share: f64) -> usize {
        let (total, mut sum) = (self.values.sum(), 0.0);
        let enough = |value: &f64| {
            sum += value;
            // A share of one is reached by rounding, too.
            sum >= share * total * (1.0 - 1e-12)
        };
        self.values.iter().position(enough).map_or(self.count(), |at| at + 1)
    }

    /// The coordinates of new samples; the training samples are needed again if there are fewer of them than units.
    ///
    /// # Errors
    /// For samples of another width, and numbers that are not finite.
    pub fn project<T: Scalar>(&self, samples: ArrayView2<'_, T>, train: ArrayView2<'_, T>) -> Result<Array2<f64>> {
        match self.from_samples && self.count() > 0 {
            true => Ok(matmul(self.standardiser.cross(samples, train)?.view(), self.map.view())),
            false if self.count() == 0 => Ok(Array2::zeros((samples.nrows(), 0))),
            false => projected(&self.standardiser, samples, &self.map),
        }
    }
}

/// `z·V`, some rows at a time.
fn projected<T: Scalar>(
    standardiser: &Standardiser,
    samples: ArrayView2<'_, T>,
    vectors: &Array2<f64>,
) -> Result<Array2<f64>> {
    const ROWS: usize = 512;
    let mut found = Array2::zeros((samples.nrows(), vectors.ncols()));
    for start in (0..samples.nrows()).step_by(ROWS) {
        let rows = start..(start + ROWS).min(samples.nrows());
        let strip = standardiser.apply(samples.slice(s![rows.clone(), ..]))?;
        found.slice_mut(s![rows, ..]).assign(&matmul(strip.view(), vectors.view()));
    }
    Ok(found)
}
