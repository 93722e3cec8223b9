//! Closed forms against series, and the edges of the arithmetic.

use super::{activation_of, both, grams, mlp, normal, worst};
use mercer_kernel::infinite::{Elementwise, Limit, LimitActivation, LimitKind, LimitNet, Patch, Scales};
use mercer_kernel::{Kernel, KernelError};
use mercer_net::op::{Combine, Function};
use std::sync::Arc;

fn series(function: Function) -> LimitActivation {
    LimitActivation::series(Elementwise::Unary(function, Arc::new(Elementwise::Unit)))
}

/// The samples of a small set: random ones, two that are equal, two that are opposite, and zero.
fn samples() -> (Vec<f64>, usize) {
    let mut x = normal(5, 40);
    let first: Vec<f64> = x[..4].to_vec();
    x.extend(&first);
    x.extend(first.iter().map(|x| -x));
    x.extend([0.0; 4]);
    let count = x.len() / 4;
    (x, count)
}

#[test]
fn closed_forms_are_the_sums_of_their_series() {
    let (x, n) = samples();
    for function in
        [Function::Erf, Function::Sin, Function::Cos, Function::Gelu, Function::Power(2.0), Function::Power(3.0)]
    {
        let build = |activation: &LimitActivation| mlp(4, 2, Scales::ntk(0.9, 0.2), activation, Scales::ntk(1.0, 0.1));
        let closed = grams(&build(&activation_of(function)), &x, n);
        let summed = grams(&build(&series(function)), &x, n);
        // Entries may be zero by symmetry: relative to the diagonal.
        for (closed, summed) in [(&closed.0, &summed.0), (&closed.1, &summed.1)] {
            for i in 0..n * n {
                let scale = (closed[(i / n) * n + i / n] * closed[(i % n) * n + i % n]).sqrt();
                let error = (closed[i] - summed[i]).abs() / scale;
                assert!(error < 1e-9, "{function:?} {i}: {} {} {error:e}", closed[i], summed[i]);
            }
        }
    }
}

#[test]
fn a_bell_is_the_sum_of_its_series() {
    let square = Elementwise::Binary(Combine::Mul, Arc::new(Elementwise::Unit), Arc::new(Elementwise::Unit));
    let scaled = Elementwise::Unary(Function::Affine { scale: -0.7, shift: 0.0 }, Arc::new(square));
    let bell = Elementwise::Unary(Function::Exp, Arc::new(scaled));
    let closed = LimitActivation::recognise(&bell);
    assert!(closed.is_closed());
    let build = |activation: &LimitActivation| mlp(4, 2, Scales::ntk(0.8, 0.2), activation, Scales::ntk(1.0, 0.1));
    let (x, n) = samples();
    let (closed, summed) = (grams(&build(&closed), &x, n), grams(&build(&LimitActivation::series(bell)), &x, n));
    assert!(worst(&closed.0, &summed.0) < 1e-9 && worst(&closed.1, &summed.1) < 1e-8);
}

/// `|x| = 2 relu(x) − x`, so `E|u||v| = 4 E[relu relu] − c`, and the same of the slopes.
#[test]
fn absolute_values_follow_from_relu() {
    let (x, n) = samples();
    let value = |activation: &LimitActivation| {
        grams(&mlp(4, 1, Scales::ntk(1.1, 0.3), activation, Scales::ntk(1.0, 0.0)), &x, n)
    };
    let (abs, relu, line) =
        (value(&activation_of(Function::Abs)), value(&LimitActivation::relu()), value(&activation_of(Function::Neg)));
    for i in 0..n * n {
        assert!((abs.0[i] - (4.0 * relu.0[i] - line.0[i])).abs() < 1e-13);
        assert!((abs.1[i] - (4.0 * relu.1[i] - line.1[i])).abs() < 1e-13);
    }
}

/// Two samples at a small angle: the tangent kernel knows the angle to all digits, where an arccosine of a rounded correlation
/// would be off by 1e-8 (double) and 1e-4 (single).
#[test]
fn small_angles_are_exact() {
    let net = mlp(2, 1, Scales::ntk(2.0f64.sqrt(), 0.0), &LimitActivation::relu(), Scales::ntk(1.0, 0.0));
    for angle in [1e-3, 1e-6, 1e-8, 3e-9, 1e-12] {
        let x = [1.0, 0.0, f64::cos(angle), f64::sin(angle)];
        let (nngp, ntk) = grams(&net, &x, 2);
        let pi = std::f64::consts::PI;
        let k = (f64::sin(angle) + (pi - angle) * f64::cos(angle)) / (2.0 * pi);
        let theta = k + f64::cos(angle) * (pi - angle) / (2.0 * pi);
        assert!((nngp[1] / k - 1.0).abs() < 4e-16, "{angle}: {} {k}", nngp[1]);
        assert!((ntk[1] / theta - 1.0).abs() < 8e-16, "{angle}: {} {theta}", ntk[1]);
        let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        let (_, ntk) = grams(&net, &single, 2);
        assert!((f64::from(ntk[1]) / theta - 1.0).abs() < 4e-7, "{angle}: {} {theta}", ntk[1]);
    }
}

