//! `cargo xtask posteriors`: posteriors through eigenfunctions and sketches against the full one.
//!
//! On the two networks of `tests/golden/laplace`, with their prior: the covariance of the outputs at the test samples, and at the same
//! samples five times as far from the origin, where the data say nothing. *Error* is the relative Frobenius difference from the full
//! posterior's, *variance* the ratio of the summed variances; *with* and *without* the residual correction.
//!
//! Without it eigenfunctions give a lower bound of the variance: weights are confined to a subspace. With it what the data say about the rest of
//! the prior is not heard, and the variance is rather too large. Where few functions carry the kernel (the classifier) the correction is
//! nearly exact; where they do not (the regression, whose data determine most of its parameters) the truth lies in between.

use crate::{Outcome, root};
use mercer_data::{Dataset, Labels, Source};
use mercer_kernel::empirical::{Kind, Selection};
use mercer_kernel::sketch::Method;
use mercer_kernel::{FeatureMap, Ntk};
use mercer_learn::laplace::{Laplace, LaplaceSettings, Likelihood, Structure};
use mercer_net::Network;
use mercer_run::Context;
use mercer_spectral::{Landmarks, Nystrom};
use ndarray::{Array3, Axis};
use std::sync::Arc;

const NETWORKS: [&str; 2] = ["lla_iris_tanh", "lla_diabetes_regression"];

/// How much farther from the origin the samples out of distribution are.
const FAR: f64 = 5.0;

/// Seeds of sketches: the mean over them is printed.
const SEEDS: u64 = 5;

type Error = Box<dyn std::error::Error>;

struct Case {
    network: Network,
    train: Vec<Dataset>,
    labels: Labels,
    /// In and out of distribution.
    test: [Vec<Dataset>; 2],
    precision: f64,
}

impl Case {
    fn open(name: &str) -> Result<Self, Error> {
        let folder = root().join("tests/golden/laplace");
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

    fn covariances(&self, machine: &Laplace<f64>) -> Result<[Array3<f64>; 2], Error> {
        let of = |data: &[Dataset]| machine.predict(data, &Context::new()).map(|found| found.covariance);
        Ok([of(&self.test[0])?, of(&self.test[1])?])
    }

    fn fit(&self, structure: Structure) -> Result<[Array3<f64>; 2], Error> {
        let settings = self.settings(structure);
        self.covariances(&Laplace::fit(&self.network, &self.train, &self.labels, &settings, &Context::new())?)
    }

    fn eigen(&self, k: usize, residual: bool) -> Result<[Array3<f64>; 2], Error> {
        let shapes = [self.train[0].sample_shape().to_vec()];
        let kernel = Arc::new(Ntk::<f64>::of(&self.network, &shapes, Kind::Full, &Selection::default())?);
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

/// Prints the tables.
pub(crate) fn tables(_: &[String]) -> Outcome {
    let mut good = true;
    for name in NETWORKS {
        let case = Case::open(name)?;
        let full = case.fit(Structure::Full)?;
        println!("{name}, {} parameters, prior precision {}", case.network.n_params(), case.precision);
        println!("| posterior | error in | with | variance in | with | error out | with | variance out | with |");
        println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
        for k in [8, 16, 32, 64] {
            good &= line(&format!("eigenfunctions, k = {k}"), &full, |residual| Ok(vec![case.eigen(k, residual)?]))?;
        }
        for k in [32, 128, 512, 2048] {
            line(&format!("sketch, K = {k}"), &full, |residual| {
                let method = Method::SparseJl { nonzeros: 1 };
                (0..SEEDS).map(|seed| case.fit(Structure::Sketch { method, k, seed, residual })).collect()
            })?;
        }
        println!();
    }
    if !good {
        println!("WRONG: a subspace of the weights has more variance than all of them");
    }
    Ok(good)
}

/// A line of the table: means over seeds, without and with the correction; whether the variance without it is a lower bound.
fn line(
    name: &str,
    full: &[Array3<f64>; 2],
    fit: impl Fn(bool) -> Result<Vec<[Array3<f64>; 2]>, Error>,
) -> Result<bool, Error> {
    let (plain, corrected) = (fit(false)?, fit(true)?);
    let mean = |runs: &[[Array3<f64>; 2]], place: usize, which: usize| {
        runs.iter().map(|run| compare(&run[place], &full[place])[which]).sum::<f64>() / runs.len().max(1) as f64
    };
    print!("| {name} |");
    for place in 0..2 {
        for which in 0..2 {
            print!(" {:.3} | {:.3} |", mean(&plain, place, which), mean(&corrected, place, which));
        }
    }
    println!();
    Ok((0..2).all(|place| mean(&plain, place, 1) <= 1.0 + 1e-9))
}
