//! Unknown poison: training samples that set themselves apart within their class.
//!
//! | method | score of a sample |
//! |---|---|
//! | [`spectral`](spectral_from_features) | the squared projection on the leading direction of its class |
//! | [`clusters`](clusters_from_features) | whether it is in the smaller of two well separated clusters of its class |
//!
//! Both work on features, or on the Gram matrix of a kernel, where the features are never formed. Both only see
//! poison that is a minority of its class. [`combined`] is the mean of the ranks of both.

mod clusters;
mod kmeans;
mod principal;
mod spectral;

pub use clusters::{
    ClassClusters, Clustering, Clusters, class_clusters_from_features, class_clusters_from_gram,
    clusters_from_features, clusters_from_gram,
};
pub use spectral::{
    ClassSpectral, ClassSummary, Spectral, class_spectral_from_features, class_spectral_from_gram,
    spectral_from_features, spectral_from_gram,
};

use crate::checks::{check_count, check_labels, check_rows};
use crate::error::Result;
use crate::ranks::mean_of_ranks;
use ndarray::{Array2, ArrayView2, Axis};

/// The mean of the normalised ranks of both scores.
///
/// # Errors
/// For findings about different numbers of samples.
pub fn combined(spectral: &Spectral, clusters: &Clusters) -> Result<Vec<f64>> {
    mean_of_ranks(&[(&spectral.relative, 1.0), (&clusters.scores, 1.0)])
}

/// The samples of every class, ascending.
fn members(labels: &[usize], n_classes: usize, rows: usize) -> Result<Vec<Vec<usize>>> {
    check_count("a signature", 1, labels.len())?;
    check_rows("the samples", labels.len(), rows)?;
    check_labels(labels, n_classes)?;
    let mut members = vec![Vec::new(); n_classes];
    labels.iter().enumerate().for_each(|(index, &label)| members[label].push(index));
    Ok(members)
}

/// The rows and columns of some samples.
fn block(gram: ArrayView2<'_, f64>, samples: &[usize]) -> Array2<f64> {
    gram.select(Axis(0), samples).select(Axis(1), samples)
}
