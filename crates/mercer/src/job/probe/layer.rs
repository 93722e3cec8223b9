//! What is found about one layer.

use super::findings::{IntrinsicDimension, LayerFindings};
use crate::Error;
use mercer_kernel::Real;
use mercer_lens::collapse::{Decided, collapse};
use mercer_lens::dimension::two_nn;
use mercer_lens::probe::{
    Components, LinearProbe, ProbeSettings, Probed, Split, Standardiser, curves, dimensions, linear_probe,
};
use mercer_linalg::syrk_into;
use mercer_run::Context;
use ndarray::{Array2, ArrayView2, Axis, s};

/// Units that are converted to double precision at a time.
const STRIP: usize = 512;

/// The share of the variance that defines the dimension by principal components.
const VARIANCE: f64 = 0.9;

/// Everything that layers are probed with.
pub(super) struct Probing<'a> {
    pub(super) labels: &'a [usize],
    pub(super) test_labels: &'a [usize],
    pub(super) n_classes: usize,
    /// The decisions of the network for the training samples.
    pub(super) decisions: &'a [usize],
    pub(super) settings: ProbeSettings,
    /// The training samples that are compared in pairs.
    pub(super) pairs: &'a [usize],
    pub(super) seed: u64,
}

/// The activations of a layer.
pub(super) struct Activations<'a, T> {
    pub(super) node: &'a str,
    pub(super) train: ArrayView2<'a, T>,
    pub(super) test: ArrayView2<'a, T>,
    /// The weight of the last layer, if these are the features that enter it.
    pub(super) weight: Option<ArrayView2<'a, f64>>,
}

impl Probing<'_> {
    /// The findings about a layer, and the products of the samples that are compared in pairs.
    pub(super) fn layer<T: Real>(
        &self,
        layer: &Activations<'_, T>,
        context: &Context,
    ) -> Result<(LayerFindings, Array2<f64>), Error> {
        let about = |error| Error::from(error).with_place(&format!("layer {}", layer.node));
        let pairs = products(layer.train, self.pairs);
        let dimension = two_nn(pairs.view()).map_err(about)?;
        let decided = Decided { decisions: self.decisions, weight: layer.weight };
        let collapse = collapse(layer.train, self.labels, self.n_classes, decided).map_err(about)?;
        context.check()?;
        let components = components(layer).map_err(about)?;
        context.check()?;
        let test = components.project(layer.test, layer.train).map_err(about)?;
        let split = self.split(&components, &test);
        let grid = dimensions(components.count());
        let curves = curves(&split, &grid, &self.settings, context).map_err(about)?;
        let linear = self.linear(&split).map_err(about)?;
        let d90 = curves.d90();
        let explained = |d: usize| components.explained(d);
        let variance_at_d90 = d90.map(|d| Probed {
            neighbours: explained(d.neighbours),
            centre: explained(d.centre),
            svm: d.svm.map(explained),
        });
        let findings = LayerFindings {
            node: layer.node.to_owned(),
            n_features: layer.train.ncols(),
            n_dead: components.n_dead(),
            n_components: components.count(),
            accuracy: curves.best(),
            d90,
            variance_at_d90,
            intrinsic_dimension: IntrinsicDimension {
                pca90: components.needed(VARIANCE),
                twonn: dimension.dimension,
                twonn_error: dimension.standard_error,
            },
            collapse,
            linear,
            untrained: None,
            explained: grid.iter().map(|&d| explained(d)).collect(),
            curves,
        };
        Ok((findings, pairs))
    }

    /// The accuracy of a linear probe alone.
    pub(super) fn linear_accuracy<T: Real>(&self, layer: &Activations<'_, T>) -> Result<Option<f64>, Error> {
        let about = |error| Error::from(error).with_place(&format!("layer {}", layer.node));
        let components = components(layer).map_err(about)?;
        let test = components.project(layer.test, layer.train).map_err(about)?;
        let found = self.linear(&self.split(&components, &test)).map_err(about)?;
        Ok(found.map(|found| found.accuracy))
    }

    fn split<'b>(&'b self, components: &'b Components, test: &'b Array2<f64>) -> Split<'b> {
        Split {
            train: components.coordinates(),
            labels: self.labels,
            test: test.view(),
            test_labels: self.test_labels,
            n_classes: self.n_classes,
        }
    }

    /// None for a constant layer.
    fn linear(&self, split: &Split<'_>) -> mercer_lens::Result<Option<LinearProbe>> {
        match split.train.ncols() {
            0 => Ok(None),
            _ => linear_probe(split, self.seed).map(Some),
        }
    }
}

fn components<T: Real>(layer: &Activations<'_, T>) -> mercer_lens::Result<Components> {
    Components::fit(layer.train, Standardiser::fit(layer.train)?)
}

/// Products of some samples of a layer with each other, as they are.
pub(super) fn products<T: Real>(layer: ArrayView2<'_, T>, rows: &[usize]) -> Array2<f64> {
    let mut gram = Array2::zeros((rows.len(), rows.len()));
    for start in (0..layer.ncols()).step_by(STRIP) {
        let units = layer.slice(s![.., start..(start + STRIP).min(layer.ncols())]);
        let strip = units.select(Axis(0), rows).mapv(|x| x.wide());
        syrk_into(1.0, strip.view(), true, gram.view_mut());
    }
    gram
}
