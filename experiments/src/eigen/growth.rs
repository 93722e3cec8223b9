//! Time against the number of samples (NeuralEF, figure 2, right), for the polynomial kernel: learning with the kernel of every
//! batch computed when it is needed, beside the exact decomposition and Nyström's method.

use super::line::networks;
use crate::experiment::Experiment;
use crate::options::Options;
use crate::report::{Drawing, Format, Report, Table};
use crate::{Fallible, row};
use mercer::data::{Dataset, synthetic};
use mercer::kernel::Kernel;
use mercer::kernel::classic::{Classic, Formula};
use mercer::report::{Axis, Figure, Panel, Series};
use mercer::run::Context;
use mercer::spectral::learnt::{Batches, Learn, LearningMethod, LearningSettings, Learnt, PerBatch};
use mercer::spectral::{Landmarks, Nystrom, Solver, exact};
use std::sync::Arc;
use std::time::Instant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "growth",
    group: "Eigenfunctions",
    title: "Time against the number of samples",
    paper: super::NEURALEF,
    claim: "The time of learning does not depend on the number of samples (figure 2, right).",
    published: "as a figure only.",
    setting: "Ten functions of the polynomial kernel on the line, 2000 steps of 256 samples, the kernel computed for each batch, \
        beside the exact decomposition and Nyström's method. One thread.",
    cost: 15,
    needs: &[],
    options: &["sizes", "steps"],
    threads: 1,
    run,
};

/// Beyond this the matrix is not made.
const LARGEST_MATRIX: usize = 8192;

fn run(options: &Options) -> Fallible<Report> {
    let sizes = options.list("sizes", &[64, 256, 1024, 4096, 16_384, 65_536], &[64, 256])?;
    let steps = options.number("steps", 2000, 20)?;
    let expression: Formula = "polynomial(scale=1, bias=1.5, degree=4)".parse()?;
    let mut table = Table::new("Seconds:")
        .column("samples", Format::Plain)
        .column("NeuralEF", Format::Fixed(2))
        .column("exact, all eigenpairs", Format::Fixed(3))
        .column("exact, Lanczos", Format::Fixed(3))
        .column("Nyström, 500 landmarks", Format::Fixed(3));
    let mut lines: [Vec<(f64, f64)>; 4] = Default::default();
    for size in sizes {
        let times = times(&expression, size, steps, options.seed)?;
        for (line, time) in lines.iter_mut().zip(times) {
            line.extend(time.map(|time| (size as f64, time)));
        }
        table.push(row![size, times[0], times[1], times[2], times[3]]);
    }
    let names = ["NeuralEF", "exact, all eigenpairs", "exact, Lanczos", "Nyström"];
    let series = names.into_iter().zip(lines).map(|(name, line)| Series::marked_line(name, line));
    let panel = Panel::lines("Polynomial kernel", Axis::log("samples"), Axis::log("seconds"), series);
    let figure = Figure::new("Time against the number of samples").panel(panel);
    let drawing = Drawing { file: "growth.svg", caption: "Time against the number of samples", figure };
    Ok(Report { tables: vec![table], figures: vec![drawing], ..Report::default() })
}

/// Seconds of learning, of both exact methods where their matrix is made, and of Nyström's.
fn times(expression: &Formula, size: usize, steps: usize, seed: u64) -> Fallible<[Option<f64>; 4]> {
    let points = synthetic::uniform(size, 1, -1.0, 1.0, seed)?;
    let data = [Dataset::from_array("points", points.view().into_dyn())?];
    let single: Arc<dyn Kernel<f32>> = Arc::new(Classic::new(expression, 1)?);
    let double: Arc<dyn Kernel<f64>> = Arc::new(Classic::new(expression, 1)?);
    let solved = |solver: Solver| {
        let start = Instant::now();
        let found = exact(Arc::clone(&double), &data, 10, solver, &Context::new());
        found.map(|_| start.elapsed().as_secs_f64())
    };
    let start = Instant::now();
    let mut coupling = PerBatch::new(single, &data)?;
    let mut batches = Batches::new(&data, &mut coupling, 256, seed, &Context::new())?;
    let settings = LearningSettings::new(LearningMethod::NeuralEf).steps(steps);
    let _: Learnt<f32> = Learn::new(settings).run(networks(false, seed)?, &mut batches)?;
    let learnt = start.elapsed().as_secs_f64();
    let full = if size <= 2048 { Some(solved(Solver::Full)?) } else { None };
    let lanczos = if size <= LARGEST_MATRIX { Some(solved(Solver::Lanczos)?) } else { None };
    let start = Instant::now();
    Nystrom::new(Landmarks::Uniform(size.min(500))).fit(double, &data, 10, &Context::new())?;
    Ok([Some(learnt), full, lanczos, Some(start.elapsed().as_secs_f64())])
}
