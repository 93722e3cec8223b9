//! Posteriors through eigenfunctions and sketches against the full one.
//!
//! On the two networks of `tests/golden/laplace`, with their prior: the covariance of the outputs at the test samples, and at the same
//! samples five times as far from the origin, where the data say nothing.
//!
//! Without the residual correction eigenfunctions give a lower bound of the variance: weights are confined to a subspace. With it, what
//! the data say about the rest of the prior is ignored, and the variance is rather too large. Where few functions carry the kernel (the
//! classifier) the correction is nearly exact; where they do not (the regression, whose data determine most of its parameters) the
//! truth lies in between.

use crate::Fallible;
use crate::experiment::Experiment;
use crate::options::Options;
use crate::record::home;
use crate::report::{Cell, Format, Report, Table};
use mercer::data::{Dataset, Labels, Source};
use mercer::kernel::empirical::{NtkKind, Selection};
use mercer::kernel::sketch::SketchMethod;
use mercer::kernel::{FeatureMap, Ntk};
use mercer::learn::laplace::{Laplace, LaplaceSettings, Likelihood, Structure};
use mercer::net::Network;
use mercer::run::Context;
use mercer::spectral::{Landmarks, Nystrom};
use ndarray::{Array3, Axis};
use std::sync::Arc;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "posteriors",
    group: "Machines",
    title: "Posteriors that are not the full one",
    paper: "",
    claim: "A Laplace posterior through few eigenfunctions or a sketch of the tangent kernel comes near the full one.",
    published: "",
    setting: "Two small networks with the covariance of their outputs at the test samples, and at the same samples five times as far from \
        the origin. *Error* is the relative Frobenius difference to the full posterior's covariance, *variance* the ratio of the summed \
        variances; *corrected* adds the prior's variance in the directions that are missing.",
    cost: 60,
    needs: &[],
    options: &["seeds", "functions", "sketches"],
    threads: 0,
    run,
};

/// Files and what they are.
const NETWORKS: [(&str, &str); 2] =
    [("lla_iris_tanh", "Iris, a classifier"), ("lla_diabetes_regression", "Diabetes, a regression")];

/// How much farther from the origin the samples out of distribution are.
const FAR: f64 = 5.0;

struct Case {
    network: Network,
    train: Vec<Dataset>,
    labels: Labels,
    /// In and out of distribution.
    test: [Vec<Dataset>; 2],
    precision: f64,
}

impl Case {
    fn open(name: &str) -> Fallible<Self> {
        let folder = home().join("../tests/golden/laplace");
        let part = |key: &str| Source::new(folder.join(format!("{name}.npz")), Some(key)).open();
        let near = part("x_test")?;
        let far = near.read::<f64>()?.mapv(|x| FAR * x);
        let far = Dataset::from_array("far", far.view())?;
        Ok(Self {
            network: Network::from_onnx(folder.join(format!("{name}.onnx")))?,
            train: vec![part("x_train")?],
            labels: Labels::read(&part("y_train")?)?,
            test: [vec![near], vec![far]],
            precision: part("prior_precision")?.read::<f64>()?.sum(),
        })
    }

    fn settings(&self, structure: Structure) -> LaplaceSettings {
        LaplaceSettings::new(structure, Likelihood::for_labels(&self.labels)).prior_precision(self.precision)
    }

    fn covariances(&self, machine: &Laplace<f64>) -> Fallible<[Array3<f64>; 2]> {
        let of = |data: &[Dataset]| machine.predict(data, &Context::new()).map(|found| found.covariance);
        Ok([of(&self.test[0])?, of(&self.test[1])?])
    }

    fn fit(&self, structure: Structure) -> Fallible<[Array3<f64>; 2]> {
        let settings = self.settings(structure);
        self.covariances(&Laplace::fit(&self.network, &self.train, &self.labels, &settings, &Context::new())?)
    }

    fn eigen(&self, k: usize, residual: bool) -> Fallible<[Array3<f64>; 2]> {
        let shapes = [self.train[0].sample_shape().to_vec()];
        let kernel =
            Arc::new(Ntk::<f64>::with_selection(&self.network, &shapes, NtkKind::Full, &Selection::default())?);
        let silent = Context::new();
        let functions = Nystrom::new(Landmarks::All).fit(kernel, &self.train, k, &silent)?.functions;
        let map: Arc<dyn FeatureMap<f64>> = Arc::new(functions);
        let settings = self.settings(Structure::Features { residual });
        self.covariances(&Laplace::fit_features(&self.network, map, &self.train, &self.labels, &settings, &silent)?)
    }
}

/// The relative Frobenius difference and the ratio of the summed variances.
fn compare(found: &Array3<f64>, full: &Array3<f64>) -> [f64; 2] {
    let norm = |a: &Array3<f64>| a.iter().map(|x| x * x).sum::<f64>().sqrt();
    let trace = |a: &Array3<f64>| a.axis_iter(Axis(0)).map(|block| block.diag().sum()).sum::<f64>();
    [norm(&(found - full)) / norm(full), trace(found) / trace(full)]
}

fn run(options: &Options) -> Fallible<Report> {
    let seeds = options.number("seeds", 5, 1)?;
    let functions = options.list("functions", &[8, 16, 32, 64], &[8])?;
    let sketches = options.list("sketches", &[32, 128, 512, 2048], &[32])?;
    let mut holds = true;
    let mut tables = Vec::new();
    for (network, title) in NETWORKS {
        let case = Case::open(network)?;
        let full = case.fit(Structure::Full)?;
        let mut table =
            Table::new(format!("{title}, {} parameters:", case.network.n_params())).column("posterior", Format::Plain);
        for place in ["in distribution", "out of it"] {
            for what in ["error", "error, corrected", "variance", "variance, corrected"] {
                table = table.column(format!("{what}, {place}"), Format::Fixed(3));
            }
        }
        for &k in &functions {
            let line = line(&full, |residual| Ok(vec![case.eigen(k, residual)?]))?;
            // A subspace of the weights has no more variance than all of them.
            holds &= line[2] <= 1.0 + 1e-9 && line[6] <= 1.0 + 1e-9;
            table.push(named(&format!("eigenfunctions, k = {k}"), &line));
        }
        for &k in &sketches {
            let line = line(&full, |residual| {
                let method = SketchMethod::SparseJl { nonzeros: 1 };
                (0..seeds as u64).map(|seed| case.fit(Structure::Sketch { method, k, seed, residual })).collect()
            })?;
            table.push(named(&format!("sketch, K = {k}"), &line));
        }
        tables.push(table);
    }
    Ok(Report { tables, holds: Some(holds), ..Report::default() })
}

fn named(name: &str, line: &[f64]) -> Vec<Cell> {
    std::iter::once(Cell::from(name)).chain(line.iter().map(|&x| Cell::from(x))).collect()
}

/// Means over runs, at both places: errors and variances, each without and with the correction.
fn line(full: &[Array3<f64>; 2], fit: impl Fn(bool) -> Fallible<Vec<[Array3<f64>; 2]>>) -> Fallible<Vec<f64>> {
    let fits = [fit(false)?, fit(true)?];
    let mean = |runs: &[[Array3<f64>; 2]], place: usize, which: usize| {
        runs.iter().map(|run| compare(&run[place], &full[place])[which]).sum::<f64>() / runs.len().max(1) as f64
    };
    let all =
        (0..2).flat_map(|place| (0..2).flat_map(move |which| (0..2).map(move |corrected| (place, which, corrected))));
    Ok(all.map(|(place, which, corrected)| mean(&fits[corrected], place, which)).collect())
}
