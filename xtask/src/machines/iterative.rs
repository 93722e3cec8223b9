//! Kernel ridge regression by conjugate gradients on 50,000 samples of 8 numbers, whose RBF matrix would take 20 GB.

use super::dataset;
use crate::{Outcome, option};
use mercer_data::random::stream;
use mercer_kernel::classic::Classic;
use mercer_kernel::gram::GramOperator;
use mercer_learn::regression::IterativeRidge;
use mercer_run::Context;
use ndarray::Array2;
use rand::RngExt;
use std::time::Instant;

/// Takes `--samples N`, `--rank N`, `--alpha A`, `--tolerance T` and `--plain N`, the most products without a
/// preconditioner: there the residual it reached is told.
pub(super) fn run(arguments: &[String]) -> Outcome {
    let number = |flag: &str, default: f64| option(arguments, flag).map_or(Ok(default), str::parse);
    let (samples, rank) = (number("--samples", 50_000.0)? as usize, number("--rank", 500.0)? as usize);
    let (alpha, tolerance) = (number("--alpha", 1e-1)?, number("--tolerance", 1e-4)?);
    let mut random = stream(0, "iterative/rows");
    let rows = Array2::from_shape_simple_fn((samples, 8), || random.random::<f64>() * 2.0 - 1.0);
    let targets = Array2::from_shape_fn((samples, 1), |(i, _)| {
        (3.0 * rows[(i, 0)]).sin() + rows[(i, 1)] * rows[(i, 2)] + 0.1 * (random.random::<f64>() - 0.5)
    });
    let kernel = Classic::<f32>::new(&"rbf(lengthscale=2)".parse()?, 8)?;
    let data = [dataset(&rows)?];
    let gram = GramOperator::new(&kernel, &data, &Context::new())?;
    println!("{samples} samples, 8 numbers, RBF of length 2, f32, alpha {alpha}, to a residual of {tolerance:e}");
    println!("| preconditioner | products | residual | seconds | peak GiB |\n|---|---:|---:|---:|---:|");
    let plain = number("--plain", 400.0)? as usize;
    let mut counts = Vec::new();
    for (name, rank, most) in [("randomly pivoted Cholesky", rank, 1000), ("none", 0, plain)] {
        let start = Instant::now();
        let method = IterativeRidge::new(alpha, tolerance)?.centred().precondition(rank, 0).max_iterations(most);
        let (products, residual) = match method.fit_columns(&gram, targets.view(), &Context::new()) {
            Ok(found) => (found.iterations, format!("{:.1e}", found.residual)),
            Err(error) => (most, error.to_string()),
        };
        let (seconds, peak) = (start.elapsed().as_secs_f64(), mercer_run::peak_memory() as f64 / 1_073_741_824.0);
        println!("| {name}, rank {rank} | {products} | {residual} | {seconds:.0} | {peak:.2} |");
        counts.push((products, peak));
    }
    let good = counts[0].0 * 2 < counts[1].0 && counts.iter().all(|(_, peak)| *peak < 4.0);
    let least = if counts[1].0 == plain { "at least " } else { "" };
    println!("\n{least}{} products saved", counts[1].0.saturating_sub(counts[0].0));
    Ok(good)
}