#[test]
fn equal_samples_have_equal_rows() {
    let relu = LimitActivation::relu();
    let mut image = LimitNet::new();
    let x = image.image([4, 4], 2);
    let x = image.conv("conv", x, Scales::ntk(1.4, 0.1), Patch::same([3, 3])).unwrap();
    let x = image.activation("relu", x, relu.clone()).unwrap();
    let x = image.average_pool("pool", x, Patch::valid([2, 2]), false).unwrap();
    let x = image.conv("conv", x, Scales::ntk(1.4, 0.0), Patch::same([3, 3])).unwrap();
    let x = image.activation("relu", x, relu.clone()).unwrap();
    image.global_average_pool("head", x);
    for net in [mlp(32, 3, Scales::ntk(1.4, 0.1), &relu, Scales::ntk(1.0, 0.0)), image] {
        let mut x = normal(8, 32 * 70);
        let copy: Vec<f64> = x[..32].to_vec();
        x[32 * 69..].copy_from_slice(&copy);
        let (nngp, ntk) = grams(&net, &x, 70);
        for gram in [&nngp, &ntk] {
            assert_eq!(gram[0], gram[69], "a sample and its copy");
            assert_eq!(gram[0], gram[69 * 70 + 69]);
        }
        let apart = both(&net, (&x[..32], 1), (&copy, 1));
        assert!((apart.1[0] / ntk[0] - 1.0).abs() < 1e-14);
        let limit = Limit::<f64>::new(net, LimitKind::Ntk).unwrap();
        let block = limit.prepare(&[&x], 70).unwrap();
        let diagonal: Vec<f64> = (0..70).map(|i| ntk[i * 71]).collect();
        assert!(worst(&limit.diagonal(&block), &diagonal) < 1e-14);
    }
}

#[test]
fn zeros_are_finite() {
    let x: [f64; 6] = [0.0, 0.0, 1.0, -1.0, 0.0, 0.0];
    for activation in [
        LimitActivation::relu(),
        activation_of(Function::Erf),
        activation_of(Function::Gelu),
        activation_of(Function::Tanh),
        activation_of(Function::Abs),
    ] {
        for bias in [0.0, 0.5] {
            let (nngp, ntk) = grams(&mlp(2, 3, Scales::ntk(1.2, bias), &activation, Scales::ntk(1.0, bias)), &x, 3);
            assert!(nngp.iter().chain(&ntk).all(|x| x.is_finite()), "{activation:?} {bias}");
            assert_eq!((nngp[0], ntk[0]), (nngp[2], ntk[2]));
            if bias == 0.0 {
                assert_eq!((nngp[0], nngp[1], ntk[0]), (0.0, 0.0, 0.0), "{activation:?}");
            }
        }
    }
}

/// With `σ_w² = 2` ReLU keeps lengths: `K(x, x)` never changes and `Θ(x, x)` grows by it in every layer.
#[test]
fn a_thousand_layers() {
    let depth = 1000;
    let net = mlp(3, depth, Scales::ntk(2.0f64.sqrt(), 0.0), &LimitActivation::relu(), Scales::ntk(1.0, 0.0));
    let x: [f64; 6] = [1.0, 2.0, 2.0, -1.0, 0.5, 3.0];
    let (nngp, ntk) = grams(&net, &x, 2);
    assert!((nngp[0] / 3.0 - 1.0).abs() < 1e-12, "{}", nngp[0]);
    assert!((ntk[0] / (3.0 * (depth + 1) as f64) - 1.0).abs() < 1e-12, "{}", ntk[0]);
    // Correlations go to one from below, as 9π²/(2 depth²).
    let rho = nngp[1] / (nngp[0] * nngp[3]).sqrt();
    let expected = 4.5 * (std::f64::consts::PI / depth as f64).powi(2);
    assert!(((1.0 - rho) / expected - 1.0).abs() < 0.05, "{} {expected}", 1.0 - rho);
    let erf = mlp(3, depth, Scales::ntk(1.1, 0.3), &activation_of(Function::Erf), Scales::ntk(1.0, 0.0));
    let (nngp, ntk) = grams(&erf, &x, 2);
    assert!(nngp.iter().chain(&ntk).all(|x| x.is_finite()) && nngp[1] <= nngp[0] * (1.0 + 1e-14));
}

