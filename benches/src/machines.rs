//! Machines on kernels, in `f64`. scikit-learn takes 1.07 s for the ridge and 2.1 s for the linear model on the machine that
//! the limits were set on; ours may take 0.8 s and 1.0 s.

use super::cases::{Case, numbers};
use mercer_data::Classes;
use mercer_kernel::classic::Formula;
use mercer_learn::classification::Glm;
use mercer_learn::regression::Ridge;
use mercer_learn::{Fit, SampleRows};
use ndarray::Array2;

/// Constructors of all cases.
pub(super) fn all() -> Vec<fn() -> Case> {
    vec![ridge, glm]
}

fn rows(n: usize, d: usize) -> Array2<f64> {
    let values: Vec<f64> = numbers(n * d, 1.0).into_iter().map(f64::from).collect();
    Array2::from_shape_vec((n, d), values).expect("as many as asked for")
}

/// The Gram matrix of an RBF kernel and the fit of kernel ridge regression: a product and a factorisation.
fn ridge() -> Case {
    let (n, d) = (4000, 64);
    let x = rows(n, d);
    let y = Array2::from_shape_fn((n, 1), |(i, _)| x[(i, 0)].sin() + x[(i, 1)]);
    let kernel: Formula = "rbf(lengthscale=8)".parse().expect("a kernel");
    let run = move || {
        let gram = kernel.gram(x.view()).expect("a matrix");
        let machine = Ridge::new(1.0).expect("settings").fit(&SampleRows::Gram(gram.view()), &y).expect("fits");
        std::hint::black_box(machine);
    };
    let flops = (n * n * d) as f64 + (n * n * n) as f64 / 3.0;
    Case { name: "machine_ridge_rbf_n4000_d64_f64", flops, run: Box::new(run) }
}

/// The multinomial linear model on a kernel matrix, ten classes; operations of one evaluation of its loss.
fn glm() -> Case {
    let (n, d, n_classes) = (2000, 16, 10);
    let x = rows(n, d);
    let kernel: Formula = "rbf(lengthscale=2)".parse().expect("a kernel");
    let gram = kernel.gram(x.view()).expect("a matrix");
    let class = |i: usize| ((x[(i, 0)] + 1.0) / 2.0 * n_classes as f64) as usize % n_classes;
    let labels = Classes::new((0..n).map(class).collect(), n_classes).expect("classes");
    let run = move || {
        // scikit-learn's limits; it ends at an objective of 566.1 on this matrix.
        let glm = Glm::new(1.0).and_then(|glm| glm.until(1e-4, 100)).expect("settings");
        std::hint::black_box(glm.fit(&SampleRows::Gram(gram.view()), &labels).expect("fits"));
    };
    Case { name: "machine_glm_kernel_n2000_c10_f64", flops: (4 * n * n * n_classes) as f64, run: Box::new(run) }
}
