//! Sanity check of attribution scores: do they depend on what the network has learnt?
//!
//! The scores of a trained network are compared with those after its weights were replaced by random ones, layer by
//! layer (Adebayo et al. 2018, arXiv 1810.03292, for saliency maps). For every query, the agreement is Spearman's rank
//! correlation over the training samples. Scores that agree with those of a random network do not explain the trained
//! one.

use crate::average::Average;
use crate::checks::{check_count, check_rows};
use crate::error::Result;
use crate::ranks::spearman;
use mercer_linalg::check_finite;
use ndarray::ArrayView2;
use serde::Serialize;

/// How well two sets of scores agree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// The mean rank correlation over queries; `None` if it is undefined for all of them.
    pub correlation: Option<Average>,
    /// The rank correlation of every query; `None` if all scores of one side are equal.
    pub per_query: Vec<Option<f64>>,
}

/// The agreement after randomising one layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerAgreement {
    /// The name of the layer.
    pub layer: String,
    /// The agreement with the scores of the trained network.
    pub agreement: Agreement,
}

/// The agreement of two matrices of scores, with a row per query and a column per training sample.
///
/// ```
/// let (a, b) = (ndarray::array![[0.1, 0.2, 0.9]], ndarray::array![[1.0, 2.0, 3.0]]);
/// let found = mercer_lens::sanity::agreement(a.view(), b.view())?;
/// assert!((found.correlation.unwrap().mean - 1.0).abs() < 1e-12);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For no queries, fewer than two samples, different shapes, and numbers that are not finite.
pub fn agreement(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) -> Result<Agreement> {
    check_count("an agreement over queries", 1, a.nrows())?;
    check_count("an agreement of scores", 2, a.ncols())?;
    check_rows("the other scores", a.nrows(), b.nrows())?;
    check_rows("the other scores, transposed,", a.ncols(), b.ncols())?;
    for scores in [a, b] {
        check_finite("scores", scores)?;
    }
    let of_query =
        |(a, b): (ndarray::ArrayView1<'_, f64>, ndarray::ArrayView1<'_, f64>)| spearman(&a.to_vec(), &b.to_vec());
    let per_query = a.outer_iter().zip(b.outer_iter()).map(of_query).collect::<Result<Vec<_>>>()?;
    let defined: Vec<f64> = per_query.iter().flatten().copied().collect();
    Ok(Agreement { correlation: Average::of(&defined, 0, 0), per_query })
}

/// The agreement of the scores of a trained network with those after randomising each of its layers.
///
/// # Errors
/// As [`agreement`].
pub fn by_layer(
    trained: ArrayView2<'_, f64>,
    randomised: &[(String, ArrayView2<'_, f64>)],
) -> Result<Vec<LayerAgreement>> {
    let of_layer = |(layer, scores): &(String, ArrayView2<'_, f64>)| {
        Ok(LayerAgreement { layer: layer.clone(), agreement: agreement(trained, *scores)? })
    };
    randomised.iter().map(of_layer).collect()
}