/// Whether `A + jitter·I` has a Cholesky factor.
fn is_positive(a: &[f64], n: usize, jitter: f64) -> bool {
    let mut l = a.to_vec();
    for j in 0..n {
        for i in j..n {
            let dot: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
            let rest = l[i * n + j] - dot;
            if i == j {
                let pivot = rest + jitter;
                if pivot <= 0.0 {
                    return false;
                }
                l[j * n + j] = pivot.sqrt();
            } else {
                l[i * n + j] = rest / l[j * n + j];
            }
        }
    }
    true
}

#[test]
fn five_hundred_points_are_positive() {
    // Many points in two dimensions: eigenvalues fall far below rounding.
    let x = normal(11, 1000);
    for activation in [
        LimitActivation::relu(),
        activation_of(Function::Erf),
        activation_of(Function::Gelu),
        activation_of(Function::Sin),
        activation_of(Function::Tanh),
    ] {
        let (nngp, ntk) = grams(&mlp(2, 3, Scales::ntk(1.3, 0.2), &activation, Scales::ntk(1.0, 0.0)), &x, 500);
        for gram in [nngp, ntk] {
            let trace: f64 = (0..500).map(|i| gram[i * 501]).sum();
            assert!(is_positive(&gram, 500, 1e-15 * trace), "{activation:?}");
        }
    }
}

/// Images of two by two pixels, pooled and not: the paths of planes and of diagonals.
#[test]
fn five_hundred_images_are_positive() {
    let x = normal(12, 4 * 500);
    for pooled in [true, false] {
        let mut net = LimitNet::new();
        let mut y = net.image([2, 2], 1);
        for layer in ["first", "second"] {
            y = net.conv(layer, y, Scales::ntk(1.4, 0.1), Patch::same([3, 3])).unwrap();
            y = net.activation(layer, y, LimitActivation::relu()).unwrap();
        }
        y = if pooled { net.global_average_pool("pool", y) } else { net.flatten("flat", y) };
        net.dense("output", y, Scales::ntk(1.0, 0.0)).unwrap();
        let (nngp, ntk) = grams(&net, &x, 500);
        for gram in [nngp, ntk] {
            let trace: f64 = (0..500).map(|i| gram[i * 501]).sum();
            assert!(is_positive(&gram, 500, 1e-15 * trace), "{pooled}");
        }
        // Rounding of single precision in every entry, 500 · ε of the trace at most.
        let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        let gram: Vec<f64> = grams(&net, &single, 500).1.into_iter().map(f64::from).collect();
        let trace: f64 = (0..500).map(|i| gram[i * 501]).sum();
        assert!(is_positive(&gram, 500, 1e-6 * trace), "{pooled}");
    }
}

#[test]
fn the_standard_parametrisation_by_hand() {
    // One hidden layer of 7 units, 2 inputs: Θ = 7 K₁ + 1 + σ_w² Θ₁ K̇, Θ₁ = 2 K₀ + 1.
    let activation = activation_of(Function::Erf);
    let mut net = LimitNet::new();
    let x = net.input(2);
    let x = net.dense("hidden", x, Scales::standard(1.5, Some(0.1), 2)).unwrap();
    let x = net.activation("erf", x, activation).unwrap();
    net.dense("output", x, Scales::standard(0.9, Some(0.0), 7)).unwrap();
    let (x, y): ([f64; 2], [f64; 2]) = ([0.3, -1.0], [0.8, 0.4]);
    let k = |a: [f64; 2], b: [f64; 2]| 2.25 * (a[0] * b[0] + a[1] * b[1]) / 2.0 + 0.01;
    let (a, c, b) = (k(x, x), k(x, y), k(y, y));
    let product = (1.0 + 2.0 * a) * (1.0 + 2.0 * b);
    let k1 = 2.0 / std::f64::consts::PI * (2.0 * c / product.sqrt()).asin();
    let slope = 4.0 / std::f64::consts::PI / (product - 4.0 * c * c).sqrt();
    let theta1 = 2.0 * (c - 0.01) / 2.25 + 1.0;
    let (nngp, ntk) = both(&net, (&x, 1), (&y, 1));
    assert!((nngp[0] - 0.81 * k1).abs() < 1e-15);
    assert!((ntk[0] - (7.0 * k1 + 1.0 + 0.81 * theta1 * slope)).abs() < 1e-14);
}

