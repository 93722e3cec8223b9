//! Classic kernels: against scikit-learn, against finite differences, at the edges, and as text.

mod golden;
mod gradients;
mod numbers;
mod text;

use mercer_data::random::stream;
use mercer_kernel::classic::Formula;
use ndarray::Array2;
use rand::RngExt;

fn kernel(text: &str) -> Formula {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn normal(name: &str, shape: (usize, usize)) -> Array2<f64> {
    let mut random = stream(1, name);
    Array2::from_shape_simple_fn(shape, || random.sample(rand_distr::StandardNormal))
}

/// Every kernel of the catalogue, for samples of three numbers.
const ALL: [&str; 17] = [
    "linear()",
    "polynomial(degree=3, scale=0.5, bias=0.7)",
    "polynomial(degree=2, bias=0)",
    "rbf(lengthscale=1.3)",
    "rbf(lengthscale=[0.5, 1, 2])",
    "laplacian(lengthscale=2)",
    "laplacian(lengthscale=[3, 1, 2])",
    "matern12(lengthscale=[0.5, 1, 2])",
    "matern32(lengthscale=1.5)",
    "matern52(lengthscale=[1.5, 1, 2])",
    "rational_quadratic(lengthscale=[1, 2, 3], alpha=0.7)",
    "periodic(lengthscale=0.9, period=2.3)",
    "periodic(lengthscale=[0.9, 2, 3], period=1.7)",
    "cosine()",
    "arccosine(order=0)",
    "arccosine(order=1)",
    "arccosine(order=2)",
];
