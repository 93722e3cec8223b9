//! Neural collapse.
//!
//! With class means `μ_c`, their mean `μ_G` over classes, and the centred means `M = [μ_c − μ_G]` (Papyan, Han and
//! Donoho, Prevalence of neural collapse during the terminal phase of deep learning training, PNAS 117, 2020):
//!
//! ```text
//! NC1 = tr(Σ_W Σ_B⁺)/C                 Σ_W = mean over samples of (x − μ_c)(x − μ_c)ᵀ,  Σ_B = MMᵀ/C
//! NC2 = variation of ‖μ_c − μ_G‖: standard deviation over mean (norms); mean of |cos + 1/(C−1)| over pairs (angles)
//! NC3 = ‖Wᵀ/‖W‖ − M/‖M‖‖²              W the weight of the last layer; Frobenius norms
//! NC4 = share of samples whose decision by the network is not their nearest class mean
//! ```
//!
//! All are zero at full collapse. `Σ_B` has rank `C − 1`, so NC1 needs the samples along `C − 1` directions alone and
//! no matrix of units by units. Class means count equally, whatever the number of their samples.

use crate::checks::{check_count, check_labels, check_rows};
use crate::error::{LensError, Result};
use mercer_linalg::{Scalar, check_finite, matmul, symmetric_eigen, syrk};
use ndarray::{Array1, Array2, ArrayView2, Axis};
use serde::Serialize;

/// Eigenvalues of `Σ_B` below this share of the largest are rounding.
const RANK: f64 = 1e-12;

/// Measures of neural collapse; all are zero at full collapse.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Collapse {
    /// Variation within classes relative to that between them; `None` if all class means are equal.
    pub nc1: Option<f64>,
    /// The larger of the next two.
    pub nc2: Option<f64>,
    /// Variation of the distances of class means from their mean.
    pub nc2_norms: Option<f64>,
    /// Mean deviation of their angles from those of a simplex.
    pub nc2_angles: Option<f64>,
    /// Distance of the last layer's weights from the class means; `None` without weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nc3: Option<f64>,
    /// The share of samples that the network decides differently from the nearest class mean.
    pub nc4: f64,
}

/// The network's side of a comparison with class means.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    /// The network's decision for every sample.
    pub decisions: &'a [usize],
    /// The weight of the last layer, a row per class, if these are the features that enter it.
    pub weight: Option<ArrayView2<'a, f64>>,
}

/// Measures the collapse of a layer's features, a row per training sample.
///
/// Classes without samples are left out. With one class left, only NC4 is defined.
///
/// ```
/// use mercer_lens::collapse::{Decided, collapse};
/// // Three class means at the corners of a triangle, without any spread.
/// let corner = |class: usize| [(class == 0) as u8 as f64, (class == 1) as u8 as f64, (class == 2) as u8 as f64];
/// let labels = [0, 1, 2, 0, 1, 2];
/// let features = ndarray::Array2::from_shape_fn((6, 3), |(i, j)| corner(labels[i])[j]);
/// let found = collapse(features.view(), &labels, 3, Decided { decisions: &labels, weight: None })?;
/// assert!(found.nc1.unwrap() < 1e-12 && found.nc2.unwrap() < 1e-12 && found.nc4 == 0.0);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// Without samples, for sizes that do not agree, and numbers that are not finite.
pub fn collapse<T: Scalar>(
    features: ArrayView2<'_, T>,
    labels: &[usize],
    n_classes: usize,
    decided: Decided<'_>,
) -> Result<Collapse> {
    check_count("neural collapse", 1, features.nrows())?;
    check_rows("the labels", features.nrows(), labels.len())?;
    check_rows("the decisions", features.nrows(), decided.decisions.len())?;
    check_labels(labels, n_classes)?;
    check_labels(decided.decisions, n_classes)?;
    check_finite("a layer", features)?;
    let largest = features.iter().fold(0.0, |most: f64, x| most.max(x.wide().abs()));
    if largest > 1e150 {
        let reason = "squares of numbers above 1e150 overflow; rescale the features";
        return Err(LensError::Setting { name: "the largest number", value: format!("{largest:e}"), reason });
    }
    let classes = Means::of(features, labels, n_classes, if largest > 0.0 { largest } else { 1.0 });
    let (nc2_norms, nc2_angles) = classes.simplex();
    let nc3 = match decided.weight {
        Some(weight) => classes.dual(weight, n_classes)?,
        None => None,
    };
    Ok(Collapse {
        nc1: classes.within(features, labels)?,
        nc2: nc2_norms.zip(nc2_angles).map(|(norms, angles)| norms.max(angles)),
        nc2_norms,
        nc2_angles,
        nc3,
        nc4: classes.disagreement(features, decided.decisions),
    })
}

/// The means of the classes that have samples, relative to the mean of means.
struct Means {
    /// The classes that have samples.
    present: Vec<usize>,
    /// A row per class present; all numbers are divided by `scale`.
    centred: Array2<f64>,
    centre: Array1<f64>,
    scale: f64,
}