#[test]
fn layer_norm_forgets_lengths() {
    let build = |epsilon: f64| {
        let mut net = LimitNet::new();
        let x = net.input(2);
        let x = net.dense("first", x, Scales::ntk(1.3, 0.0)).unwrap();
        let x = net.layer_norm("norm", x, epsilon, true).unwrap();
        let x = net.activation("relu", x, LimitActivation::relu()).unwrap();
        net.dense("output", x, Scales::ntk(1.0, 0.0)).unwrap();
        net
    };
    let (nngp, ntk) = grams::<f64>(&build(0.0), &[1.0, 2.0, 10.0, 20.0, -2.0, 0.5], 3);
    assert!((nngp[0] - 0.5).abs() < 1e-15 && (nngp[1] - 0.5).abs() < 1e-15 && (ntk[1] - 1.0).abs() < 1e-14);
    assert!((nngp[2] / nngp[5] - 1.0).abs() < 1e-14);
    // With an epsilon, by hand: the variance is 1.69 · 5/2.
    let variance = 1.69 * 2.5;
    let (nngp, _) = grams::<f64>(&build(0.1), &[1.0, 2.0], 1);
    assert!((nngp[0] - 0.5 * variance / (variance + 0.1)).abs() < 1e-15);
}

#[test]
fn samples_that_are_not_finite_or_do_not_fit_are_errors() {
    let net = mlp(2, 1, Scales::ntk(1.0, 0.1), &LimitActivation::relu(), Scales::ntk(1.0, 0.0));
    let limit = Limit::<f32>::new(net, LimitKind::Nngp).unwrap();
    let error = limit.prepare(&[&[1.0, 2.0, f32::NAN, 0.0]], 2).unwrap_err();
    assert!(matches!(error, KernelError::NotFinite { sample: 1, .. }), "{error}");
    assert!(limit.prepare(&[&[1.0, 2.0, 3.0]], 2).is_err());
    assert!(limit.prepare(&[], 2).is_err());
}

#[test]
fn a_series_that_is_too_short_is_refused() {
    // A clip has kinks: the series of its slope does not end, that of its value does.
    let clip = activation_of(Function::Clip { low: 0.0, high: 6.0 });
    let net = mlp(2, 1, Scales::ntk(1.0, 0.1), &clip, Scales::ntk(1.0, 0.0));
    let limit = Limit::<f64>::new(net.clone(), LimitKind::Ntk).unwrap();
    let error = limit.prepare(&[&[1.0, 2.0]], 1).unwrap_err().to_string();
    assert!(error.contains("layer1") && error.contains("Monte-Carlo"), "{error}");
    // Six is four deviations away, so it is nearly a ReLU.
    let x = normal(71, 10);
    let nngp = Limit::<f64>::new(net, LimitKind::Nngp).unwrap().gram(&[&x], 5).unwrap();
    let relu = grams(&mlp(2, 1, Scales::ntk(1.0, 0.1), &LimitActivation::relu(), Scales::ntk(1.0, 0.0)), &x, 5).0;
    assert!(worst(&nngp, &relu) < 1e-4);
}

/// Analytic activations work at any deviation that data have, those with a second derivative that jumps at small ones; kinks
/// have no tangent kernel here, but a covariance.
#[test]
fn activations_without_a_closed_form() {
    use Function::*;
    let build = |function: Function| mlp(3, 2, Scales::ntk(1.3, 0.1), &activation_of(function), Scales::ntk(1.0, 0.1));
    let x = normal(72, 30);
    let wide: Vec<f64> = x.iter().map(|x| 2.0 * x).collect();
    let analytic = [Tanh, Sigmoid, Swish(1.0), Softplus, GeluTanh, Mish, Atan, Asinh].map(|function| (function, &wide));
    for (function, x) in analytic.into_iter().chain([(Elu(1.0), &x), (Celu(1.0), &x)]) {
        let (nngp, ntk) = grams(&build(function), x, 10);
        assert!(is_positive(&nngp, 10, 1e-13) && is_positive(&ntk, 10, 1e-13), "{function:?}");
    }
    for function in [HardSwish, Selu { alpha: 1.67, gamma: 1.05 }] {
        assert!(
            Limit::<f64>::new(build(function), LimitKind::Ntk).unwrap().prepare(&[&x], 10).is_err(),
            "{function:?}"
        );
        let nngp = Limit::<f64>::new(build(function), LimitKind::Nngp).unwrap().gram(&[&x], 10).unwrap();
        assert!(is_positive(&nngp, 10, 1e-13), "{function:?}");
    }
}

