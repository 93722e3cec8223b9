//! The methods, and how close each has to come. A new method is one more line of the table.

use crate::learnt::learnt;
use crate::problems::Problem;
use mercer_net::progress::Silent;
use mercer_spectral::learnt::{Method, Nesting, Settings};
use mercer_spectral::{
    Density, Eigenfunctions, Fourier, FourierSpec, Landmarks, Measure, Nystrom, Solver, exact, of_features,
};
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

type Fit = fn(&Problem) -> Eigenfunctions<f64>;

pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) fit: Fit,
    pub(crate) tolerance: Tolerance,
    /// The problems it can be used on.
    pub(crate) applies: fn(&Problem) -> bool,
}

fn everywhere(_: &Problem) -> bool {
    true
}

fn solved(problem: &Problem, solver: Solver) -> Eigenfunctions<f64> {
    exact(Arc::clone(&problem.kernel), &problem.data, problem.k, solver, &Silent::default()).expect("solves").0
}

fn nystrom(problem: &Problem, method: Nystrom) -> Eigenfunctions<f64> {
    method.fit(Arc::clone(&problem.kernel), &problem.data, problem.k, &Silent::default()).expect("fits").functions
}

fn half(problem: &Problem) -> usize {
    problem.samples() / 2
}

/// Networks that are trained on the matrix.
fn trained(problem: &Problem, method: Method, shared: bool) -> Eigenfunctions<f64> {
    learnt(problem, method, shared, &Settings::new(method).steps(300)).after.swap_remove(0)
}

/// SpIN has no form for kernels with several outputs.
fn is_scalar(problem: &Problem) -> bool {
    problem.kernel.per_sample() == 1
}

/// Six functions of the kernel that Fourier features are drawn for below.
fn is_rbf(problem: &Problem) -> bool {
    problem.name.starts_with("rbf")
}

fn fourier(problem: &Problem, orthogonal: bool) -> Eigenfunctions<f64> {
    let spec = FourierSpec { orthogonal, ..FourierSpec::new(Density::Gaussian, 1.0, 1000) };
    let basis = Arc::new(Fourier::new(&spec, &[2]).expect("draws"));
    of_features(basis, &problem.data, problem.k, Solver::Lanczos, &Silent::default()).expect("solves").0
}

/// The table.
pub(crate) fn members() -> Vec<Member> {
    let member = |name, fit, tolerance| Member { name, fit, tolerance, applies: everywhere };
    vec![
        member("exact", |p| solved(p, Solver::Full), EXACT),
        member("lanczos", |p| solved(p, Solver::Lanczos), EXACT),
        member("NeuralEF", |p| trained(p, Method::NeuralEf, false), LEARNT),
        member("shared", |p| trained(p, Method::NeuralEf, true), LEARNT),
        member("nested, sequential", |p| trained(p, Method::Nested(Nesting::Sequential), false), LEARNT),
        member("nested, joint", |p| trained(p, Method::Nested(Nesting::Joint), true), LEARNT),
        Member { applies: is_scalar, ..member("SpIN", |p| trained(p, Method::Spin, false), LEARNT) },
        member("randomised", |p| solved(p, Solver::Randomised { seed: 1 }), ITERATED),
        member("nystrom, all", |p| nystrom(p, Nystrom::new(Landmarks::All)), EXACT),
        member("nystrom, uniform", |p| nystrom(p, Nystrom::new(Landmarks::Uniform(half(p)))), CLOSE),
        member("nystrom, k-means++", |p| nystrom(p, Nystrom::new(Landmarks::KMeansPlusPlus(half(p)))), CLOSE),
        member("nystrom, rpcholesky", |p| nystrom(p, Nystrom::new(Landmarks::PivotedCholesky(half(p)))), CLOSE),
        member(
            "nystrom, landmarks' measure",
            |p| nystrom(p, Nystrom::new(Landmarks::Uniform(half(p))).measure(Measure::Landmarks)),
            SAMPLED,
        ),
        Member { applies: is_rbf, ..member("random Fourier features", |p| fourier(p, false), RANDOM) },
        Member { applies: is_rbf, ..member("orthogonal Fourier features", |p| fourier(p, true), RANDOM) },
    ]
}
