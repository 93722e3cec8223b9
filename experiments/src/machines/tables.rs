//! Gaussian processes on tables of the UCI repository, split 0: RBF kernel, and NNGP and NTK of ReLU networks.
//!
//! Inputs and target are standardised by the training rows. RBF: amplitude, lengthscale and noise by marginal likelihood;
//! NNGP, NTK: of one to three hidden layers the likeliest, amplitude and noise by marginal likelihood, σ_w² = 2, σ_b² = 0.1. They
//! are tuned on at most 1000 rows, of which none has the inputs of another; the process is exact on at most 4000, the first of the split where it has more.

use crate::experiment::{Experiment, Needs};
use crate::matrices::gram;
use crate::options::Options;
use crate::report::{Format, Report, Table};
use crate::{Fallible, row};
use flate2::read::GzDecoder;
use mercer::kernel::Kernel;
use mercer::kernel::classic::{Classic, Formula};
use mercer::kernel::infinite::{Limit, LimitActivation, LimitKind, LimitNet, Scales};
use mercer::learn::metrics::{gaussian_log_likelihood, root_mean_square_error};
use mercer::learn::process::{Covariance, ProcessRegression, Tune};
use mercer::learn::regression::Ridge;
use mercer::learn::{Fit, Predict, Result as Learnt, SampleRows};
use mercer::run::Context;
use ndarray::{Array1, Array2, ArrayView2, Axis};
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tables",
    group: "Machines",
    title: "Gaussian processes on tables",
    paper: "",
    claim: "The kernels of infinitely wide networks are Gaussian processes for tables as good as a tuned RBF kernel.",
    published: "",
    setting: "Eight tables of the UCI repository, split 0, exact on at most 4000 rows, tuned by marginal likelihood on at most 1000, of \
        which none repeats the inputs of another. RBF: amplitude, lengthscale and noise; NNGP and NTK: of ReLU networks with one to three \
        hidden layers the likeliest, amplitude and noise.",
    cost: 600,
    needs: &[Needs::Folder(
        "a folder for each set: data.txt.gz, index_features.txt, index_target.txt, index_train_0.txt, index_test_0.txt",
    )],
    options: &["only"],
    threads: 0,
    run,
};

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

fn run(options: &Options) -> Fallible<Report> {
    let mut table = Table::new("Test log-likelihood (higher is better) and RMSE, in the target's units:")
        .column("set", Format::Plain)
        .column("training", Format::Plain)
        .column("test", Format::Plain);
    for kernel in ["RBF", "NNGP", "NTK"] {
        table = table.column(format!("{kernel}, log-likelihood"), Format::Fixed(3)).column("RMSE", Format::Plain);
    }
    table = table.column("linear ridge, RMSE", Format::Plain);
    for set in SETS.into_iter().filter(|set| options.wants(set)) {
        let split = Split::read(&options.data()?.join(set))?;
        let (rbf, nngp, ntk) = (split.rbf()?, split.limit(LimitKind::Nngp)?, split.limit(LimitKind::Ntk)?);
        // Four digits: targets are of very different sizes.
        let short = |error: f64| format!("{error:.3e}").parse().unwrap_or(error);
        table.push(row![
            set,
            split.x.nrows(),
            split.z.nrows(),
            rbf.0,
            short(rbf.1),
            nngp.0,
            short(nngp.1),
            ntk.0,
            short(ntk.1),
            short(split.linear()?),
        ]);
    }
    Ok(Report { tables: vec![table], ..Report::default() })
}

struct Split {
    x: Array2<f64>,
    y: Array2<f64>,
    z: Array2<f64>,
    truth: Array1<f64>,
    mean: f64,
    deviation: f64,
}

impl Split {
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
        let start: Formula = format!("1*rbf(lengthscale={})", (self.x.ncols() as f64).sqrt()).parse()?;
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
        let settings = ProcessRegression::new(noise)?;
        let machine = settings.fit(&SampleRows::Gram(training.view()), &self.y)?;
        let posterior = machine.posterior(&SampleRows::Gram(cross.view()), prior.view())?;
        let means = posterior.means.column(0).mapv(|m| m * self.deviation + self.mean);
        let variances = posterior.variances.mapv(|v| (v + noise) * self.deviation * self.deviation);
        let likelihood = gaussian_log_likelihood(means.view(), variances.view(), self.truth.view())?;
        Ok((likelihood, root_mean_square_error(means.view(), self.truth.view())?))
    }

    /// What a line does, for comparison.
    fn linear(&self) -> Fallible<f64> {
        let machine = Ridge::new(1e-3)?.fit(&SampleRows::Features(self.x.view()), &self.y)?;
        let found =
            machine.predict(&SampleRows::Features(self.z.view()))?.column(0).mapv(|m| m * self.deviation + self.mean);
        Ok(root_mean_square_error(found.view(), self.truth.view())?)
    }
}

fn network(inputs: usize, layers: usize, of: LimitKind) -> Fallible<Limit<f64>> {
    let scales = Scales::ntk(2f64.sqrt(), 0.1f64.sqrt());
    let mut net = LimitNet::new();
    let mut x = net.input(inputs);
    for _ in 0..layers {
        x = net.dense("layer", x, scales)?;
        x = net.activation("layer", x, LimitActivation::relu())?;
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
