//! Kernel ridge regression by conjugate gradients on 50,000 samples of 8 numbers, whose RBF matrix would take 20 GB.

use crate::experiment::Experiment;
use crate::matrices::dataset;
use crate::options::Options;
use crate::report::{Cell, Format, Report, Table};
use crate::{Fallible, row};
use mercer::data::random::stream;
use mercer::kernel::classic::Classic;
use mercer::kernel::gram::GramOperator;
use mercer::learn::regression::IterativeRidge;
use mercer::run::{Context, peak_memory};
use ndarray::Array2;
use rand::RngExt;
use std::time::Instant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "conjugate-gradients",
    group: "Machines",
    title: "Conjugate gradients on 50,000 samples",
    paper: "",
    claim: "A preconditioner from randomly pivoted Cholesky saves most of the products with a kernel matrix that is never formed.",
    published: "",
    setting: "Kernel ridge regression with an RBF kernel of 8 numbers in f32, ridge 0.1, to a relative residual of 1e-4, two threads.",
    cost: 220,
    needs: &[],
    options: &["samples", "rank", "alpha", "tolerance", "plain"],
    threads: 0,
    run,
};

fn run(options: &Options) -> Fallible<Report> {
    let (samples, rank) = (options.number("samples", 50_000, 500)?, options.number("rank", 500, 50)?);
    let (alpha, tolerance) = (options.number("alpha", 1e-1, 1e-1)?, options.number("tolerance", 1e-4, 1e-4)?);
    // The most products without a preconditioner: there the residual it reached is told.
    let plain = options.number("plain", 400, 400)?;
    let mut random = stream(options.seed, "iterative/rows");
    let rows = Array2::from_shape_simple_fn((samples, 8), || random.random::<f64>() * 2.0 - 1.0);
    let targets = Array2::from_shape_fn((samples, 1), |(i, _)| {
        (3.0 * rows[(i, 0)]).sin() + rows[(i, 1)] * rows[(i, 2)] + 0.1 * (random.random::<f64>() - 0.5)
    });
    let kernel = Classic::<f32>::new(&"rbf(lengthscale=2)".parse()?, 8)?;
    let data = [dataset(&rows)?];
    let gram = GramOperator::new(&kernel, &data, &Context::new())?;
    let mut table = Table::new("")
        .column("preconditioner", Format::Plain)
        .column("products", Format::Plain)
        .column("residual", Format::Scientific(1))
        .column("seconds", Format::Fixed(0))
        .column("peak GiB", Format::Fixed(2));
    let mut counts = Vec::new();
    for (name, rank, most) in
        [(format!("randomly pivoted Cholesky, rank {rank}"), rank, 1000), ("none".to_owned(), 0, plain)]
    {
        let start = Instant::now();
        let method = IterativeRidge::new(alpha, tolerance)?.centred().precondition(rank, 0).max_iterations(most);
        let (products, residual) = match method.fit_columns(&gram, targets.view(), &Context::new()) {
            Ok(found) => (found.iterations, Cell::from(found.residual)),
            Err(error) => (most, Cell::from(error.to_string())),
        };
        let (seconds, peak) = (start.elapsed().as_secs_f64(), peak_memory() as f64 / 1_073_741_824.0);
        table.push(row![name, products, residual, seconds, peak]);
        counts.push((products, peak));
    }
    let holds = counts[0].0 * 2 < counts[1].0 && counts.iter().all(|(_, peak)| *peak < 4.0);
    Ok(Report { tables: vec![table], holds: Some(holds), ..Report::default() })
}
