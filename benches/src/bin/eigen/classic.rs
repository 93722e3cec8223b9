//! Two classic kernels on the line (NeuralEF, section 4.1): learnt functions beside the exact ones, before and after the finish.

use crate::problem::{POLYNOMIAL, Problem, RBF};
use crate::{Options, Outcome};
use mercer_kernel::Real;
use mercer_linalg::Scalar;
use mercer_net::Network;
use mercer_net::arch::{Activation, Mlp};
use mercer_net::train::{Decay, Schedule};
use mercer_run::{Context, Listener};
use mercer_spectral::learnt::{
    Batches, Learn, LearningMethod, LearningSettings, Learnt, Matrices, Nesting, side_by_side,
};
use mercer_spectral::{Comparison, Eigenfunctions};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Functions that are learnt.
const FUNCTIONS: usize = 10;

/// `k` networks 1-32-32-1, or one with `k` outputs.
pub(crate) fn networks(shared: bool, seed: u64) -> Result<Network, Box<dyn std::error::Error>> {
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

/// Takes `--samples`, `--steps`, `--batch` and `--only TEXT`.
pub(crate) fn tables(options: &Options) -> Outcome {
    let (samples, steps) = (options.number("--samples", 1024)?, options.number("--steps", 2000)?);
    let batch = options.number("--batch", 256)?;
    for problem in [POLYNOMIAL, RBF] {
        println!("\n{}: {samples} samples, batch {batch}, {steps} steps, seed {}", problem.name, options.seed);
        println!("| method | seconds (undisturbed) | functions | values: relative error |");
        println!("|---|---:|---|---|");
        for row in rows(steps).iter().filter(|row| options.value("--only").is_none_or(|text| row.name.contains(text))) {
            // The Cholesky factors of SpIN amplify rounding by the condition of Σ: it needs double precision.
            if row.settings.method == LearningMethod::Spin {
                one::<f64>(&problem, row, samples, batch, options)?;
            } else {
                one::<f32>(&problem, row, samples, batch, options)?;
            }
        }
    }
    Ok(())
}

fn one<T: Real>(problem: &Problem, row: &Row, samples: usize, batch: usize, options: &Options) -> Outcome {
    let instance = problem.on(samples, options.seed)?;
    let truth = instance.truth(FUNCTIONS)?;
    let network = networks(row.shared, options.seed)?;
    let start = Instant::now();
    let mut kernel = Matrices::new(instance.gram.mapv(T::of), 1)?;
    let mut batches = Batches::new(&instance.data, &mut kernel, batch, options.seed, &Context::new())?;
    let pace = Pace::default();
    let learnt: Learnt<T> =
        Learn::new(row.settings.clone()).context(&Context::listening(pace.clone())).run(network, &mut batches)?;
    let seconds = start.elapsed().as_secs_f64();
    let compare = |functions: &Eigenfunctions<T>| -> Result<Comparison, Box<dyn std::error::Error>> {
        let values = functions.eval_data(&instance.data, &Context::new())?.mapv(Scalar::wide);
        Ok(Comparison::new(functions.values().view(), values.view(), &truth)?)
    };
    for (when, functions) in [("before", &learnt.before[0]), ("after", &learnt.after[0])] {
        let found = compare(functions)?;
        let list = |numbers: &[f64], write: fn(f64) -> String| {
            numbers.iter().take(problem.compared).map(|&x| write(x)).collect::<Vec<_>>().join(" ")
        };
        let (cosines, errors) =
            (list(&found.cosines, |x| format!("{x:.4}")), list(&found.value_errors, |x| format!("{:+.1}%", 100.0 * x)));
        let time = if when == "before" { format!("{seconds:.2} ({:.2})", pace.undisturbed()) } else { String::new() };
        println!("| {} {when} | {time} | {cosines} | {errors} |", row.name);
    }
    Ok(())
}
