//! Gaussian processes on tables of the UCI repository, split 0: RBF kernel, and NNGP and NTK of ReLU networks.
//!
//! Inputs and target are standardised by the training rows. RBF: amplitude, lengthscale and noise by marginal likelihood;
//! NNGP, NTK: of one to three hidden layers the likeliest, amplitude and noise by marginal likelihood, σ_w² = 2, σ_b² = 0.1. They
//! are tuned on at most 1000 rows, of which none has the inputs of another; the process is exact on at most 4000, the first of the split where it has more.

use super::{Fallible, gram, median};
use crate::{Outcome, option};
use flate2::read::GzDecoder;
use mercer_kernel::Kernel;
use mercer_kernel::classic::{Classic, Expression};
use mercer_kernel::infinite::{Activation, Limit, LimitKind, LimitNet, Scales};
use mercer_learn::metrics::{gaussian_log_likelihood, root_mean_square_error};
use mercer_learn::process::{Covariance, Tune};
use mercer_learn::regression::Ridge;
use mercer_learn::{Fit, Result as Learnt, Samples};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView2, Axis};
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

const SETS: [&str; 8] = [
    "bostonHousing",
    "concrete",
    "energy",
    "kin8nm",
    "naval-propulsion-plant",
    "power-plant",
    "wine-quality-red",
    "yacht",
];
const TUNED_ON: usize = 1000;
const MOST: usize = 4000;

/// Takes `--data-dir DIR` and `--only SET`.
pub(super) fn run(arguments: &[String]) -> Outcome {
    let folder = option(arguments, "--data-dir").ok_or("--data-dir DIR: the folder with the sets")?;
    let only = option(arguments, "--only").unwrap_or("");
    println!("test log-likelihood (higher is better) and RMSE, in the target's units");
    println!("| set | training | test | RBF | NNGP | NTK | linear ridge, RMSE |\n|---|---:|---:|---:|---:|---:|---:|");
    for set in SETS.iter().filter(|set| set.contains(only)) {
        let table = Table::read(&Path::new(folder).join(set))?;
        let rbf = table.rbf()?;
        let (nngp, ntk) = (table.limit(LimitKind::Nngp)?, table.limit(LimitKind::Ntk)?);
        let short = |error: f64| if error < 0.1 { format!("{error:.2e}") } else { format!("{error:.4}") };
        let cell = |(likelihood, error): (f64, f64)| format!("{likelihood:.3}, {}", short(error));
        let (n, m) = (table.x.nrows(), table.z.nrows());
        let linear = short(table.linear()?);
        println!("| {set} | {n} | {m} | {} | {} | {} | {linear} |", cell(rbf), cell(nngp), cell(ntk));
    }
    Ok(true)
}

struct Table {
    x: Array2<f64>,
    y: Array2<f64>,
    z: Array2<f64>,
    truth: Array1<f64>,
    mean: f64,
    deviation: f64,
}

impl Table {
    fn read(folder: &Path) -> Fallible<Self> {
        let mut text = String::new();
        GzDecoder::new(std::fs::File::open(folder.join("data.txt.gz"))?).read_to_string(&mut text)?;
        let numbers = |line: &str| line.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>();
        let rows: Vec<Vec<f64>> =
            text.lines().filter(|line| !line.trim().is_empty()).map(numbers).collect::<Result<_, _>>()?;
        let list = |name: &str| -> Fallible<Vec<usize>> {
            let text = std::fs::read_to_string(folder.join(name))?;
            Ok(text.split_whitespace().map(|n| n.parse::<f64>().map(|n| n as usize)).collect::<Result<_, _>>()?)
        };
        let (inputs, target) = (list("index_features.txt")?, list("index_target.txt")?[0]);
        let (mut train, test) = (list("index_train_0.txt")?, list("index_test_0.txt")?);
        train.truncate(MOST);
        let pick = |of: &[usize]| Array2::from_shape_fn((of.len(), inputs.len()), |(i, j)| rows[of[i]][inputs[j]]);
        let (x, z) = (pick(&train), pick(&test));
        let y: Array1<f64> = train.iter().map(|&row| rows[row][target]).collect();
        let truth = test.iter().map(|&row| rows[row][target]).collect();
        let means = x.sum_axis(Axis(0)) / x.nrows() as f64;
        // A column that does not vary carries nothing.
        let spreads = x.std_axis(Axis(0), 0.0).mapv(|s| if s > 0.0 { s } else { 1.0 });
        let (mean, deviation) = (y.sum() / y.len() as f64, y.std(0.0));
        let y = y.mapv(|y| (y - mean) / deviation).insert_axis(Axis(1));
        Ok(Self { x: (x - &means) / &spreads, y, z: (z - &means) / &spreads, truth, mean, deviation })
    }

