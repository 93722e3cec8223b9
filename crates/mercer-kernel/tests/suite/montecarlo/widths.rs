//! How finite networks approach their limit: the mean over networks by `O(1/width)`, a single one by `O(width^-½)`.
//!
//! Sines instead of ReLU: of a positively homogeneous activation the diagonals have no bias at any width, because variances of
//! layers are then linear in those before. `cargo xtask reproduce rates` measures both rates at larger widths.

use super::{limit, mean, normal, shapes};
use mercer_kernel::infinite::{LimitKind, Rule};
use mercer_net::Network;
use mercer_net::arch::{Activation, Cnn, CnnLayer, Mlp};

/// The difference of an entry's mean from the limit, its standard error, and the deviation of single networks; all relative to the
/// largest that the entry can be. One entry, because entries of one network depend on each other.
fn measure(network: &Network, of: LimitKind, n_networks: usize, weight_std: f64, entry: usize) -> [f64; 3] {
    let size: usize = shapes(network).iter().flatten().product();
    let x = normal::<f64>("x", 2 * size);
    let rule = Rule::ntk(weight_std, 0.1);
    let (found, expected) = (mean(network, &rule, of, n_networks, (&x, 2)), limit(network, &rule, of, (&x, 2)));
    let largest = (expected[entry / 2 * 3] * expected[entry % 2 * 3]).sqrt();
    let (bias, error) = ((found.mean()[entry] - expected[entry]) / largest, found.standard_errors()[entry] / largest);
    [bias, error, error * (n_networks as f64).sqrt()]
}

fn dense_network(width: usize, outputs: usize) -> Network {
    Mlp::new(4, &[width; 3], outputs).activation(Activation::Sin).build(0).unwrap()
}

/// From width 4 to 16 the bias falls to a quarter. The entries and variances are those where it is seen best: by eight standard
/// errors at width 4. Terms of the next order, relative `O(1/width)`, may make up three tenths of it at width 16.
#[test]
fn means_of_dense_networks() {
    for (of, networks, weight_std, entry) in [(LimitKind::Nngp, 20_000, 1.2, 0), (LimitKind::Ntk, 5000, 2.0, 1)] {
        let [bias, error, _] = measure(&dense_network(4, 16), of, networks, weight_std, entry);
        let [smaller, smaller_error, _] = measure(&dense_network(16, 64), of, networks, weight_std, entry);
        assert!(bias.abs() > 8.0 * error, "{of:?}: {bias} ± {error}");
        let allowed = 0.3 * bias.abs() / 4.0 + 3.0 * smaller_error + 0.75 * error;
        let text = format!("{of:?}: {bias} ± {error} and {smaller} ± {smaller_error}");
        assert!((smaller - bias / 4.0).abs() < allowed, "{text}");
    }
}

/// From width 64 to 256 the deviation of single networks falls to a half. Of 300 networks it is known to a tenth or so. The
/// outputs of the NNGP grow with the width: they are draws too, and their number must not decide.
#[test]
fn single_dense_networks() {
    for (of, outputs) in [(LimitKind::Nngp, [64, 256]), (LimitKind::Ntk, [1, 1])] {
        let [.., single] = measure(&dense_network(64, outputs[0]), of, 300, 1.2, 0);
        let [.., less] = measure(&dense_network(256, outputs[1]), of, 300, 1.2, 0);
        assert!((1.5..2.7).contains(&(single / less)), "{of:?}: deviations {single} and {less}");
    }
}

/// Images that are pooled: the bias is below the sampling error even here, the deviations fall as they should.
#[test]
fn convolutions() {
    let network = |width: usize| {
        let layers = [CnnLayer::conv(width, 3), CnnLayer::conv(width, 3), CnnLayer::GlobalAveragePool];
        Cnn::new(&[2, 3, 3], &layers, 4 * width).activation(Activation::Sin).build(0).unwrap()
    };
    for (of, networks, wide, range) in [(LimitKind::Nngp, 5000, 16, 1.6..2.5), (LimitKind::Ntk, 1500, 8, 1.15..1.75)] {
        let [bias, error, single] = measure(&network(4), of, networks, 1.5, 0);
        let [smaller, smaller_error, less] = measure(&network(wide), of, networks, 1.5, 0);
        // Four standard errors, and a tenth per unit of width.
        let text = format!("{of:?}: {bias} ± {error} and {smaller} ± {smaller_error}");
        assert!(bias.abs() < 4.0 * error + 0.1 / 4.0, "{text}");
        assert!(smaller.abs() < 4.0 * smaller_error + 0.1 / wide as f64, "{text}");
        assert!(range.contains(&(single / less)), "{of:?}: deviations {single} and {less}");
    }
}
