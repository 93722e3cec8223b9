//! Two classic kernels on the line (NeuralEF, section 4.1): learnt functions beside the exact ones, before and after the finish.

use super::problem::{POLYNOMIAL, Problem, RBF};
use crate::experiment::Experiment;
use crate::options::Options;
use crate::report::{Cell, Format, Report, Table};
use crate::{Fallible, row};
use mercer::kernel::Real;
use mercer::linalg::Scalar;
use mercer::net::Network;
use mercer::net::arch::{Activation, Mlp};
use mercer::net::train::{Decay, Schedule};
use mercer::run::{Context, Listener};
use mercer::spectral::learnt::{
    Batches, Learn, LearningMethod, LearningSettings, Learnt, Matrices, Nesting, side_by_side,
};
use mercer::spectral::{Comparison, Eigenfunctions};
use std::sync::{Arc, Mutex};
use std::time::Instant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "line",
    group: "Eigenfunctions",
    title: "Two kernels on the line",
    paper: super::NEURALEF,
    claim: "Networks learn the leading eigenfunctions of a polynomial and an RBF kernel, in their order (section 4.1).",
    published: "as figures only.",
    setting: "1024 uniform points, batches of 256, 2000 steps of Adam at 1e-3, ten networks 1-32-32-1 (half sine, half cosine), or \
        one with ten outputs (\"shared\"). The functions are compared with the exact eigenfunctions of the same points, before and \
        after a Rayleigh–Ritz step over the data (\"the finish\"). SpIN runs in double precision; \"keeps\" is the share of the old \
        averages of Σ and ∂Σ/∂θ that it keeps at every step.",
    cost: 150,
    needs: &[],
    options: &["samples", "steps", "batch", "only"],
    threads: 1,
    run,
};

/// Functions that are learnt.
const FUNCTIONS: usize = 10;

/// `k` networks 1-32-32-1, or one with `k` outputs.
pub(crate) fn networks(shared: bool, seed: u64) -> Fallible<Network> {
    let mlp = |outputs: usize, seed: u64| Mlp::new(1, &[32, 32], outputs).activation(Activation::SinCos).build(seed);
    if shared {
        return Ok(mlp(FUNCTIONS, seed)?);
    }
    let each = (0..FUNCTIONS as u64).map(|index| mlp(1, 1000 * seed + index)).collect::<Result<Vec<_>, _>>()?;
    Ok(side_by_side(&each)?)
}

/// When steps were reported.
#[derive(Clone, Default)]
struct Pace(Arc<Mutex<Vec<(usize, Instant)>>>);

impl Listener for Pace {
    fn progress(&self, done: usize, _: usize, _: &str) {
        self.0.lock().expect("no panic").push((done, Instant::now()));
    }
}

impl Pace {
    /// The time of all steps at the pace of the fastest tenth: what a machine takes that does nothing else.
    fn undisturbed(&self) -> f64 {
        let seen = self.0.lock().expect("no panic");
        let mut each: Vec<f64> = seen
            .windows(2)
            .map(|pair| (pair[1].1 - pair[0].1).as_secs_f64() / (pair[1].0 - pair[0].0).max(1) as f64)
            .collect();
        each.sort_by(f64::total_cmp);
        let fastest = &each[..each.len().div_ceil(10)];
        let steps = seen.last().map_or(0, |last| last.0) as f64;
        steps * fastest.iter().sum::<f64>() / fastest.len().max(1) as f64
    }
}

struct Row {
    name: &'static str,
    settings: LearningSettings,
    shared: bool,
}

