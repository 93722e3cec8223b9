//! Soft targets: a row of probabilities per sample.

use crate::classes::{ClassSet, largest};
use crate::error::{LearnError, Result, check_size, setting};
use mercer_data::Classes;
use mercer_linalg::check_finite;
use ndarray::{Array2, ArrayView2, Axis};

/// How far the sum of a row may differ from one. Targets may come from a network in single precision.
const SLACK: f64 = 1e-4;

/// Known classes as targets: a single one per row, with a column per class that has samples.
///
/// ```
/// let labels = mercer_data::Classes::new(vec![2, 0], 3)?;
/// let (classes, targets) = mercer_learn::surrogate::one_hot(&labels)?;
/// assert_eq!((classes.present(), targets), (&[0, 2][..], ndarray::array![[0.0, 1.0], [1.0, 0.0]]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If all labels are of one class, or there are none.
pub fn one_hot(labels: &Classes) -> Result<(ClassSet, Array2<f64>)> {
    let (classes, compact) = ClassSet::for_boundary(labels, labels.indices().len())?;
    let mut targets = Array2::zeros((compact.len(), classes.present().len()));
    compact.iter().enumerate().for_each(|(row, &class)| targets[(row, class)] = 1.0);
    Ok((classes, targets))
}

/// Targets that belong to samples, scaled so that every row sums to one.
pub(super) fn probabilities(targets: ArrayView2<'_, f64>, n_samples: usize) -> Result<Array2<f64>> {
    check_size("the number of targets", n_samples, targets.nrows())?;
    check_finite("the targets", targets)?;
    let mut checked = targets.as_standard_layout().into_owned();
    for mut row in checked.outer_iter_mut() {
        let sum = row.sum();
        if row.iter().any(|t| *t < 0.0) || (sum - 1.0).abs() > SLACK {
            let text = format!("{row}");
            return Err(setting("a row of targets", text, "it must consist of probabilities that sum to one"));
        }
        // An exact one stays as it is.
        if sum != 1.0 {
            row.mapv_inplace(|t| t / sum);
        }
    }
    Ok(checked)
}

/// Checks that every class has a share in some sample that counts; the bias of another class has no optimum.
pub(super) fn check_boundary(targets: &Array2<f64>, importance: &[f64]) -> Result<()> {
    let mut shares = vec![0.0; targets.ncols()];
    for (row, v) in targets.outer_iter().zip(importance) {
        shares.iter_mut().zip(row).for_each(|(share, t)| *share += v * t);
    }
    let present: Vec<usize> = (0..shares.len()).filter(|&class| shares[class] > 0.0).collect();
    match present.as_slice() {
        [] => Err(LearnError::Empty { what: "targets" }),
        [only] => Err(LearnError::OneClass { class: only.to_string() }),
        _ => match shares.iter().position(|share| *share <= 0.0) {
            Some(class) => {
                let (class, what) = (class.to_string(), "a bias");
                Err(LearnError::TooFew { class, count: 0, needed: 1, what })
            }
            None => Ok(()),
        },
    }
}

/// The weight of every sample: one, or such that all classes have the same total weight.
///
/// ```text
/// vᵢ = Σ_c tᵢ_c·N/(C·n_c),    n_c = Σᵢ tᵢ_c
/// ```
pub(super) fn importance(targets: &Array2<f64>, balanced: bool) -> Vec<f64> {
    let (n, n_classes) = targets.dim();
    if !balanced {
        return vec![1.0; n];
    }
    let counts = targets.sum_axis(Axis(0));
    let weight = counts.mapv(|count| if count > 0.0 { n as f64 / (n_classes as f64 * count) } else { 0.0 });
    targets.outer_iter().map(|row| row.dot(&weight)).collect()
}

/// The most likely class of every row.
pub(super) fn leading(targets: ArrayView2<'_, f64>) -> Vec<usize> {
    targets.outer_iter().map(|row| largest(row.iter().copied())).collect()
}
