//! The pseudo-NTK against the empirical NTK of networks at initialisation, as they grow.
//!
//! Mohamadi and Sutherland 2022, arXiv 2206.12543: `Θ ≈ Θ_p ⊗ I_C` (theorem 1 and figure 3, Frobenius norm; theorem 5 and figure 4,
//! λmax), and the linearised networks of both agree (equations 5 and 6, theorem 6, figure 7). Theirs are trained on CIFAR-10; here
//! two hidden ReLU layers at initialisation, digits of 8 × 8, ten outputs.

use crate::experiment::Experiment;
use crate::matrices::{gram, median, outputs};
use crate::options::Options;
use crate::report::{Format, Report, Table};
use crate::{Fallible, row};
use mercer::data::digits;
use mercer::kernel::{Ntk, NtkKind};
use mercer::learn::metrics::{frobenius_difference, spectrum_summary};
use mercer::learn::regression::Ridge;
use mercer::learn::{Fit, Predict, SampleRows};
use mercer::net::arch::{Initialisation, Mlp};
use ndarray::{Array2, s};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "widths",
    group: "Machines",
    title: "The pseudo-NTK at initialisation",
    paper: "Mohamadi and Sutherland 2022, arXiv 2206.12543",
    claim: "The pseudo-NTK approaches the full tangent kernel as networks grow: in Frobenius norm (theorem 1, figure 3), in the largest \
        eigenvalue (theorem 5, figure 4) and in the predictions of the linearised networks (theorem 6, figure 7).",
    published: "as figures only, for networks trained on CIFAR-10.",
    setting: "Two hidden ReLU layers at initialisation, digits of 8 × 8, ten outputs, 60 digits to learn from and 40 to predict.",
    cost: 20,
    needs: &[],
    options: &["seeds", "widths"],
    threads: 0,
    run,
};

const CLASSES: usize = 10;
/// Keeps both systems definite; the same for both.
const RIDGE: f64 = 1e-6;

fn run(options: &Options) -> Fallible<Report> {
    let seeds = options.number("seeds", 3, 1)?;
    let widths = options.list("widths", &[16, 64, 256, 1024], &[4, 64])?;
    let mut table = Table::new(format!(
        "Relative differences to the full kernel, and between predictions; median of {seeds} seeds:"
    ))
    .column("width", Format::Plain)
    .column("Frobenius", Format::Fixed(3))
    .column("λmax", Format::Fixed(3))
    .column("predictions", Format::Fixed(3));
    let mut lines: Vec<[f64; 3]> = Vec::new();
    for width in widths {
        let found: Vec<[f64; 3]> =
            (0..seeds as u64).map(|seed| one(width, options.seed * 1000 + seed)).collect::<Fallible<_>>()?;
        let line = [0, 1, 2].map(|at| median(found.iter().map(|values| values[at]).collect()));
        table.push(row![width, line[0], line[1], line[2]]);
        lines.push(line);
    }
    let falls = |at: usize| lines.iter().zip(lines.iter().skip(1)).all(|(a, b)| b[at] < a[at]);
    let ends = |at: usize| lines.first().zip(lines.last()).is_some_and(|(a, b)| b[at] < a[at]);
    // λmax is one number of each matrix and may cross zero on its way.
    Ok(Report { tables: vec![table], holds: Some(falls(0) && ends(1) && falls(2)), ..Report::default() })
}

fn one(width: usize, seed: u64) -> Fallible<[f64; 3]> {
    let (train, test) = digits::split()?;
    let rows = |set: &digits::Digits, n: usize| -> Fallible<Array2<f64>> {
        let pixels = set.pixels()?.mapv(f64::from);
        let size = pixels.len() / pixels.shape()[0];
        Ok(pixels.slice(s![..n, .., ..]).to_owned().into_shape_with_order((n, size))?)
    };
    let (x, z) = (rows(&train, 60)?, rows(&test, 40)?);
    let network = Mlp::new(x.ncols(), &[width; 2], CLASSES).initialisation(Initialisation::He).build(seed)?;
    let shapes = [vec![x.ncols()]];
    let (full, pseudo) =
        (Ntk::<f64>::new(&network, &shapes, NtkKind::Full)?, Ntk::<f64>::new(&network, &shapes, NtkKind::Pseudo)?);
    let (theta, cross) = (gram(&full, &x, None)?, gram(&full, &z, Some(&x))?);
    let (small, small_cross) = (gram(&pseudo, &x, None)?, gram(&pseudo, &z, Some(&x))?);
    let spread = Array2::from_shape_fn(theta.dim(), |(i, j)| {
        if i % CLASSES == j % CLASSES { small[(i / CLASSES, j / CLASSES)] } else { 0.0 }
    });
    let frobenius = frobenius_difference(spread.view(), theta.view())?;
    let (top, other) = (spectrum_summary(theta.view())?.largest, spectrum_summary(small.view())?.largest);
    // f_lin(z) = f(z) + Θ(z, X)·Θ(X, X)⁻¹·(y − f(X)), with the targets one-hot.
    let labels = train.classes.indices()[..60].to_vec();
    let targets = Array2::from_shape_fn((60, CLASSES), |(i, c)| f64::from(u8::from(labels[i] == c)));
    let (start, start_z) = (outputs(&network, &x)?, outputs(&network, &z)?);
    let residual = &targets - &start;
    let mean = |k: &Array2<f64>| k.diag().sum() / k.nrows() as f64;
    let by_pseudo = Ridge::new(RIDGE * mean(&small))?.fit(&SampleRows::Gram(small.view()), &residual)?;
    let by_pseudo = by_pseudo.predict(&SampleRows::Gram(small_cross.view()))? + &start_z;
    let flat = residual.into_shape_with_order((60 * CLASSES, 1))?;
    let by_full = Ridge::new(RIDGE * mean(&theta))?.fit(&SampleRows::Gram(theta.view()), &flat)?;
    let by_full = by_full.predict(&SampleRows::Gram(cross.view()))?.into_shape_with_order((40, CLASSES))? + &start_z;
    Ok([frobenius, (other / top - 1.0).abs(), frobenius_difference(by_pseudo.view(), by_full.view())?])
}
