//! Accuracy against the standard library and libm, with and without fused multiply-add; edge cases; independence of
//! position.

use super::kernels::{Acos, Cos, Erf, Exp, Ln, Sigmoid, Sin, Tanh};
use super::real::Real;
use super::sweep::{Kernel, sweep};
use super::*;

/// Units in the last place between a result and its reference in `f64`, counted at the reference. Subnormal results are
/// counted in units of the smallest number.
fn ulps<R: Real>(found: R, reference: f64) -> f64 {
    let (found, near) = (found.wide(), R::narrow(reference).wide());
    if found == near || (found.is_nan() && near.is_nan()) {
        return 0.0;
    }
    let (smallest, digits) = if R::NAME == "f32" { (-149, 23) } else { (-1074, 52) };
    let exponent = (reference.abs().log2().floor() as i32 - digits).max(smallest);
    // In two steps, since 2^1074 is infinite.
    let half = -exponent / 2;
    (found - reference).abs() * 2f64.powi(half) * 2f64.powi(-exponent - half)
}

/// Spread evenly over an interval, and evenly in magnitude from 1e-30 up on both sides where the interval allows.
fn arguments<R: Real>([low, high]: [f64; 2]) -> Vec<R> {
    let even = (0..20_000).map(|i| low + (high - low) * i as f64 / 19_999.0);
    let wide = (0..4_000).flat_map(|i| {
        let magnitude = 10f64.powf(-30.0 + 35.0 * i as f64 / 3_999.0);
        [magnitude, -magnitude]
    });
    even.chain(wide.filter(|x| *x >= low && *x <= high)).map(R::narrow).collect()
}

/// The worst error of the dispatched sweep and of the plain kernel, in units in the last place.
fn worst<K: Kernel, R: Real>(interval: [f64; 2], reference: impl Fn(f64) -> f64) -> f64 {
    let x = arguments::<R>(interval);
    let mut y = x.clone();
    sweep::<K, R>(&mut y);
    let unfused = x.iter().map(|&x| K::at::<R, false>(x));
    let error = |(&x, found): (&R, R)| ulps(found, reference(x.wide()));
    x.iter().zip(y).map(error).chain(x.iter().zip(unfused).map(error)).fold(0.0, f64::max)
}

/// The bound promised in the module header. References are within one unit themselves in `f64`, hence 4 for the 3 we
/// keep.
fn check<K: Kernel>(name: &str, single: [f64; 2], double: [f64; 2], reference: fn(f64) -> f64) {
    let errors = [worst::<K, f32>(single, reference), worst::<K, f64>(double, reference)];
    println!("{name}: {:.2} units in f32, {:.2} in f64", errors[0], errors[1]);
    assert!(errors.iter().all(|e| *e <= 4.0), "{name} is off by {errors:?} units in the last place");
}

#[test]
fn exp_is_accurate_down_to_subnormal_results() {
    check::<Exp>("exp", [-103.9, 88.7], [-745.0, 709.7], f64::exp);
}

#[test]
fn ln_is_accurate() {
    check::<Ln>("ln", [1e-30, 1e30], [1e-300, 1e300], f64::ln);
    check::<Ln>("ln near one", [0.5, 2.0], [0.5, 2.0], f64::ln);
}

#[test]
fn tanh_is_accurate() {
    check::<Tanh>("tanh", [-12.0, 12.0], [-25.0, 25.0], f64::tanh);
    check::<Tanh>("tanh near zero", [-1.0, 1.0], [-1.0, 1.0], f64::tanh);
}

#[test]
fn sigmoid_is_accurate_in_its_left_tail() {
    check::<Sigmoid>("sigmoid", [-100.0, 30.0], [-740.0, 50.0], |x| {
        if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
    });
}

#[test]
fn sin_and_cos_are_accurate_up_to_the_limit() {
    for end in [1.0, 10.0, 1e3, 1e5] {
        check::<Sin>("sin", [-end, end], [-end, end], f64::sin);
        check::<Cos>("cos", [-end, end], [-end, end], f64::cos);
    }
}

#[test]
fn sin_and_cos_keep_their_digits_near_their_zeros() {
    // The nearest numbers to multiples of π/2: all that is left is what the reduction must not lose.
    for q in (1..63_000u32).step_by(7) {
        let x = q as f64 * std::f64::consts::FRAC_PI_2;
        for x in [x, x.next_up(), x.next_down()] {
            assert!(ulps(Sin::at::<f64, true>(x), x.sin()) <= 4.0, "sin {x}");
            assert!(ulps(Cos::at::<f64, true>(x), x.cos()) <= 4.0, "cos {x}");
            assert!(ulps(Sin::at::<f64, false>(x), x.sin()) <= 4.0, "sin {x}");
            let short = x as f32;
            assert!(ulps(Sin::at::<f32, true>(short), (short as f64).sin()) <= 4.0, "sin {short}");
            assert!(ulps(Cos::at::<f32, true>(short), (short as f64).cos()) <= 4.0, "cos {short}");
            assert!(ulps(Cos::at::<f32, false>(short), (short as f64).cos()) <= 4.0, "cos {short}");
        }
    }
}

