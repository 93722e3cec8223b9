//! Signs of unknown poison: directions and clusters within classes.

use super::findings::PoisonFindings;
use crate::Error;
use crate::job::surrogate::KernelRows;
use mercer_kernel::Real;
use mercer_lens::signatures::{
    Clustering, Clusters, Spectral, clusters_from_features, clusters_from_gram, combined, spectral_from_features,
    spectral_from_gram,
};
use ndarray::Array2;

/// A cluster with at most this share of its class may be poison; a larger one may as well be the clean part.
const SMALL: f64 = 0.35;

/// Clusters are well separated from this silhouette on. Clean classes have styles: on the embedded digits their
/// silhouettes reach 0.44.
const SEPARATED: f64 = 0.5;

/// Poison goes into few classes: their silhouette stands out by this factor from the median of all classes.
const OUTSTANDING: f64 = 1.5;

/// Samples whose neighbours mostly have other labels are wrong labels, not poison: poison agrees with itself.
const CONTRADICTED: f64 = 0.5;

/// What one space says.
pub(super) struct Space {
    pub(super) spectral: Spectral,
    clusters: Clusters,
    /// Both together, per sample.
    pub(super) scores: Vec<f64>,
    /// Per class, the mean disagreement of the samples in the smaller cluster with their neighbours.
    disagreement: Vec<f64>,
}

impl Space {
    /// Looks at the classes through a kernel whose rows are computed.
    pub(super) fn look<T: Real>(
        rows: &KernelRows<T>,
        labels: &[usize],
        n_classes: usize,
        (disagreement, seed): (&[f64], u64),
    ) -> Result<Self, Error> {
        let settings = Clustering { seed, ..Clustering::default() };
        let (spectral, clusters) = match rows.features() {
            Some(features) => {
                let features: Array2<f64> = features.mapv(|value| value.wide());
                (
                    spectral_from_features(features.view(), labels, n_classes)?,
                    clusters_from_features(features.view(), labels, n_classes, settings)?,
                )
            }
            None => {
                let gram = rows.gram()?;
                (
                    spectral_from_gram(gram.view(), labels, n_classes)?,
                    clusters_from_gram(gram.view(), labels, n_classes, settings)?,
                )
            }
        };
        let scores = combined(&spectral, &clusters)?;
        let mean = |class: usize| {
            let own = (0..labels.len()).filter(|&row| labels[row] == class && clusters.in_smaller[row]);
            let (sum, n) = own.fold((0.0, 0_usize), |(sum, n), row| (sum + disagreement[row], n + 1));
            sum / n.max(1) as f64
        };
        let disagreement = (0..n_classes).map(mean).collect();
        Ok(Self { spectral, clusters, scores, disagreement })
    }

    /// The findings per class.
    pub(super) fn findings(&self, space: &'static str, names: &[String]) -> Vec<PoisonFindings> {
        let mut all: Vec<f64> = self.clusters.classes.iter().filter_map(|class| class.silhouette).collect();
        all.sort_unstable_by(f64::total_cmp);
        let usual = all.get(all.len() / 2).copied().unwrap_or(0.0);
        let least = f64::max(SEPARATED, OUTSTANDING * usual);
        let each = self.spectral.classes.iter().zip(&self.clusters.classes);
        each.map(|(spectral, clusters)| PoisonFindings {
            space,
            class: names[spectral.class].clone(),
            spectral_share: spectral.share,
            smaller_cluster: clusters.smaller,
            silhouette: clusters.silhouette,
            suspicious: clusters.smaller.is_some_and(|share| share <= SMALL)
                && clusters.silhouette.is_some_and(|silhouette| silhouette >= least)
                && self.disagreement[spectral.class] < CONTRADICTED,
        })
        .collect()
    }
}
