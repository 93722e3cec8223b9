//! Networks of infinite width: against reference values, against each other, and at the edges of the arithmetic.

mod golden;
mod images;
mod lowering;
mod numbers;
mod reference;
mod refusals;

use mercer_kernel::infinite::{Limit, LimitActivation, LimitKind, LimitNet, Scales};
use mercer_kernel::{Kernel, Real};
use mercer_net::op::Function;

/// `(dense, activation)` for each deviation pair, then a linear output.
pub(crate) fn mlp(
    inputs: usize,
    depth: usize,
    hidden: Scales,
    activation: &LimitActivation,
    output: Scales,
) -> LimitNet {
    let mut net = LimitNet::new();
    let mut x = net.input(inputs);
    for layer in 1..=depth {
        let name = format!("layer{layer}");
        x = net.dense(&name, x, hidden).expect("a layer");
        x = net.activation(&name, x, activation.clone()).expect("an activation");
    }
    net.dense("output", x, output).expect("a layer");
    net
}

/// Both kernels between two sets of samples.
pub(crate) fn both<T: Real>(net: &LimitNet, x: (&[T], usize), y: (&[T], usize)) -> (Vec<T>, Vec<T>) {
    let limit = Limit::<T>::new(net.clone(), LimitKind::Ntk).expect("a kernel");
    let (a, b) = (limit.prepare(&[x.0], x.1).expect("prepares"), limit.prepare(&[y.0], y.1).expect("prepares"));
    let (mut nngp, mut ntk) = (vec![T::zero(); x.1 * y.1], vec![T::zero(); x.1 * y.1]);
    limit.both(&a, &b, &mut nngp, &mut ntk);
    (nngp, ntk)
}

/// Both kernels of samples with themselves.
pub(crate) fn grams<T: Real>(net: &LimitNet, x: &[T], n: usize) -> (Vec<T>, Vec<T>) {
    let limit = Limit::<T>::new(net.clone(), LimitKind::Ntk).expect("a kernel");
    let a = limit.prepare(&[x], n).expect("prepares");
    let (mut nngp, mut ntk) = (vec![T::zero(); n * n], vec![T::zero(); n * n]);
    limit.both(&a, &a, &mut nngp, &mut ntk);
    (nngp, ntk)
}

/// The largest relative error of any entry.
pub(crate) fn worst<T: Real>(found: &[T], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).map(|(a, b)| (a.wide() - b).abs() / b.abs()).fold(0.0, f64::max)
}

/// The relative error in Frobenius norm.
pub(crate) fn distance<T: Real>(found: &[T], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let difference: f64 = found.iter().zip(expected).map(|(a, b)| (a.wide() - b).powi(2)).sum();
    (difference / expected.iter().map(|b| b * b).sum::<f64>()).sqrt()
}

/// Normal numbers of a fixed stream.
pub(crate) fn normal(seed: u64, count: usize) -> Vec<f64> {
    // The sum of twelve uniform numbers of a Weyl sequence is normal enough for data.
    let uniform = |i: usize| ((i as f64 + 0.5 + seed as f64 * 7.3) * 0.754_877_666_246_693).fract();
    (0..count).map(|i| (0..12).map(|k| uniform(i * 12 + k)).sum::<f64>() - 6.0).collect()
}

pub(crate) fn activation_of(function: Function) -> LimitActivation {
    LimitActivation::from_function(function)
}
