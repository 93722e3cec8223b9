//! A linear probe on all components, with its controls.
//!
//! Ridge regression of centred class indicators `Y` on the coordinates `Z = UΣ`, with a bias:
//!
//! ```text
//! Ŷ = Ȳ + Z (ΣΣ + λI)⁻¹ Zᵀ(Y − Ȳ),   hᵢ = 1/n + Σⱼ zᵢⱼ²/(σⱼ² + λ)
//! Y₋ᵢ = Yᵢ − (Yᵢ − Ŷᵢ)/(1 − hᵢ)                                          without sample i, exactly
//! ```
//!
//! The class with the largest output is the decision. The penalty is the one with the least leave-one-out squared error
//! among `λ = σ₁²·10⁻ᵏ`. All penalties cost one decomposition, which the components are already.
//!
//! The control of Hewitt and Liang (Designing and interpreting probes with control tasks, EMNLP 2019) is the same probe
//! on shuffled training labels. A probe that does well on them reads nothing from the layer; it memorises.

use super::{Split, share_right};
use crate::error::Result;
use mercer_data::random::stream;
use mercer_linalg::matmul;
use ndarray::{Array1, Array2, ArrayView2, Axis};
use rand::seq::SliceRandom;
use serde::Serialize;

/// Powers of `10^½` below the largest eigenvalue that penalties are taken from.
const PENALTIES: i32 = 17;

/// A linear probe and its control.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinearProbe {
    /// The share of test samples that it classifies correctly.
    pub accuracy: f64,
    /// The same on the training samples.
    pub training_accuracy: f64,
    /// The share of training samples that are classified correctly without themselves.
    pub leave_one_out_accuracy: f64,
    /// The chosen penalty, relative to the largest eigenvalue.
    pub penalty: f64,
    /// The share of test samples that it classifies correctly after training on shuffled labels.
    pub shuffled_accuracy: f64,
    /// The share of shuffled training labels that it reproduces.
    pub shuffled_training_accuracy: f64,
}

/// Trains a linear probe on principal coordinates, whose columns are orthogonal and centred.
///
/// # Errors
/// For sizes that do not agree, and numbers that are not finite.
pub fn linear_probe(split: &Split<'_>, seed: u64) -> Result<LinearProbe> {
    split.check()?;
    let own = trained(split, split.labels);
    let mut shuffled = split.labels.to_vec();
    shuffled.shuffle(&mut stream(seed, "lens/probe/labels"));
    let control = trained(split, &shuffled);
    Ok(LinearProbe {
        accuracy: own.test,
        training_accuracy: own.train,
        leave_one_out_accuracy: own.left_out,
        penalty: own.penalty,
        shuffled_accuracy: control.test,
        shuffled_training_accuracy: control.train,
    })
}

struct Trained {
    test: f64,
    train: f64,
    left_out: f64,
    penalty: f64,
}

fn trained(split: &Split<'_>, labels: &[usize]) -> Trained {
    let (n, squares) = (labels.len(), split.train.map_axis(Axis(0), |column| column.dot(&column)));
    let mut indicators = Array2::zeros((n, split.n_classes));
    labels.iter().enumerate().for_each(|(row, &class)| indicators[(row, class)] = 1.0);
    let means = indicators.mean_axis(Axis(0)).unwrap_or_else(|| Array1::zeros(split.n_classes));
    let centred = &indicators - &means;
    let moments = matmul(split.train.t(), centred.view());
    let largest = squares.iter().copied().fold(0.0, f64::max);
    let mut best: Option<(f64, Trained)> = None;
    for half_power in 0..PENALTIES {
        let relative = 10.0_f64.powf(-0.5 * f64::from(half_power));
        // Without any component, the means decide.
        let penalty = if largest > 0.0 { relative * largest } else { 1.0 };
        let shrunk = squares.mapv(|square| 1.0 / (square + penalty));
        let weights = &moments * &shrunk.view().insert_axis(Axis(1));
        let fitted = matmul(split.train, weights.view()) + &means;
        let leverages = leverages(split.train, &shrunk);
        let mut left_out = indicators.clone();
        for (((mut row, fit), truth), h) in
            left_out.outer_iter_mut().zip(fitted.outer_iter()).zip(indicators.outer_iter()).zip(&leverages)
        {
            row -= &((&truth - &fit) / (1.0 - h).max(f64::EPSILON));
        }
        let error = (&left_out - &indicators).iter().map(|x| x * x).sum::<f64>();
        if best.as_ref().is_none_or(|(least, _)| error < *least) {
            let new = matmul(split.test, weights.view()) + &means;
            let found = Trained {
                test: share_right(&crate::decisions(new.view()), split.test_labels),
                train: share_right(&crate::decisions(fitted.view()), labels),
                left_out: share_right(&crate::decisions(left_out.view()), labels),
                penalty: relative,
            };
            best = Some((error, found));
        }
    }
    best.map_or(Trained { test: 0.0, train: 0.0, left_out: 0.0, penalty: 0.0 }, |(_, found)| found)
}

/// `1/n + Σⱼ zᵢⱼ²/(σⱼ² + λ)`.
fn leverages(coordinates: ArrayView2<'_, f64>, shrunk: &Array1<f64>) -> Vec<f64> {
    let least = 1.0 / coordinates.nrows() as f64;
    let of_row =
        |row: ndarray::ArrayView1<'_, f64>| least + row.iter().zip(shrunk).map(|(z, s)| z * z * s).sum::<f64>();
    coordinates.outer_iter().map(of_row).collect()
}
