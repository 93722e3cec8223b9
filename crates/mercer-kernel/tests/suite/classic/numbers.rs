//! Edges of the numbers: many points, equal points, no direction, far from the origin, half of the digits.

use super::{ALL, kernel, normal};
use mercer_kernel::classic::ClassicError;
use mercer_kernel::{Classic, Kernel, KernelError};
use mercer_linalg::symmetric_eigen;
use ndarray::{Array2, Axis, concatenate, s};

#[test]
fn positive_semidefinite_to_rounding_on_500_points() {
    let x = normal("points", (500, 3));
    for text in ALL {
        let gram = kernel(text).gram(x.view()).unwrap();
        let values = symmetric_eigen(gram.view()).unwrap().values;
        // An entry is wrong by a few roundings of the largest, an eigenvalue by 500 of them at most.
        assert!(values[499] >= -1e-13 * values[0], "{text}: {} of {}", values[499], values[0]);
    }
}

#[test]
fn equal_points_have_equal_rows_and_the_full_value() {
    for width in [3, 40] {
        let half = normal("half", (20, width)) + 10.0;
        let x = concatenate(Axis(0), &[half.view(), half.view()]).unwrap();
        for text in ALL.iter().filter(|text| !text.contains('[')) {
            let kernel = kernel(text);
            let (gram, diagonal) = (kernel.gram(x.view()).unwrap(), kernel.diagonal(x.view()).unwrap());
            for at in 0..20 {
                let (pair, own) = (gram[[at, at + 20]], gram[[at, at]]);
                // Distances of equal points are exactly zero, so nothing is amplified.
                assert!((pair - own).abs() <= 1e-14 * own, "{text} {width}: {pair} {own}");
                assert!((diagonal[at] - own).abs() <= 1e-13 * own, "{text} {width}");
            }
            if text.contains("lengthscale") {
                assert!((0..20).all(|at| gram[[at, at + 20]] == 1.0 && gram[[at, at]] == 1.0), "{text} {width}");
            }
        }
    }
}

#[test]
fn a_zero_vector_has_no_direction() {
    let x = ndarray::array![[0.0, 0.0], [0.0, 0.0], [3.0, 4.0]];
    let gram = |text: &str| kernel(text).gram(x.view()).unwrap();
    assert_eq!(gram("cosine()"), ndarray::array![[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]);
    for (order, own) in [(0, 1.0), (1, 25.0), (2, 3.0 * 625.0)] {
        let text = format!("arccosine(order={order})");
        let (gram, diagonal) = (gram(&text), kernel(&text).diagonal(x.view()).unwrap());
        let zero = if order == 0 { 0.5 } else { 0.0 };
        assert!(gram.slice(s![..2, ..]).iter().all(|value| (value - zero).abs() < 1e-15), "{gram}");
        assert!((diagonal[0] - zero).abs() < 1e-15 && (diagonal[2] - own).abs() < 1e-12 * own, "{diagonal}");
        assert!((gram[[2, 2]] - own).abs() < 1e-12 * own, "{gram}");
    }
}

#[test]
fn far_from_the_origin_distances_keep_their_digits() {
    // Shifts and lengthscales are powers of two, so that differences of the shifted points are those of the points, exactly.
    let x = normal("far", (30, 20)).mapv(|x| (x * 1024.0).round() / 1024.0);
    let far = &x + 1024.0;
    for text in ["rbf(lengthscale=4)", "matern12(lengthscale=4)", "laplacian(lengthscale=8)"] {
        let kernel = kernel(text);
        let (near, far) = (kernel.gram(x.view()).unwrap(), kernel.gram(far.view()).unwrap());
        let most = (near - far).iter().fold(0.0, |most: f64, d| most.max(d.abs()));
        assert!(most < 1e-14, "{text}: {most:e}");
    }
}

#[test]
fn small_angles_keep_their_digits() {
    // At an angle of 1e-6, its cosine is 1 to the last digit but two; J₀/π = 1 − θ/π.
    let angle = 1e-6f64;
    let x = ndarray::array![[1.0, 0.0], [angle.cos(), angle.sin()], [-angle.cos(), angle.sin()]];
    let gram = kernel("arccosine(order=0)").gram(x.view()).unwrap();
    let expected = angle / std::f64::consts::PI;
    assert!((1.0 - gram[[0, 1]] - expected).abs() < 1e-15);
    assert!((gram[[0, 2]] - expected).abs() < 1e-15);
    // Tiny and huge vectors have angles, too.
    let x = ndarray::array![[1e-200, 1e-200], [1e200, 0.0]];
    assert!((kernel("cosine()").gram(x.view()).unwrap()[[0, 1]] - 0.5f64.sqrt()).abs() < 1e-15);
}

#[test]
fn a_large_alpha_is_the_rbf_kernel() {
    let x = normal("alpha", (30, 3));
    let rational = kernel("rational_quadratic(lengthscale=1.5, alpha=1e12)").gram(x.view()).unwrap();
    let difference = rational - kernel("rbf(lengthscale=1.5)").gram(x.view()).unwrap();
    // They differ by r⁴/(8α).
    assert!(difference.iter().all(|d| d.abs() < 1e-11));
}

#[test]
fn single_precision_is_half_of_the_digits() {
    let x = normal("single", (40, 30)).mapv(|x| x as f32);
    let wide = x.mapv(f64::from);
    for text in ALL.iter().filter(|text| !text.contains('[')) {
        let expected = kernel(text).gram(wide.view()).unwrap();
        let single = Classic::<f32>::new(&kernel(text), 30).unwrap();
        let block = single.prepare(&[x.as_slice().unwrap()], 40).unwrap();
        let mut found = Array2::<f32>::zeros((40, 40));
        single.contract(&block, &block, found.as_slice_mut().unwrap());
        let size = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let most = found.iter().zip(&expected).fold(0.0, |most: f64, (x, y)| most.max((f64::from(*x) - y).abs()));
        assert!(most <= 2e-5 * size, "{text}: {most:e} of {size}");
    }
}

#[test]
fn wrong_sizes_and_numbers_are_refused() {
    let ard = kernel("2*rbf(lengthscale=[1, 2, 3])");
    let error = Classic::<f64>::new(&ard, 4).unwrap_err();
    let KernelError::Classic(inner) = &error else { panic!("{error}") };
    assert!(matches!(**inner, ClassicError::Lengthscales { given: 3, dimensions: 4, .. }), "{error}");
    assert_eq!(error.to_string(), "rbf has 3 lengthscales, but a sample has 4 numbers; give one, or one for each");
    assert!(Classic::<f64>::new(&kernel("linear()"), 0).is_err());
    let classic = Classic::<f64>::new(&ard, 3).unwrap();
    assert!(classic.prepare(&[&[1.0; 6], &[1.0; 6]], 2).unwrap_err().to_string().contains("one input"));
    assert!(classic.prepare(&[&[1.0; 5]], 2).is_err());
    for (value, place) in [(f64::NAN, "the data"), (1e200, "squared length")] {
        let data = [1.0, 1.0, 1.0, 1.0, value, 1.0];
        let error = classic.prepare(&[&data], 2).unwrap_err();
        let KernelError::NotFinite { place: found, sample: 1 } = &error else { panic!("{error}") };
        assert!(found.contains(place), "{error}");
    }
}