impl Means {
    fn of<T: Scalar>(features: ArrayView2<'_, T>, labels: &[usize], n_classes: usize, scale: f64) -> Self {
        let mut sums = Array2::<f64>::zeros((n_classes, features.ncols()));
        let mut counts = vec![0_usize; n_classes];
        for (row, &class) in features.outer_iter().zip(labels) {
            sums.row_mut(class).zip_mut_with(&row, |sum, x| *sum += x.wide() / scale);
            counts[class] += 1;
        }
        let present: Vec<usize> = (0..n_classes).filter(|&class| counts[class] > 0).collect();
        let mut centred = sums.select(Axis(0), &present);
        for (mut mean, &class) in centred.outer_iter_mut().zip(&present) {
            mean /= counts[class] as f64;
        }
        let centre = centred.mean_axis(Axis(0)).unwrap_or_else(|| Array1::zeros(features.ncols()));
        centred -= &centre;
        Self { present, centred, centre, scale }
    }

    /// `tr(Σ_W Σ_B⁺)/C`: for eigenvectors `u` of `Σ_B` with eigenvalues `λ`, the mean over samples of `Σ (u·(x − μ_c))²/λ`.
    fn within<T: Scalar>(&self, features: ArrayView2<'_, T>, labels: &[usize]) -> Result<Option<f64>> {
        let n_present = self.present.len() as f64;
        let eigen = symmetric_eigen(syrk(self.centred.view()).view())?;
        let rank = eigen.values.iter().take_while(|value| **value > RANK * eigen.values[0] && **value > 1e-28).count();
        if rank == 0 {
            return Ok(None);
        }
        // λ = s²/C for singular values s of M, and u = Mv/s: together u/√λ = √C·Mv/s².
        let mut weights = eigen.vectors.slice(ndarray::s![.., ..rank]).to_owned();
        for (mut column, value) in weights.axis_iter_mut(Axis(1)).zip(&eigen.values) {
            column *= n_present.sqrt() / value;
        }
        let directions = matmul(self.centred.t(), weights.view());
        let means = matmul(self.centred.view(), directions.view());
        let mut place = vec![0; labels.iter().max().map_or(0, |most| most + 1)];
        self.present.iter().enumerate().for_each(|(at, &class)| place[class] = at);
        let mut sum = 0.0;
        for (row, &class) in features.outer_iter().zip(labels) {
            let own: Array1<f64> = row.iter().zip(&self.centre).map(|(x, mean)| x.wide() / self.scale - mean).collect();
            let along = matmul(own.view().insert_axis(Axis(0)), directions.view());
            let mean = means.row(place[class]);
            sum += along.iter().zip(&mean).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        }
        Ok(Some(sum / features.nrows() as f64 / n_present))
    }

    /// Variation of norms, and deviation of angles from those of a simplex.
    fn simplex(&self) -> (Option<f64>, Option<f64>) {
        let n = self.present.len();
        let products = syrk(self.centred.view());
        let norms: Vec<f64> = products.diag().iter().map(|square| square.sqrt()).collect();
        let mean = norms.iter().sum::<f64>() / n as f64;
        if n < 2 || norms.iter().any(|norm| *norm <= 1e-14) {
            return (None, None);
        }
        let variance = norms.iter().map(|norm| (norm - mean).powi(2)).sum::<f64>() / n as f64;
        let ideal = 1.0 / (n as f64 - 1.0);
        let mut deviation = 0.0;
        for i in 0..n {
            for j in 0..i {
                deviation += (products[(i, j)] / (norms[i] * norms[j]) + ideal).abs();
            }
        }
        (Some(variance.sqrt() / mean), Some(deviation / (n * (n - 1) / 2) as f64))
    }

    /// `‖Wᵀ/‖W‖ − M/‖M‖‖²`, over the classes that have samples.
    fn dual(&self, weight: ArrayView2<'_, f64>, n_classes: usize) -> Result<Option<f64>> {
        check_rows("the weight of the last layer", n_classes, weight.nrows())?;
        check_rows("the transposed weight of the last layer", self.centred.ncols(), weight.ncols())?;
        check_finite("the weight of the last layer", weight)?;
        let weight = weight.select(Axis(0), &self.present);
        let norm = |matrix: &Array2<f64>| matrix.iter().map(|x| x * x).sum::<f64>().sqrt();
        let (own, other) = (norm(&weight), norm(&self.centred));
        if own == 0.0 || other <= 1e-14 {
            return Ok(None);
        }
        Ok(Some((&weight / own - &self.centred / other).iter().map(|x| x * x).sum()))
    }

    /// The share of decisions that are not the nearest class mean.
    fn disagreement<T: Scalar>(&self, features: ArrayView2<'_, T>, decisions: &[usize]) -> f64 {
        let squares: Vec<f64> = self.centred.outer_iter().map(|mean| mean.dot(&mean)).collect();
        let mut different = 0_usize;
        for (row, &decision) in features.outer_iter().zip(decisions) {
            let own: Array1<f64> = row.iter().zip(&self.centre).map(|(x, mean)| x.wide() / self.scale - mean).collect();
            let far = |at: usize| squares[at] - 2.0 * self.centred.row(at).dot(&own);
            let nearest = (1..squares.len()).fold((0, far(0)), |best, at| {
                let distance = far(at);
                if distance < best.1 { (at, distance) } else { best }
            });
            different += usize::from(self.present[nearest.0] != decision);
        }
        different as f64 / decisions.len() as f64
    }
}
