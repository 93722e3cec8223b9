//! Random Fourier features against the kernels they stand for.

use crate::problems::points;
use mercer_kernel::FeatureMap;
use mercer_kernel::classic::Formula;
use mercer_linalg::matmul;
use mercer_spectral::{Density, Fourier, FourierSpec, SpectralError};
use ndarray::Array2;

fn features(spec: &FourierSpec, x: &Array2<f64>) -> Array2<f64> {
    let map = Fourier::<f64>::new(spec, &[x.ncols()]).expect("draws");
    let mut out = Array2::zeros((x.nrows(), map.n_features()));
    let (input, slots) = (x.as_slice().expect("row-major"), out.as_slice_mut().expect("fresh"));
    map.features(&[input], x.nrows(), slots).expect("maps");
    out
}

/// The mean square error of the kernel of the features.
fn error(spec: &FourierSpec, x: &Array2<f64>, kernel: impl Fn(&[f64]) -> f64) -> f64 {
    let phi = features(spec, x);
    let found = matmul(phi.view(), phi.t());
    let difference = |i: usize, j: usize| -> Vec<f64> { (0..x.ncols()).map(|k| x[(i, k)] - x[(j, k)]).collect() };
    let squares = found.indexed_iter().map(|((i, j), v)| (v - kernel(&difference(i, j))).powi(2));
    squares.sum::<f64>() / found.len() as f64
}

/// `E (φ·φ' - κ)² ≤ 1/D` with `D` frequencies, because each contributes a cosine; six standard deviations are far above the mean
/// of 400 correlated ones.
#[test]
fn kernels_are_their_features_products() {
    let x = points(20, 3, 1.5);
    let euclid = |d: &[f64]| d.iter().map(|d| d * d).sum::<f64>().sqrt();
    type Kernel = Box<dyn Fn(&[f64]) -> f64>;
    let cases: [(Density, Kernel); 5] = [
        (Density::Gaussian, Box::new(move |d| (-euclid(d).powi(2) / 2.0 / 0.49).exp())),
        (Density::Laplacian, Box::new(|d| (-d.iter().map(|d| d.abs()).sum::<f64>() / 0.7).exp())),
        (Density::Matern(0.5), Box::new(move |d| (-euclid(d) / 0.7).exp())),
        (
            Density::Matern(1.5),
            Box::new(move |d| (1.0 + 3f64.sqrt() * euclid(d) / 0.7) * (-3f64.sqrt() * euclid(d) / 0.7).exp()),
        ),
        (
            Density::Matern(2.5),
            Box::new(move |d| {
                let r = 5f64.sqrt() * euclid(d) / 0.7;
                (1.0 + r + r * r / 3.0) * (-r).exp()
            }),
        ),
    ];
    for (density, kernel) in &cases {
        for orthogonal in [false, true] {
            if orthogonal && *density == Density::Laplacian {
                continue;
            }
            let spec = FourierSpec { orthogonal, ..FourierSpec::new(*density, 0.7, 20_000) };
            let found = error(&spec, &x, kernel);
            assert!(found < 36.0 / 10_000.0 / 10.0, "{density:?}, orthogonal {orthogonal}: {found:e}");
        }
    }
    let wide = FourierSpec {
        variance: 2.5,
        lengthscales: vec![0.7, 1.0, 2.0],
        ..FourierSpec::new(Density::Gaussian, 1.0, 20_000)
    };
    let scaled = |d: &[f64]| 2.5 * (-((d[0] / 0.7).powi(2) + d[1].powi(2) + (d[2] / 2.0).powi(2)) / 2.0).exp();
    assert!(error(&wide, &x, scaled) < 2.5f64.powi(2) * 3.6e-4);
    // On the diagonal they are exact.
    let phi = features(&wide, &x);
    assert!(phi.outer_iter().all(|row| (row.dot(&row) - 2.5).abs() < 1e-12));
}

/// The point of orthogonal features (Yu et al. 2016): the same number of them has a lower variance.
#[test]
fn orthogonal_features_have_a_lower_variance() {
    let x = points(15, 8, 0.6);
    let kernel = |d: &[f64]| (-d.iter().map(|d| d * d).sum::<f64>() / 2.0).exp();
    let mean = |orthogonal: bool| {
        let one =
            |seed| error(&FourierSpec { orthogonal, seed, ..FourierSpec::new(Density::Gaussian, 1.0, 16) }, &x, kernel);
        (0..40).map(one).sum::<f64>() / 40.0
    };
    let (plain, orthogonal) = (mean(false), mean(true));
    assert!(orthogonal < 0.8 * plain, "{orthogonal} {plain}");
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let good = FourierSpec::new(Density::Gaussian, 1.0, 10);
    let bad = [
        FourierSpec { n_features: 0, ..good.clone() },
        FourierSpec { n_features: 7, ..good.clone() },
        FourierSpec { lengthscales: vec![-1.0], ..good.clone() },
        FourierSpec { lengthscales: vec![1.0, 1.0], ..good.clone() },
        FourierSpec { variance: f64::NAN, ..good.clone() },
        FourierSpec { density: Density::Laplacian, orthogonal: true, ..good.clone() },
        FourierSpec { density: Density::Matern(0.0), ..good.clone() },
    ];
    for spec in bad {
        let found = Fourier::<f64>::new(&spec, &[3]);
        assert!(matches!(found, Err(SpectralError::Setting(_))), "{spec:?}");
    }
    assert!(Fourier::<f64>::new(&good, &[0]).is_err());
}

/// The classic kernels themselves are the reference.
#[test]
fn classic_kernels_have_features() {
    let x = points(12, 2, 1.0);
    for text in [
        "rbf(lengthscale=0.8)",
        "3*laplacian(lengthscale=1.5)",
        "matern12(lengthscale=[1,2])",
        "matern32()",
        "2*matern52()",
    ] {
        let kernel: Formula = text.parse().expect(text);
        let spec = FourierSpec::of_classic(&kernel, 20_000).expect(text);
        let phi = features(&spec, &x);
        let error = matmul(phi.view(), phi.t()) - kernel.gram(x.view()).expect(text);
        // Six standard deviations of a mean over 10,000 cosines.
        assert!(error.iter().all(|e| e.abs() < 0.06 * spec.variance), "{text}");
    }
    for text in ["linear()", "rbf() + rbf()", "rbf()*matern12()", "periodic()", "2", "rational_quadratic()"] {
        let kernel: Formula = text.parse().expect(text);
        assert!(matches!(FourierSpec::of_classic(&kernel, 10), Err(SpectralError::Setting(_))), "{text}");
    }
}
