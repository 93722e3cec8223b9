//! Activation clustering (Chen et al. 2018, arXiv 1811.03728).
//!
//! The samples of a class are divided into two clusters by 2-means on their leading principal coordinates. If poison
//! was added to the class, it tends to form the smaller cluster. With the mean silhouette `s̄` of the class, the share
//! `ρ ≤ ½` of the smaller cluster and the silhouette `sᵢ` of a sample,
//!
//! ```text
//! score(i) = max(s̄, 0)·(1 − 2ρ)·(1 + sᵢ)/2      in the smaller cluster, 0 in the larger one
//! ```
//!
//! which is near 1 for a small and well separated cluster. The paper looks at size and silhouette one after the other,
//! and reduces by independent components. The score, the principal components and the product are ours. Clusters of
//! equal size have the score 0. The silhouette takes the distances of all pairs of a class.

use super::principal::{Principal, of_features, of_gram};
use super::{block, kmeans, members};
use crate::checks::check_rows;
use crate::error::{LensError, Result};
use mercer_data::random::stream;
use ndarray::{ArrayView2, Axis};
use serde::Serialize;

/// Settings of the clustering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Clustering {
    /// How many principal components are used.
    pub components: usize,
    /// How many random starts, besides one along the first component.
    pub restarts: usize,
    /// The seed of the random starts.
    pub seed: u64,
}

impl Default for Clustering {
    fn default() -> Self {
        Self { components: 10, restarts: 8, seed: 0 }
    }
}

/// The two clusters of a class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClassClusters {
    /// The class; 0 if it was looked at alone.
    pub class: usize,
    /// The number of its samples.
    pub samples: usize,
    /// The share of the smaller cluster; `None` if the class cannot be divided.
    pub smaller: Option<f64>,
    /// The mean silhouette; `None` if the class cannot be divided.
    pub silhouette: Option<f64>,
}

/// The clusters of all samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Clusters {
    /// The score of every sample.
    pub scores: Vec<f64>,
    /// Whether it is in the smaller cluster of its class.
    pub in_smaller: Vec<bool>,
    /// The classes.
    pub classes: Vec<ClassClusters>,
}

/// The clusters of one class, from its features.
///
/// # Errors
/// For features that are not finite, and no components.
pub fn class_clusters_from_features(features: ArrayView2<'_, f64>, settings: Clustering) -> Result<Clusters> {
    one_class(settings, 0, of_features(features, check(settings)?)?)
}

/// The clusters of one class, from its Gram matrix.
///
/// # Errors
/// For a matrix that is not square, symmetric and finite, and no components.
pub fn class_clusters_from_gram(gram: ArrayView2<'_, f64>, settings: Clustering) -> Result<Clusters> {
    one_class(settings, 0, of_gram(gram, check(settings)?)?)
}

/// The clusters of every class, from the features of all samples.
///
/// # Errors
/// For no samples, features that are not finite, classes that do not exist, another number of labels, and no components.
pub fn clusters_from_features(
    features: ArrayView2<'_, f64>,
    labels: &[usize],
    n_classes: usize,
    settings: Clustering,
) -> Result<Clusters> {
    by_class(labels, n_classes, features.nrows(), settings, |samples| {
        of_features(features.select(Axis(0), samples).view(), settings.components)
    })
}

/// The clusters of every class, from the Gram matrix of all samples. Only the blocks of pairs of the same class are
/// read.
///
/// # Errors
/// For no samples, a matrix that is not square, blocks that are not symmetric or not finite, classes that do not exist,
/// another number of labels, and no components.
pub fn clusters_from_gram(
    gram: ArrayView2<'_, f64>,
    labels: &[usize],
    n_classes: usize,
    settings: Clustering,
) -> Result<Clusters> {
    check_rows("the transposed Gram matrix", gram.nrows(), gram.ncols())?;
    by_class(labels, n_classes, gram.nrows(), settings, |samples| {
        of_gram(block(gram, samples).view(), settings.components)
    })
}

fn check(settings: Clustering) -> Result<usize> {
    if settings.components == 0 {
        let (name, value) = ("‹components›", "0".to_owned());
        return Err(LensError::Setting { name, value, reason: "at least one is needed" });
    }
    Ok(settings.components)
}

fn one_class(settings: Clustering, class: usize, principal: Principal) -> Result<Clusters> {
    let rows = principal.coordinates.as_standard_layout();
    let x = rows.view();
    let n = x.nrows();
    let mut random = stream(settings.seed, &format!("lens/signatures/class {class}"));
    let Some(second) = kmeans::two_means(x, settings.restarts, &mut random) else {
        let summary = ClassClusters { class, samples: n, smaller: None, silhouette: None };
        return Ok(Clusters { scores: vec![0.0; n], in_smaller: vec![false; n], classes: vec![summary] });
    };
    let silhouettes = kmeans::silhouettes(x, &second);
    let in_second = second.iter().filter(|at| **at).count();
    let smaller = in_second.min(n - in_second) as f64 / n as f64;
    // Of two clusters of equal size, neither is the smaller one.
    let in_smaller: Vec<bool> = second.iter().map(|&at| 2 * in_second != n && at == (2 * in_second < n)).collect();
    let silhouette = silhouettes.iter().sum::<f64>() / n as f64;
    let evidence = silhouette.max(0.0) * (1.0 - 2.0 * smaller);
    let score = |(&own, &inside): (&f64, &bool)| if inside { evidence * (1.0 + own) / 2.0 } else { 0.0 };
    let scores = silhouettes.iter().zip(&in_smaller).map(score).collect();
    let summary = ClassClusters { class, samples: n, smaller: Some(smaller), silhouette: Some(silhouette) };
    Ok(Clusters { scores, in_smaller, classes: vec![summary] })
}

fn by_class(
    labels: &[usize],
    n_classes: usize,
    rows: usize,
    settings: Clustering,
    principal: impl Fn(&[usize]) -> Result<Principal>,
) -> Result<Clusters> {
    check(settings)?;
    let n = labels.len();
    let mut all = Clusters { scores: vec![0.0; n], in_smaller: vec![false; n], classes: Vec::new() };
    for (class, samples) in members(labels, n_classes, rows)?.iter().enumerate() {
        let found = one_class(settings, class, principal(samples)?)?;
        for (place, &sample) in samples.iter().enumerate() {
            all.scores[sample] = found.scores[place];
            all.in_smaller[sample] = found.in_smaller[place];
        }
        all.classes.extend(found.classes);
    }
    Ok(all)
}
