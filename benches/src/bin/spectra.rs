//! Times of decompositions on one thread, beside limits: `cargo run --release -p mercer-bench --bin spectra`.
//!
//! The largest ten eigenpairs of a 4000 × 4000 RBF matrix in double precision (ARPACK through SciPy takes 1.6 s on one core of
//! the machine the limits come from), and Nyström with 500 landmarks of 4000 samples in 64 dimensions (scikit-learn: 0.13 s).

use mercer_data::{Dataset, random};
use mercer_kernel::Kernel;
use mercer_kernel::classic::{Classic, Expression};
use mercer_linalg::{Randomised, top_eigen};
use mercer_run::Context;
use mercer_spectral::{Landmarks, Measure, Nystrom, gram_matrix};
use ndarray::Array2;
use rand::RngExt;
use std::sync::Arc;
use std::time::Instant;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The best of three runs, in seconds.
fn best(mut work: impl FnMut() -> Outcome) -> Result<f64, Box<dyn std::error::Error>> {
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        let start = Instant::now();
        work()?;
        least = least.min(start.elapsed().as_secs_f64());
    }
    Ok(least)
}

fn line(name: &str, seconds: f64, limit: Option<f64>) {
    let limit = limit.map_or(String::new(), |limit| format!("  limit {limit} s"));
    println!("{name:<58} {seconds:.3} s{limit}");
}

fn main() -> Outcome {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    let mut stream = random::stream(0, "spectra");
    let points = Array2::from_shape_simple_fn((4000, 64), || 2.0 * stream.random::<f64>() - 1.0);
    let data = vec![Dataset::from_array("points", points.into_dyn().view())?];
    let expression: Expression = "rbf(lengthscale=4)".parse()?;
    let kernel: Arc<dyn Kernel<f64>> = Arc::new(Classic::new(&expression, 64)?);
    let progress = Context::new();

    let gram = gram_matrix(&*kernel, &data, &progress)?;
    let top = top_eigen(gram.view(), 10)?;
    let seconds = best(|| top_eigen(gram.view(), 10).map(drop).map_err(Into::into))?;
    line(&format!("top 10 of 4000 × 4000, Lanczos ({} products)", top.n_applications), seconds, Some(1.2));
    let seconds = best(|| Randomised::new(10).run(&gram).map(drop).map_err(Into::into))?;
    line("top 10 of 4000 × 4000, randomised", seconds, None);

    for (measure, k, name, limit) in [
        (Measure::Landmarks, 10, "Nyström, m = 500, N = 4000, d = 64, k = 10, landmarks", Some(0.1)),
        (Measure::Landmarks, 500, "Nyström, m = 500, N = 4000, d = 64, k = 500, landmarks", None),
        (Measure::Data, 10, "Nyström, m = 500, N = 4000, d = 64, k = 10, data", None),
    ] {
        let method = Nystrom::new(Landmarks::Uniform(500)).measure(measure);
        let seconds = best(|| {
            let fit = method.fit(Arc::clone(&kernel), &data, k, &progress)?;
            fit.functions.eval_data(&data, &progress)?;
            Ok(())
        })?;
        line(name, seconds, limit);
    }
    Ok(())
}
