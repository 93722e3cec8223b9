//! Times of the products and decompositions, and their test ratios, on one core.
//!
//!     cargo run --release -p mercer-linalg --example decomposition_speed [n]

use mercer_linalg::verify::{Depth, eigen_residual, orthogonality};
use mercer_linalg::{Scalar, cholesky, matmul, symmetric_eigen, syrk, thin_qr, thin_svd, top_eigen};
use ndarray::Array2;
use std::time::Instant;

fn time<R>(name: &str, flops: f64, mut body: impl FnMut() -> R) -> R {
    let mut best = f64::INFINITY;
    let mut result = None;
    for _ in 0..3 {
        let start = Instant::now();
        result = Some(body());
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name:16} {:9.1} ms  {:6.1} GF/s", best * 1e3, flops / best / 1e9);
    result.expect("ran three times")
}

fn run<T: Scalar>(n: usize) {
    let cube = (n as f64).powi(3);
    // Any fixed numbers without structure do.
    let a = Array2::from_shape_fn((n, n), |(i, j)| T::narrow((((i * n + j) as f64 + 0.5) * 78.233).sin()));
    println!("{} n = {n}", T::NAME);
    time("matmul", 2.0 * cube, || matmul(a.view(), a.t()));
    let gram = time("syrk", cube, || syrk(a.view()));
    let definite = &gram + &(Array2::eye(n) * T::narrow(n as f64 / 10.0));
    let factor = time("cholesky", cube / 3.0, || cholesky(definite.view()).unwrap());
    time("solve", 2.0 * cube, || factor.solve(a.view()).unwrap());
    time("qr", 8.0 / 3.0 * cube, || thin_qr(a.view()).unwrap());
    let top = time("top 20 eigen", 0.0, || top_eigen(gram.view(), 20).unwrap());
    let eigen = time("eigen", 9.0 * cube, || symmetric_eigen(gram.view()).unwrap());
    time("svd", 22.0 * cube, || thin_svd(a.view()).unwrap());
    let residual = eigen_residual(gram.view(), eigen.values.view(), eigen.vectors.view(), Depth::Full);
    let skew = orthogonality(eigen.vectors.view(), Depth::Full);
    println!("eigen: residual {residual:.3}, orthogonality {skew:.3}; top 20: {} products\n", top.n_applications);
}

fn main() {
    let n = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1000);
    run::<f32>(n);
    run::<f64>(n);
}
