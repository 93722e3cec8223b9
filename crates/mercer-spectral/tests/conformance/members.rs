//! The methods, and how close each has to come. A new method is one more line of the table.

use crate::learnt::{learnt, networks};
use crate::problems::{PARTNERS, Problem};
use mercer_data::Dataset;
use mercer_kernel::FeatureMap;
use mercer_linalg::LinearOperator;
use mercer_run::Context;
use mercer_spectral::learnt::{Learn, LearningMethod, LearningSettings, Nesting, Pairs};
use mercer_spectral::{
    Density, Eigenfunctions, Fourier, FourierSpec, Landmarks, Mapped, Measure, Nystrom, Result, Solver, Spectrum,
    exact, extend, of_features,
};
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, Axis};
use std::sync::Arc;

/// What a method is allowed; everything is relative.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    /// Entries of `(1/R) ΨᵀΨ - I`.
    pub(crate) orthonormal: f64,
    /// The residual of the integral equation, relative to the largest eigenvalue.
    pub(crate) residual: f64,
    /// Eigenvalues, relative to the largest.
    pub(crate) values: f64,
    /// The largest angle between the spans of all functions and of the true ones, in degrees, if eigenvalues are not equal.
    pub(crate) degrees: f64,
}

/// What a decomposition to convergence gives: rounding, amplified by the division by small eigenvalues (1e-4 of the largest here).
const EXACT: Tolerance = Tolerance { orthonormal: 1e-6, residual: 1e-8, values: 1e-9, degrees: 1e-4 };

/// Five products with a block of sixteen vectors, where eigenvalues beyond the block are a tenth of the last wanted or less: the angle of
/// the span shrinks by that ratio with each. The extension divides what is left by the eigenvalue.
const ITERATED: Tolerance = Tolerance { orthonormal: 1e-2, residual: 5e-3, values: 1e-4, degrees: 5.0 };

/// A thousand random features: their kernel is off by `1/√D` of its diagonal, which is what an eigenvalue can be off by; functions
/// are mixed where eigenvalues are closer than that. Orthonormality is exact, because it does not depend on the kernel.
const RANDOM: Tolerance = Tolerance { orthonormal: 1e-6, residual: 0.05, values: 0.05, degrees: 45.0 };

/// Half of the points as landmarks of smooth kernels, whose eigenvalues fall by orders of magnitude: measured errors are ten
/// times smaller.
const CLOSE: Tolerance = Tolerance { orthonormal: 1e-6, residual: 1e-2, values: 1e-2, degrees: 10.0 };

/// Functions that are orthonormal under half of the points are so under all of them to the accuracy of an average over them.
const SAMPLED: Tolerance = Tolerance { orthonormal: 1.0, residual: 0.5, values: 0.5, degrees: 15.0 };

/// Networks after a short training and the finish, which makes them orthonormal. Eight more functions than are wanted span what
/// is wanted, the last ones least exactly: the residual of the sixth function in the plane is 0.04 after 300 steps.
const LEARNT: Tolerance = Tolerance { orthonormal: 1e-6, residual: 0.1, values: 0.05, degrees: 45.0 };

type TrainingLoop = fn(&Problem) -> Result<Eigenfunctions<f64>>;

pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) fit: TrainingLoop,
    pub(crate) tolerance: Tolerance,
    /// The problems it can be used on.
    pub(crate) applies: fn(&Problem) -> bool,
}

fn everywhere(_: &Problem) -> bool {
    true
}

fn solved(problem: &Problem, solver: Solver) -> Result<Eigenfunctions<f64>> {
    Ok(exact(Arc::clone(&problem.kernel), &problem.data, problem.k, solver, &Context::new())?.0)
}

/// A matrix of which only products are known.
struct Products<'a>(ArrayView2<'a, f64>);

impl LinearOperator<f64> for Products<'_> {
    fn dim(&self) -> usize {
        self.0.nrows()
    }

    fn apply(&self, x: ArrayView1<'_, f64>, mut y: ArrayViewMut1<'_, f64>) {
        y.assign(&self.0.dot(&x));
    }
}

fn operator(problem: &Problem) -> Result<Eigenfunctions<f64>> {
    let spectrum = Spectrum::of_operator(&Products(problem.gram.view()), problem.k, Solver::Lanczos, &Context::new())?;
    extend(&spectrum, Arc::clone(&problem.kernel), &problem.data)
}

/// `(x x' + 1.5)⁴ = Σ_i (4 over i) 1.5^{4-i} xⁱ x'ⁱ`.
#[derive(Debug)]
struct Powers;

impl FeatureMap<f64> for Powers {
    fn n_features(&self) -> usize {
        5
    }

    fn features(&self, inputs: &[&[f64]], _: usize, out: &mut [f64]) -> mercer_kernel::Result<()> {
        for (x, out) in inputs[0].iter().zip(out.chunks_exact_mut(5)) {
            for (power, (out, binomial)) in out.iter_mut().zip([1.0, 4.0, 6.0, 4.0, 1.0_f64]).enumerate() {
                *out = (binomial * 1.5_f64.powi(4 - power as i32)).sqrt() * x.powi(power as i32);
            }
        }
        Ok(())
    }

    fn effort(&self) -> mercer_kernel::Effort {
        mercer_kernel::Effort { bytes: 40, flops: 20.0, ..Default::default() }
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!({ "features": "powers" })
    }
}

