//! Nanoseconds per element of every elementary function, beside the same loop over the standard library (or libm).
//!
//!     cargo run --release -p mercer-linalg --example elementary_speed

use mercer_linalg::{
    Scalar,
    elementary::{ElementaryFunction, apply},
};
use std::hint::black_box;
use std::time::Instant;

/// Long enough for the vector loop to dominate, short enough for the first-level cache.
const LENGTH: usize = 2048;
const ROUNDS: usize = 2000;

/// The best of five timings, in nanoseconds per element.
fn time(mut body: impl FnMut()) -> f64 {
    let once = |body: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..ROUNDS).for_each(|_| body());
        start.elapsed().as_secs_f64() * 1e9 / (ROUNDS * LENGTH) as f64
    };
    (0..5).map(|_| once(&mut body)).fold(f64::INFINITY, f64::min)
}

fn compare<T: Scalar>(name: &str, function: ElementaryFunction, [low, high]: [f64; 2], reference: fn(T) -> T) {
    let x: Vec<T> = (0..LENGTH).map(|i| T::narrow(low + (high - low) * (i as f64 + 0.5) / LENGTH as f64)).collect();
    let mut y = x.clone();
    let ours = time(|| {
        y.copy_from_slice(black_box(&x));
        apply(function, black_box(&mut y));
    });
    let theirs = time(|| {
        y.copy_from_slice(black_box(&x));
        black_box(&mut y).iter_mut().for_each(|v| *v = reference(*v));
    });
    println!("{name:8} {}  {ours:6.2} ns  standard {theirs:6.2} ns  {:5.1}×", T::NAME, theirs / ours);
}

macro_rules! all {
    ($t:ident, $erf:path) => {
        compare::<$t>("exp", ElementaryFunction::Exp, [-20.0, 20.0], $t::exp);
        compare::<$t>("ln", ElementaryFunction::Ln, [1e-3, 50.0], $t::ln);
        compare::<$t>("tanh", ElementaryFunction::Tanh, [-5.0, 5.0], $t::tanh);
        compare::<$t>("sigmoid", ElementaryFunction::Sigmoid, [-20.0, 20.0], |x| 1.0 / (1.0 + (-x).exp()));
        compare::<$t>("sin", ElementaryFunction::Sin, [-50.0, 50.0], $t::sin);
        compare::<$t>("cos", ElementaryFunction::Cos, [-50.0, 50.0], $t::cos);
        compare::<$t>("acos", ElementaryFunction::Acos, [-1.0, 1.0], $t::acos);
        compare::<$t>("erf", ElementaryFunction::Erf, [-4.0, 4.0], $erf);
    };
}

fn main() {
    all!(f32, libm::erff);
    all!(f64, libm::erf);
}