#[test]
fn acos_is_accurate() {
    check::<Acos>("acos", [-1.0, 1.0], [-1.0, 1.0], libm::acos);
    // Where the angle is small and the argument has no digits left but the last.
    check::<Acos>("acos near one", [1.0 - 1e-6, 1.0], [1.0 - 1e-13, 1.0], libm::acos);
}

#[test]
fn erf_is_accurate() {
    check::<Erf>("erf", [-5.0, 5.0], [-7.0, 7.0], libm::erf);
    check::<Erf>("erf around the seam", [0.9, 1.1], [0.9, 1.1], libm::erf);
}

/// Every function at one argument, as its bits; all NaN alike.
fn edge<R: Real>(function: ElementaryFunction, x: f64) -> f64 {
    let mut y = [R::narrow(x)];
    apply(function, &mut y);
    y[0].wide()
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

#[test]
fn edge_cases_are_those_of_the_standard_library() {
    use ElementaryFunction::*;
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let table = [
        (Exp, [(0.0, 1.0), (-0.0, 1.0), (inf, inf), (-inf, 0.0), (nan, nan), (1e4, inf), (-1e4, 0.0)]),
        (Ln, [(0.0, -inf), (-0.0, -inf), (inf, inf), (-inf, nan), (nan, nan), (1.0, 0.0), (-1.0, nan)]),
        (Tanh, [(0.0, 0.0), (-0.0, -0.0), (inf, 1.0), (-inf, -1.0), (nan, nan), (1e4, 1.0), (-1e4, -1.0)]),
        (Sigmoid, [(0.0, 0.5), (-0.0, 0.5), (inf, 1.0), (-inf, 0.0), (nan, nan), (1e4, 1.0), (-1e4, 0.0)]),
        (Sin, [(0.0, 0.0), (-0.0, -0.0), (inf, nan), (-inf, nan), (nan, nan), (0.0, 0.0), (0.0, 0.0)]),
        (Cos, [(0.0, 1.0), (-0.0, 1.0), (inf, nan), (-inf, nan), (nan, nan), (0.0, 1.0), (0.0, 1.0)]),
        (Acos, [(1.0, 0.0), (1.5, nan), (inf, nan), (-inf, nan), (nan, nan), (-1.5, nan), (1.0, 0.0)]),
        (Erf, [(0.0, 0.0), (-0.0, -0.0), (inf, 1.0), (-inf, -1.0), (nan, nan), (1e4, 1.0), (-1e4, -1.0)]),
    ];
    for (function, cases) in table {
        for (x, expected) in cases {
            let found = [edge::<f32>(function, x), edge::<f64>(function, x)];
            assert!(found.iter().all(|f| same(*f, expected)), "{function:?}({x}) = {found:?}, not {expected}");
        }
    }
    assert_eq!(edge::<f64>(Acos, -1.0), std::f64::consts::PI);
    assert_eq!(edge::<f64>(Acos, 0.0), std::f64::consts::FRAC_PI_2);
    assert_eq!(edge::<f32>(Acos, -1.0) as f32, std::f32::consts::PI);
}

#[test]
fn subnormal_arguments_keep_their_value() {
    for x in [f64::from_bits(1), 1e-310, f64::MIN_POSITIVE] {
        assert!(ulps(edge::<f64>(ElementaryFunction::Ln, x), x.ln()) <= 1.0);
        assert_eq!(edge::<f64>(ElementaryFunction::Sin, x), x);
        assert_eq!(edge::<f64>(ElementaryFunction::Tanh, x), x);
        assert!(ulps(edge::<f64>(ElementaryFunction::Erf, x), libm::erf(x)) <= 1.0);
        assert_eq!(edge::<f64>(ElementaryFunction::Exp, x), 1.0);
    }
    let short = f32::from_bits(7);
    assert!(ulps(edge::<f32>(ElementaryFunction::Ln, short.wide()) as f32, (short as f64).ln()) <= 1.0);
    assert_eq!(edge::<f32>(ElementaryFunction::Tanh, short.wide()) as f32, short);
}

#[test]
fn large_angles_go_to_the_standard_library_without_touching_their_neighbours() {
    let x: Vec<f64> = (0..600).map(|i| if i == 300 { 1e22 } else { i as f64 }).collect();
    let (mut y, mut calm) = (vec![0.0; 600], vec![0.0; 600]);
    sin(&x, &mut y);
    sin(&(0..600).map(f64::from).collect::<Vec<_>>(), &mut calm);
    assert_eq!(y[300], 1e22f64.sin());
    calm[300] = y[300];
    assert_eq!(y, calm);
}

#[test]
fn a_value_does_not_depend_on_its_position() {
    let x: Vec<f32> = (0..3_000).map(|i| (i as f32 * 0.37).sin()).collect();
    for function in [
        ElementaryFunction::Exp,
        ElementaryFunction::Ln,
        ElementaryFunction::Tanh,
        ElementaryFunction::Sin,
        ElementaryFunction::Acos,
        ElementaryFunction::Erf,
    ] {
        let mut whole = x.clone();
        apply(function, &mut whole);
        let mut single = x.clone();
        single.chunks_mut(1).for_each(|v| apply(function, v));
        let bits = |v: &[f32]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&whole), bits(&single), "{function:?}");
        let mut copied = vec![0.0; x.len()];
        map(function, &x, &mut copied);
        assert_eq!(bits(&whole), bits(&copied), "{function:?}");
    }
}
