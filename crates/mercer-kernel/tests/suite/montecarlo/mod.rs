//! Means over random networks: against networks one by one, against closed forms, and against limits.

mod distributions;
mod means;
mod widths;

use mercer_data::random::stream;
use mercer_kernel::infinite::{Limit, LimitKind, Rule};
use mercer_kernel::montecarlo::Moments;
use mercer_kernel::{MonteCarlo, Real};
use mercer_net::Network;
use rand::RngExt;

/// Normal numbers.
pub(crate) fn normal<T: Real>(name: &str, count: usize) -> Vec<T> {
    let mut random = stream(7, name);
    (0..count).map(|_| T::narrow(f64::from(random.sample::<f64, _>(rand_distr::StandardNormal) as f32))).collect()
}

/// The shapes of a network's inputs.
pub(crate) fn shapes(network: &Network) -> Vec<Vec<usize>> {
    network.inputs().iter().map(|input| input.declared_sample().expect("a shape")).collect()
}

/// The mean over random networks.
pub(crate) fn mean<T: Real>(
    network: &Network,
    rule: &Rule,
    of: LimitKind,
    n_networks: usize,
    (data, samples): (&[T], usize),
) -> Moments<T> {
    let kernel = MonteCarlo::new(network, &shapes(network), rule, of, n_networks, 3).expect("a kernel");
    let mut moments = kernel.start(samples);
    kernel.extend(&mut moments, 0..n_networks, &[data], samples).expect("networks run");
    moments
}

/// The limit of infinite width.
pub(crate) fn limit<T: Real>(network: &Network, rule: &Rule, of: LimitKind, (data, samples): (&[T], usize)) -> Vec<T> {
    Limit::of_network(network, &shapes(network), rule, of).expect("a limit").gram(&[data], samples).expect("runs")
}
