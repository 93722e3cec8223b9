//! How finite networks approach their limit: the mean over networks by `O(1/width)`, a single one by `O(width^-½)`.
//!
//! `erf` instead of ReLU: of a positively homogeneous activation the diagonals have no bias at any width, because variances
//! of layers are then linear in those before. `cargo xtask convergence` measures both rates at larger widths.

use crate::{limit, mean, normal, shapes};
use mercer_kernel::infinite::{Of, Rule};
use mercer_net::Network;
use mercer_net::arch::{Activation, Cnn, Layer, Mlp};

/// Distances from the limit at one width: of the mean with its error, and of single networks.
struct Distance {
    mean: f64,
    error: f64,
    single: f64,
}

fn measure(network: &Network, of: Of, n_networks: usize, weight_std: f64) -> Distance {
    let size: usize = shapes(network).iter().flatten().product();
    let x = normal::<f64>("x", 2 * size);
    let rule = Rule::ntk(weight_std, 0.3);
    let (found, expected) = (mean(network, &rule, of, n_networks, (&x, 2)), limit(network, &rule, of, (&x, 2)));
    // One entry: entries of one network depend on each other.
    let (mean, error) = (found.mean()[0] / expected[0] - 1.0, found.standard_errors()[0] / expected[0]);
    Distance { mean, error, single: error * (n_networks as f64).sqrt() }
}

/// From a width to four times as much: the bias falls to a quarter, the deviation of single networks to a half.
///
/// The bias of the narrower networks must be seen, by eight standard errors. Terms of the next order, relative `O(1/width)`,
/// may make up a half of it.
fn fall(name: &str, of: Of, narrow: (&Network, usize), wide: (&Network, usize), weight_std: f64) {
    let (a, b) = (measure(narrow.0, of, narrow.1, weight_std), measure(wide.0, of, wide.1, weight_std));
    assert!(a.mean.abs() > 8.0 * a.error, "{name} {of:?}: bias {} ± {}", a.mean, a.error);
    let allowed = 0.5 * a.mean.abs() / 4.0 + 4.0 * b.error + a.error;
    assert!(
        (b.mean - a.mean / 4.0).abs() < allowed,
        "{name} {of:?}: biases {} ± {} and {} ± {}",
        a.mean,
        a.error,
        b.mean,
        b.error
    );
    let ratio = a.single / b.single;
    assert!((1.5..2.7).contains(&ratio), "{name} {of:?}: deviations {} and {}", a.single, b.single);
}

#[test]
fn dense() {
    // As many outputs as units: outputs are draws too, and their number must not decide how single networks deviate.
    let network = |width: usize| Mlp::new(4, &[width; 3], width).activation(Activation::Erf).build(0).unwrap();
    let (narrow, wide) = (network(8), network(32));
    for of in [Of::Nngp, Of::Ntk] {
        fall("dense", of, (&narrow, 3000), (&wide, 3000), 1.5);
    }
}

#[test]
fn convolutions() {
    let network = |width: usize| {
        let layers = [Layer::conv(width, 3), Layer::conv(width, 3), Layer::GlobalAveragePool];
        Cnn::new(&[2, 4, 4], &layers, width).activation(Activation::Erf).build(0).unwrap()
    };
    let (narrow, wide) = (network(6), network(24));
    for of in [Of::Nngp, Of::Ntk] {
        fall("conv", of, (&narrow, 3000), (&wide, 1500), 1.5);
    }
}
