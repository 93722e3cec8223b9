//! Distances from the limit against the width: of the mean over random networks, and of single ones.
//!
//! Widths double. The mean over networks differs from the limit by a bias `O(1/width)` and by its sampling error; single networks
//! deviate by `O(width^-½)`. Slopes are fitted to all widths whose bias is larger than three standard errors.

use crate::{Outcome, option};
use mercer_data::random::stream;
use mercer_kernel::MonteCarlo;
use mercer_kernel::infinite::{Limit, Of, Rule};
use mercer_net::Network;
use mercer_net::arch::{Activation, Cnn, Layer, Mlp};
use rand::RngExt;
use rand_distr::StandardNormal;

type Failure = Box<dyn std::error::Error>;

/// A network of some width.
type Build = fn(usize) -> mercer_net::Result<Network>;

/// Networks with their narrowest width, and how often it doubles. As many outputs as units, so that outputs, which are draws
/// too, do not decide how single networks deviate.
const CASES: [(&str, Build, usize, u32); 3] = [
    ("dense, 3 hidden layers, erf", |width| Mlp::new(8, &[width; 3], width).activation(Activation::Erf).build(0), 8, 5),
    ("dense, 3 hidden layers, relu", |width| Mlp::new(8, &[width; 3], width).build(0), 8, 5),
    (
        "2 convolutions, global average pool, erf",
        |width| {
            let layers = [Layer::conv(width, 3), Layer::conv(width, 3), Layer::GlobalAveragePool];
            Cnn::new(&[3, 6, 6], &layers, width).activation(Activation::Erf).build(0)
        },
        8,
        3,
    ),
];

pub(super) fn run(arguments: &[String]) -> Outcome {
    let networks: usize = option(arguments, "--networks").map_or(Ok(4000), str::parse)?;
    let mut good = true;
    for (name, build, first, doublings) in CASES {
        for of in [Of::Nngp, Of::Ntk] {
            println!("{name}: {of:?}, {networks} networks; κ(x, x') of two samples, relative to the largest it can be");
            println!("| width | bias of the mean | ± | deviation of one network |");
            println!("|---:|---:|---:|---:|");
            let (mut biases, mut singles) = (Vec::new(), Vec::new());
            for doubling in 0..=doublings {
                let width = first << doubling;
                let (bias, error) = measure(&build(width)?, of, networks)?;
                let single = error * (networks as f64).sqrt();
                println!("| {width} | {bias:+.5} | {error:.5} | {single:.4} |");
                if bias.abs() > 3.0 * error {
                    biases.push((width as f64, bias.abs()));
                }
                singles.push((width as f64, single));
            }
            let (mean, one) = (slope(&biases), slope(&singles));
            println!("bias ~ width^{mean:.2} over {} widths, one network ~ width^{one:.2}\n", biases.len());
            // Two widths that are seen make a slope; terms of higher order bend it.
            good &= (one + 0.5).abs() < 0.15 && (biases.len() < 3 || (mean + 1.0).abs() < 0.35);
        }
    }
    Ok(good)
}

/// `κ(x, x')` over random networks relative to the limit: the difference and its standard error.
fn measure(network: &Network, of: Of, n_networks: usize) -> Result<(f64, f64), Failure> {
    let shapes = vec![network.inputs()[0].declared_sample()?];
    let mut random = stream(0, "rates");
    let count = 2 * shapes[0].iter().product::<usize>();
    let x: Vec<f32> = (0..count).map(|_| random.sample::<f64, _>(StandardNormal) as f32).collect();
    let rule = Rule::ntk(1.5, 0.3);
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let limit = Limit::<f64>::of_network(network, &shapes, &rule, of)?.gram(&[&wide], 2)?;
    let kernel = MonteCarlo::<f32>::new(network, &shapes, &rule, of, n_networks, 0)?;
    let mut moments = kernel.start(2);
    kernel.extend(&mut moments, 0..n_networks, &[&x], 2)?;
    let largest = (limit[0] * limit[3]).sqrt();
    let error = f64::from(moments.standard_errors()[1]);
    Ok(((f64::from(moments.mean()[1]) - limit[1]) / largest, error / largest))
}

/// The slope of a line through logarithms.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(&|p| p.0.ln()), mean(&|p| p.1.ln()));
    mean(&|p| (p.0.ln() - x) * (p.1.ln() - y)) / mean(&|p| (p.0.ln() - x).powi(2))
}