/// Its features cannot be built again from a folder, so the suite does not save this member.
fn features(problem: &Problem, solver: Solver) -> Result<Eigenfunctions<f64>> {
    let basis = Arc::new(Mapped::new(Arc::new(Powers), &[vec![1]]));
    Ok(of_features(basis, &problem.data, problem.k, solver, &Context::new())?.0)
}

fn is_polynomial(problem: &Problem) -> bool {
    problem.kernel.identity()["kernel"] == "polynomial"
}

fn nystrom(problem: &Problem, method: Nystrom) -> Result<Eigenfunctions<f64>> {
    Ok(method.fit(Arc::clone(&problem.kernel), &problem.data, problem.k, &Context::new())?.functions)
}

fn half(problem: &Problem) -> usize {
    problem.samples() / 2
}

/// Networks that are trained on the matrix.
fn trained(problem: &Problem, method: LearningMethod, shared: bool) -> Result<Eigenfunctions<f64>> {
    Ok(learnt(problem, method, shared, &LearningSettings::new(method).steps(300))?.after.swap_remove(0))
}

/// The pairs whose kernel the problem is: every point with each of its partners.
fn contrastive(problem: &Problem) -> Result<Eigenfunctions<f64>> {
    let samples = problem.samples();
    let pairs: Vec<(usize, usize)> = (0..samples)
        .flat_map(|i| PARTNERS.iter().map(move |d| (i, (i + samples).wrapping_add_signed(*d) % samples)))
        .collect();
    let view = |name: &str, rows: Vec<usize>| {
        [Dataset::from_array(name, problem.points.select(Axis(0), &rows).into_dyn().view()).expect("data")]
    };
    let first = view("first", pairs.iter().map(|pair| pair.0).collect());
    let second = view("second", pairs.iter().map(|pair| pair.1).collect());
    let mut draws = Pairs::<f64>::given(&first, &second, 324, 0, &Context::new())?;
    let settings = LearningSettings::new(LearningMethod::NeuralEf).steps(300).components(problem.k);
    Ok(Learn::new(settings).run(networks(2, problem.k + 8, 1, true), &mut draws)?.after.swap_remove(0))
}

fn is_of_pairs(problem: &Problem) -> bool {
    problem.kernel.identity()["kernel"] == "pairs"
}

/// Half of the points tell little about a kernel that falls off within a few of them.
fn is_smooth(problem: &Problem) -> bool {
    !is_of_pairs(problem)
}

/// SpIN has no form for kernels with several outputs.
fn is_scalar(problem: &Problem) -> bool {
    problem.kernel.per_sample() == 1
}

/// Six functions of the kernel that Fourier features are drawn for below.
fn is_rbf(problem: &Problem) -> bool {
    problem.name.starts_with("rbf")
}

fn fourier(problem: &Problem, orthogonal: bool) -> Result<Eigenfunctions<f64>> {
    let spec = FourierSpec { orthogonal, ..FourierSpec::new(Density::Gaussian, 1.0, 1000) };
    let basis = Arc::new(Fourier::new(&spec, &[2])?);
    Ok(of_features(basis, &problem.data, problem.k, Solver::Lanczos, &Context::new())?.0)
}

/// The table.
pub(crate) fn members() -> Vec<Member> {
    let member = |name, fit, tolerance| Member { name, fit, tolerance, applies: everywhere };
    let smooth = |name, fit, tolerance| Member { name, fit, tolerance, applies: is_smooth };
    vec![
        member("exact", |p| solved(p, Solver::Full), EXACT),
        member("lanczos", |p| solved(p, Solver::Lanczos), EXACT),
        member("operator", operator, EXACT),
        Member { applies: is_polynomial, ..member("features, full", |p| features(p, Solver::Full), EXACT) },
        Member { applies: is_polynomial, ..member("features, lanczos", |p| features(p, Solver::Lanczos), EXACT) },
        Member { applies: is_of_pairs, ..member("contrastive", contrastive, LEARNT) },
        member("NeuralEF", |p| trained(p, LearningMethod::NeuralEf, false), LEARNT),
        member("shared", |p| trained(p, LearningMethod::NeuralEf, true), LEARNT),
        member("nested, sequential", |p| trained(p, LearningMethod::Nested(Nesting::Sequential), false), LEARNT),
        member("nested, joint", |p| trained(p, LearningMethod::Nested(Nesting::Joint), true), LEARNT),
        Member { applies: is_scalar, ..member("SpIN", |p| trained(p, LearningMethod::Spin, false), LEARNT) },
        member("randomised", |p| solved(p, Solver::Randomised { seed: 1 }), ITERATED),
        member("nystrom, all", |p| nystrom(p, Nystrom::new(Landmarks::All)), EXACT),
        smooth("nystrom, uniform", |p| nystrom(p, Nystrom::new(Landmarks::Uniform(half(p)))), CLOSE),
        smooth("nystrom, k-means++", |p| nystrom(p, Nystrom::new(Landmarks::KMeansPlusPlus(half(p)))), CLOSE),
        smooth("nystrom, rpcholesky", |p| nystrom(p, Nystrom::new(Landmarks::PivotedCholesky(half(p)))), CLOSE),
        smooth(
            "nystrom, landmarks' measure",
            |p| nystrom(p, Nystrom::new(Landmarks::Uniform(half(p))).measure(Measure::Landmarks)),
            SAMPLED,
        ),
        Member { applies: is_rbf, ..member("random Fourier features", |p| fourier(p, false), RANDOM) },
        Member { applies: is_rbf, ..member("orthogonal Fourier features", |p| fourier(p, true), RANDOM) },
    ]
}
