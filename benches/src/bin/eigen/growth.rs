//! Time against the number of samples (NeuralEF, figure 2, right), for the polynomial kernel: learning with the kernel of every
//! batch computed when it is needed, beside the exact decomposition and Nyström's method.

use crate::classic::networks;
use crate::{Options, Outcome};
use mercer_data::{Dataset, Existing, synthetic};
use mercer_kernel::Kernel;
use mercer_kernel::classic::{Classic, Expression};
use mercer_report::{Axis, Figure, Panel, Series};
use mercer_run::Context;
use mercer_spectral::learnt::{Batches, Learn, LearningMethod, LearningSettings, Learnt, PerBatch};
use mercer_spectral::{Landmarks, Nystrom, Solver, exact};
use std::sync::Arc;
use std::time::Instant;

/// Beyond this the matrix is not made.
const LARGEST_MATRIX: usize = 8192;

/// Takes `--sizes N,N` and `--steps`.
pub(crate) fn table(options: &Options) -> Outcome {
    let sizes: Vec<usize> = match options.value("--sizes") {
        Some(list) => list.split(',').map(str::parse).collect::<Result<_, _>>()?,
        None => vec![64, 256, 1024, 4096, 16_384, 65_536],
    };
    let steps = options.number("--steps", 2000)?;
    let expression: Expression = "polynomial(scale=1, bias=1.5, degree=4)".parse()?;
    println!("polynomial kernel, ten functions, {steps} steps of 256, the kernel per batch; seconds");
    println!("| samples | NeuralEF | exact, all eigenpairs | exact, Lanczos | Nyström, 500 landmarks |");
    println!("|---:|---:|---:|---:|---:|");
    let mut lines: [Vec<(f64, f64)>; 4] = Default::default();
    for size in sizes {
        let points = synthetic::uniform(size, 1, -1.0, 1.0, options.seed)?;
        let data = [Dataset::from_array("points", points.view().into_dyn())?];
        let single: Arc<dyn Kernel<f32>> = Arc::new(Classic::new(&expression, 1)?);
        let double: Arc<dyn Kernel<f64>> = Arc::new(Classic::new(&expression, 1)?);
        let solved = |solver: Solver| {
            let start = Instant::now();
            let found = exact(Arc::clone(&double), &data, 10, solver, &Context::new());
            found.map(|_| start.elapsed().as_secs_f64())
        };
        let start = Instant::now();
        let mut coupling = PerBatch::new(single, &data)?;
        let mut batches = Batches::new(&data, &mut coupling, 256, options.seed, &Context::new())?;
        let _: Learnt<f32> = Learn::new(LearningSettings::new(LearningMethod::NeuralEf).steps(steps))
            .run(networks(false, options.seed)?, &mut batches)?;
        let learnt = start.elapsed().as_secs_f64();
        let full = if size <= 2048 { Some(solved(Solver::Full)?) } else { None };
        let lanczos = if size <= LARGEST_MATRIX { Some(solved(Solver::Lanczos)?) } else { None };
        let start = Instant::now();
        let method = Nystrom::new(Landmarks::Uniform(size.min(500)));
        method.fit(double, &data, 10, &Context::new())?;
        let nystrom = start.elapsed().as_secs_f64();
        let show = |time: Option<f64>| time.map_or_else(|| "–".to_owned(), |time| format!("{time:.3}"));
        println!("| {size} | {learnt:.2} | {} | {} | {nystrom:.3} |", show(full), show(lanczos));
        for (line, time) in lines.iter_mut().zip([Some(learnt), full, lanczos, Some(nystrom)]) {
            line.extend(time.map(|time| (size as f64, time)));
        }
    }
    let names = ["NeuralEF", "exact, all eigenpairs", "exact, Lanczos", "Nyström"];
    let series = names.into_iter().zip(lines).map(|(name, line)| Series::marked_line(name, line));
    let panel = Panel::lines("Polynomial kernel", Axis::log("samples"), Axis::log("seconds"), series);
    let path = options.output.join("growth.svg");
    Figure::new("Time against the number of samples").panel(panel).write(&path, Existing::Replace)?;
    println!("\n{}", path.display());
    Ok(())
}
