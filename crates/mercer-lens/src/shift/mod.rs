//! Are two sets of samples alike, seen through features or kernels?
//!
//! | function | question |
//! |---|---|
//! | [`examine`] | do the sets differ: MMD² with linear and Gaussian kernels, a linear classifier, the first principal component |
//! | [`p_value`], [`corrected`] | could it be chance, in one test or in any of many |
//! | [`FittedView::witness`], [`density_ratios`] | which samples |
//! | [`label_shift`], [`decision_statistics`], [`matched_rows`] | do only the rates of the classes differ |
//! | [`estimated_accuracy`] | how often is the network right on samples without labels |
//!
//! Statistics are computed for the sets as they are and for all permutations at once: [`Permutations`] are a matrix of zeros
//! and ones, and sums over the first set are its product with the features ([`MeanSums`]). A [`View`] reads samples block by
//! block, twice, so that features need not fit into memory; [`mmd_from_gram`] is the exact form for a kernel matrix, and
//! [`Landmarks`] makes features of a kernel, and [`SparseProjection`] few features of many.

mod accuracy;
mod density;
mod family;
mod fourier;
mod kind;
mod labels;
mod landmarks;
mod line;
mod means;
mod permutations;
mod projection;
mod view;
mod whole;

pub use accuracy::{Decided, EstimatedAccuracy, decide, estimated_accuracy};
pub use density::density_ratios;
pub use family::{Corrected, corrected, p_value};
pub use fourier::{RandomFourier, median_distance};
pub use kind::TestKind;
pub use labels::{LabelShift, decision_statistics, label_shift, matched_rows};
pub use landmarks::Landmarks;
pub use line::energy_on_a_line;
pub use means::{MeanSums, mmd_from_gram};
pub use permutations::{Members, Permutations};
pub use projection::SparseProjection;
pub use view::{FittedView, N_PROJECTED, View, ViewStatistics};
pub use whole::{Examined, balanced_accuracy, examine, pilot_rows};
