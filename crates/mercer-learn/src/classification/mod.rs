//! Classification on Gram matrices and on features. Eigenfunctions are features.
//!
//! | machine | scores |
//! |---|---|
//! | [`Glm`] | multinomial logistic in the rows: the surrogate `W·κ(x, X) + b` on a kernel, a linear probe on features |
//! | [`SgdGlm`] | the same, one class against the others, by stochastic gradient descent as in the surrogates' paper |
//! | [`BinaryLogistic`] | two classes, penalised by the norm in the kernel's space, by Newton's method |
//! | [`Svm`] | margins of support vector machines, one class against the others |
//! | [`NearestNeighbours`], [`NearestCentre`] | votes of neighbours, distances from class means, in the kernel's space |
//!
//! ```
//! use mercer_data::Classes;
//! use mercer_learn::classification::Svm;
//! use mercer_learn::{Classify, Fit, SampleRows};
//! use ndarray::array;
//!
//! let gram = array![[4.0, 2.0, -2.0, -4.0], [2.0, 1.0, -1.0, -2.0], [-2.0, -1.0, 1.0, 2.0], [-4.0, -2.0, 2.0, 4.0]];
//! let machine = Svm::new(1.0)?.fit(&SampleRows::Gram(gram.view()), &Classes::new(vec![0, 0, 1, 1], 2)?)?;
//! assert_eq!(machine.decide(&SampleRows::Gram(gram.view()))?, [0, 0, 1, 1]);
//! # Ok::<(), mercer_learn::LearnError>(())
//! ```

mod glm;
mod logistic;
mod loss;
mod nearest;
mod sgd;
mod svm;

pub use glm::Glm;
pub use logistic::BinaryLogistic;
pub(crate) use logistic::{Mode, improve, mode, settled};
pub(crate) use loss::log_loss;
pub use nearest::{By, Centres, NearestCentre, NearestNeighbours, Neighbours};
pub use sgd::SgdGlm;
pub use svm::{Separation, Svm, WarmStart};

/// `n / (C·n_c)` for every sample, so that all classes have the same weight.
pub(crate) fn balanced(compact: &[usize], n_classes: usize) -> Vec<f64> {
    let mut counts = vec![0_usize; n_classes];
    compact.iter().for_each(|&class| counts[class] += 1);
    compact.iter().map(|&class| compact.len() as f64 / (n_classes * counts[class]) as f64).collect()
}