    /// What hyper-parameters are tuned on. Copies of a row are left out: a fifth of the wines are there twice, target included, and a
    /// process that is nothing but those copies, without noise, would be the likeliest.
    fn part(&self) -> (Array2<f64>, Array2<f64>) {
        let mut seen = HashSet::new();
        let new = |row: &usize| seen.insert(self.x.row(*row).mapv(f64::to_bits).to_vec());
        let rows: Vec<usize> = (0..self.x.nrows()).filter(new).take(TUNED_ON).collect();
        (self.x.select(Axis(0), &rows), self.y.select(Axis(0), &rows))
    }

    fn rbf(&self) -> Fallible<(f64, f64)> {
        let start: Expression = format!("1*rbf(lengthscale={})", (self.x.ncols() as f64).sqrt()).parse()?;
        let (x, y) = self.part();
        let tuned = Tune { noise: 0.1, centred: false, restarts: 3, seed: 0 }.run(
            &start,
            x.view(),
            y.view(),
            &Context::new(),
        )?;
        self.judge(&Classic::new(&tuned.kernel, self.x.ncols())?, 1.0, tuned.noise)
    }

    fn limit(&self, of: LimitKind) -> Fallible<(f64, f64)> {
        let (x, y) = self.part();
        let mut best: Option<(f64, usize, f64, f64)> = None;
        for layers in 1..=3 {
            let matrix = gram(&network(self.x.ncols(), layers, of)?, &x, None)?;
            let scale = matrix.nrows() as f64 / matrix.diag().sum();
            let tuned = Tune { noise: 0.1, centred: false, restarts: 0, seed: 0 }.run(
                &Fixed { matrix, amplitude: scale },
                x.view(),
                y.view(),
                &Context::new(),
            )?;
            if best.is_none_or(|(value, ..)| tuned.log_likelihood > value) {
                best = Some((tuned.log_likelihood, layers, tuned.kernel.amplitude, tuned.noise));
            }
        }
        let (_, layers, amplitude, noise) = best.ok_or("a depth is best")?;
        self.judge(&network(self.x.ncols(), layers, of)?, amplitude, noise)
    }

    /// Test log-likelihood and RMSE of the process with all training rows.
    fn judge(&self, kernel: &dyn Kernel<f64>, amplitude: f64, noise: f64) -> Fallible<(f64, f64)> {
        let training = gram(kernel, &self.x, None)? * amplitude;
        let cross = gram(kernel, &self.z, Some(&self.x))? * amplitude;
        let values: Vec<f64> = self.z.iter().copied().collect();
        let block = kernel.prepare(&[&values], self.z.nrows())?;
        let prior: Array1<f64> = kernel.diagonal(&block).into_iter().map(|v| v * amplitude).collect();
        let settings = mercer_learn::process::ProcessRegression::new(noise)?;
        let machine = settings.fit(&Samples::Gram(training.view()), &self.y)?;
        let posterior = machine.posterior(&Samples::Gram(cross.view()), prior.view())?;
        let means = posterior.means.column(0).mapv(|m| m * self.deviation + self.mean);
        let variances = posterior.variances.mapv(|v| (v + noise) * self.deviation * self.deviation);
        let likelihood = gaussian_log_likelihood(means.view(), variances.view(), self.truth.view())?;
        Ok((likelihood, root_mean_square_error(means.view(), self.truth.view())?))
    }

    /// What a line does, for comparison.
    fn linear(&self) -> Fallible<f64> {
        use mercer_learn::Predict;
        let machine = Ridge::new(1e-3)?.fit(&Samples::Features(self.x.view()), &self.y)?;
        let found =
            machine.predict(&Samples::Features(self.z.view()))?.column(0).mapv(|m| m * self.deviation + self.mean);
        Ok(median(vec![root_mean_square_error(found.view(), self.truth.view())?]))
    }
}

fn network(inputs: usize, layers: usize, of: LimitKind) -> Fallible<Limit<f64>> {
    let scales = Scales::ntk(2f64.sqrt(), 0.1f64.sqrt());
    let mut net = LimitNet::new();
    let mut x = net.input(inputs);
    for _ in 0..layers {
        x = net.dense("layer", x, scales)?;
        x = net.activation("layer", x, Activation::relu())?;
    }
    net.dense("output", x, scales)?;
    Ok(Limit::new(net, of)?)
}

/// A matrix times an amplitude.
#[derive(Clone)]
struct Fixed {
    matrix: Array2<f64>,
    amplitude: f64,
}

impl Covariance for Fixed {
    fn logs(&self) -> Vec<f64> {
        vec![self.amplitude.ln()]
    }

    fn with_logs(&self, logs: &[f64]) -> Learnt<Self> {
        Ok(Self { amplitude: logs[0].exp(), ..self.clone() })
    }

    fn gram(&self, _: ArrayView2<'_, f64>) -> Learnt<Array2<f64>> {
        Ok(&self.matrix * self.amplitude)
    }

    fn gradient(&self, _: ArrayView2<'_, f64>, seeds: ArrayView2<'_, f64>) -> Learnt<Vec<f64>> {
        Ok(vec![self.amplitude * (&self.matrix * &seeds).sum()])
    }
}