fn rows(steps: usize) -> Vec<Row> {
    let constant = |method: LearningMethod| LearningSettings::new(method).steps(steps);
    let cosine = |method: LearningMethod, rate: f64| {
        let schedule = Schedule { decay: Decay::Cosine { floor: 0.0 }, ..Schedule::constant(rate) };
        constant(method).schedule(schedule)
    };
    vec![
        Row { name: "NeuralEF", settings: constant(LearningMethod::NeuralEf), shared: false },
        Row { name: "NeuralEF, cosine 3e-3", settings: cosine(LearningMethod::NeuralEf, 3e-3), shared: false },
        Row { name: "shared", settings: constant(LearningMethod::NeuralEf), shared: true },
        Row { name: "shared, cosine 3e-3", settings: cosine(LearningMethod::NeuralEf, 3e-3), shared: true },
        Row {
            name: "nested sequential",
            settings: constant(LearningMethod::Nested(Nesting::Sequential)),
            shared: false,
        },
        Row { name: "nested joint, shared", settings: constant(LearningMethod::Nested(Nesting::Joint)), shared: true },
        // What the runs of the NeuralEF paper keep of the averages, and a slower average.
        Row { name: "SpIN, keeps 0.01", settings: constant(LearningMethod::Spin).keep(0.01), shared: false },
        Row { name: "SpIN, keeps 0.9", settings: constant(LearningMethod::Spin).keep(0.9), shared: false },
        Row { name: "SpIN, keeps 0.99", settings: constant(LearningMethod::Spin).keep(0.99), shared: false },
        Row { name: "SpIN, shared, keeps 0.01", settings: constant(LearningMethod::Spin).keep(0.01), shared: true },
        Row { name: "SpIN, shared, keeps 0.99", settings: constant(LearningMethod::Spin).keep(0.99), shared: true },
    ]
}

fn run(options: &Options) -> Fallible<Report> {
    let (samples, steps) = (options.number("samples", 1024, 64)?, options.number("steps", 2000, 4)?);
    let batch = options.number("batch", 256, 32)?;
    let mut report = Report::default();
    for problem in [POLYNOMIAL, RBF] {
        let cosines = "|cos| with the exact functions";
        let mut table = Table::new(problem.name)
            .column("method", Format::Plain)
            .column(format!("{cosines}, before the finish"), Format::Cosine)
            .column("after it", Format::Cosine)
            .column("largest error of the eigenvalues after it", Format::Percent(2))
            .column("seconds", Format::Fixed(2))
            .column("at the pace of the fastest tenth of the steps", Format::Fixed(2));
        for row in rows(steps).iter().filter(|row| options.wants(row.name)) {
            // The Cholesky factors of SpIN amplify rounding by the condition of Σ: it needs double precision.
            table.push(match row.settings.method {
                LearningMethod::Spin => one::<f64>(&problem, row, samples, batch, options.seed)?,
                _ => one::<f32>(&problem, row, samples, batch, options.seed)?,
            });
        }
        report.tables.push(table);
    }
    Ok(report)
}

fn one<T: Real>(problem: &Problem, row: &Row, samples: usize, batch: usize, seed: u64) -> Fallible<Vec<Cell>> {
    let instance = problem.on(samples, seed)?;
    let truth = instance.truth(FUNCTIONS)?;
    let network = networks(row.shared, seed)?;
    let start = Instant::now();
    let mut kernel = Matrices::new(instance.gram.mapv(T::narrow), 1)?;
    let mut batches = Batches::new(&instance.data, &mut kernel, batch, seed, &Context::new())?;
    let pace = Pace::default();
    let learnt: Learnt<T> =
        Learn::new(row.settings.clone()).context(&Context::listening(pace.clone())).run(network, &mut batches)?;
    let seconds = start.elapsed().as_secs_f64();
    let compare = |functions: &Eigenfunctions<T>| -> Fallible<Comparison> {
        let values = functions.eval_data(&instance.data, &Context::new())?.mapv(Scalar::wide);
        Ok(Comparison::new(functions.values().view(), values.view(), &truth)?)
    };
    let (before, after) = (compare(&learnt.before[0])?, compare(&learnt.after[0])?);
    let first = |numbers: &[f64]| numbers.iter().take(problem.compared).copied().collect::<Vec<f64>>();
    let worst = first(&after.value_errors).into_iter().fold(0.0, |worst: f64, error| worst.max(error.abs()));
    Ok(row![row.name, first(&before.cosines), first(&after.cosines), worst, seconds, pace.undisturbed()])
}
