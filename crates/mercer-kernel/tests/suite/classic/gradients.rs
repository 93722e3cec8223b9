//! Gradients against central differences of the matrix.

use super::{ALL, kernel, normal};
use mercer_kernel::classic::Formula;
use ndarray::Array2;

/// `Σ G_ij (κ_ij(θ + h) − κ_ij(θ − h))/2h`.
fn differences(kernel: &Formula, x: &Array2<f64>, weights: &Array2<f64>) -> Vec<f64> {
    const STEP: f64 = 1e-5;
    let logs = kernel.logs();
    (0..logs.len())
        .map(|at| {
            let value = |step: f64| {
                let mut moved = logs.clone();
                moved[at] += step;
                let gram = kernel.with_logs(&moved).unwrap().gram(x.view()).unwrap();
                (gram * weights).sum()
            };
            (value(STEP) - value(-STEP)) / (2.0 * STEP)
        })
        .collect()
}

fn check(text: &str, x: &Array2<f64>) {
    let kernel = kernel(text);
    let weights = normal("weights", (x.nrows(), x.nrows()));
    let found = kernel.gradient(x.view(), weights.view()).unwrap();
    let expected = differences(&kernel, x, &weights);
    assert_eq!(found.len(), kernel.parameters().len(), "{text}");
    let size = expected.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
    for ((found, expected), parameter) in found.iter().zip(&expected).zip(kernel.parameters()) {
        // The step's square, and rounding over the step.
        assert!((found - expected).abs() <= 1e-7 * size, "{text}, {}: {found} {expected}", parameter.name);
    }
}

#[test]
fn of_every_kernel() {
    let mut x = normal("gradients", (70, 3));
    // Duplicates, where distances vanish, and a sample without direction.
    let copied = x.row(3).to_owned();
    x.row_mut(9).assign(&copied);
    x.row_mut(11).fill(0.0);
    ALL.iter().for_each(|text| check(text, &x));
}

#[test]
fn of_expressions() {
    let x = normal("expressions", (67, 3)) + 5.0;
    for text in [
        "2",
        "2*3*rbf()",
        "rbf(lengthscale=1.5) + 0.1*linear()",
        "(1 + 0.3*matern32(lengthscale=[1, 2, 3]))*(rbf() + periodic(period=3))*0.7",
        "rational_quadratic(alpha=3)*laplacian(lengthscale=[2, 3, 4])*arccosine() + cosine()*polynomial(degree=2)",
    ] {
        check(text, &x);
    }
}

#[test]
fn of_wide_samples() {
    let x = normal("wide", (20, 40));
    let lengths: Vec<String> = (0..40).map(|k| (4.0 + 0.1 * f64::from(k)).to_string()).collect();
    let lengths = lengths.join(",");
    for name in ["rbf", "matern12", "matern52", "laplacian", "periodic"] {
        check(&format!("{name}(lengthscale=[{lengths}])"), &x);
    }
}

#[test]
fn same_bits_for_any_number_of_threads() {
    let (x, weights) = (normal("threads", (200, 3)), normal("weights", (200, 200)));
    let kernel = kernel("rbf(lengthscale=[1, 2, 3])*periodic() + 0.5*laplacian()");
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| (kernel.gradient(x.view(), weights.view()).unwrap(), kernel.gram(x.view()).unwrap()))
    };
    assert!(run(1) == run(2));
}

#[test]
fn parameters_have_names_and_logarithms() {
    let kernel = kernel("rbf(lengthscale=2) + 0.5*rbf(lengthscale=[1, 3]) + polynomial(bias=0)");
    let parameters = kernel.parameters();
    let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    assert_eq!(names, ["rbf.lengthscale", "factor", "rbf.lengthscale[0]", "rbf.lengthscale[1]", "polynomial.scale"]);
    let twice = super::kernel("rbf() + rbf() + rbf()").parameters();
    assert_eq!(twice[1].name, "rbf.lengthscale #2");
    assert_eq!(twice[2].name, "rbf.lengthscale #3");
    let moved = kernel.with_logs(&[0.0, 0.0, 1f64.ln(), 4f64.ln(), 0.0]).unwrap();
    assert!(moved.to_string().starts_with("rbf(lengthscale=1) + 1*rbf(lengthscale=[1, 4"), "{moved}");
    assert!(kernel.with_logs(&[0.0]).is_err());
    for wrong in [f64::NAN, 1000.0, -1000.0] {
        let error = kernel.with_logs(&[0.0, wrong, 0.0, 0.0, 0.0]).unwrap_err().to_string();
        assert!(error.contains("parameter factor"), "{error}");
    }
    let x = normal("shape", (4, 2));
    assert!(kernel.gradient(x.view(), normal("w", (4, 3)).view()).is_err());
}