/// ELU is a line on the right and `e^x − 1` on the left, so its expectations are those of exponentials over quadrants; by the
/// midpoint rule in two dimensions here, with steps that meet the axes.
#[test]
fn a_second_derivative_that_jumps() {
    let (step, reach) = (0.01, 8.0);
    let points: Vec<f64> = (0..).map(|i| -reach + step * (f64::from(i) + 0.5)).take_while(|&z| z < reach).collect();
    let weight = |z: f64| step * (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let net = mlp(2, 1, Scales::ntk(2.0f64.sqrt(), 0.0), &activation_of(Function::Elu(1.0)), Scales::ntk(1.0, 0.0));
    for (x, y) in [([1.0, 0.0], [0.999, 0.04]), ([1.0, 0.0], [0.6, 0.8])] {
        let dot = |a: [f64; 2], b: [f64; 2]| a[0] * b[0] + a[1] * b[1];
        let (s, t, c) = (dot(x, x).sqrt(), dot(y, y).sqrt(), dot(x, y));
        let (rho, rest) = (c / (s * t), (1.0 - (c / (s * t)).powi(2)).sqrt());
        let (mut k, mut d) = (0.0, 0.0);
        for &z in &points {
            for &w in &points {
                let (u, v) = (s * z, t * (rho * z + rest * w));
                let value = |x: f64| if x > 0.0 { x } else { x.exp_m1() };
                let slope = |x: f64| if x > 0.0 { 1.0 } else { x.exp() };
                k += weight(z) * weight(w) * value(u) * value(v);
                d += weight(z) * weight(w) * slope(u) * slope(v);
            }
        }
        let (nngp, ntk) = both(&net, (&x, 1), (&y, 1));
        // The midpoint rule is off by some 1e-7 where the second factor bends between its points.
        assert!(
            (nngp[0] - k).abs() < 2e-6 && (ntk[0] - (k + c * d)).abs() < 2e-6,
            "{} {k} {} {}",
            nngp[0],
            ntk[0],
            k + c * d
        );
    }
}

/// `E[φ(u)φ(v)]` and `E[φ'(u)φ'(v)]` by the trapezoidal rule in two dimensions, which is exact to rounding for analytic
/// functions.
#[test]
fn series_are_double_integrals() {
    let (step, reach) = (0.06, 8.5);
    let points: Vec<f64> = (0..).map(|i| -reach + step * i as f64).take_while(|&z| z <= reach).collect();
    let weight = |z: f64| step * (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    type Real = fn(f64) -> f64;
    let functions: [(Function, Real, Real); 2] = [
        (Function::Tanh, f64::tanh, |x| 1.0 - x.tanh().powi(2)),
        (Function::Softplus, |x| x.exp().ln_1p(), |x| 1.0 / (1.0 + (-x).exp())),
    ];
    let net =
        |activation: &LimitActivation| mlp(2, 1, Scales::ntk(2.0f64.sqrt(), 0.0), activation, Scales::ntk(1.0, 0.0));
    for (function, value, slope) in functions {
        for (x, y) in
            [([1.0, 0.0], [0.6, 0.8]), ([2.0, 0.3], [2.1, -0.2]), ([1.5, 0.0], [-1.2, 0.4]), ([1.0, 1.0], [1.0, 1.0])]
        {
            let dot = |a: [f64; 2], b: [f64; 2]| a[0] * b[0] + a[1] * b[1];
            let (s, t, c) = (dot(x, x).sqrt(), dot(y, y).sqrt(), dot(x, y));
            let (rho, rest) = (c / (s * t), (1.0 - (c / (s * t)).powi(2)).max(0.0).sqrt());
            let (mut k, mut d) = (0.0, 0.0);
            for &z in &points {
                for &w in &points {
                    let (u, v) = (s * z, t * (rho * z + rest * w));
                    k += weight(z) * weight(w) * value(u) * value(v);
                    d += weight(z) * weight(w) * slope(u) * slope(v);
                }
            }
            let (nngp, ntk) = both(&net(&activation_of(function)), (&x, 1), (&y, 1));
            assert!((nngp[0] - k).abs() < 1e-9, "{function:?} {x:?} {y:?}: {} {k}", nngp[0]);
            assert!((ntk[0] - (k + c * d)).abs() < 1e-9, "{function:?} {x:?} {y:?}: {} {}", ntk[0], k + c * d);
        }
    }
}
