//! Distances from the limit against the width: of the mean over random networks, and of single ones.
//!
//! The mean over networks differs from the limit by a bias `O(1/width)` and by its sampling error; single networks
//! deviate by `O(width^-½)`. Slopes are fitted to all widths whose bias is larger than three standard errors.

use crate::{Outcome, option};
use mercer_data::random::stream;
use mercer_kernel::MonteCarlo;
use mercer_kernel::infinite::{Limit, LimitKind, Rule};
use mercer_net::Network;
use mercer_net::arch::{Activation, Cnn, CnnLayer, Mlp};
use rand::RngExt;
use rand_distr::StandardNormal;

type Failure = Box<dyn std::error::Error>;

/// A network of some width.
type Build = fn(usize) -> mercer_net::Result<Network>;

/// What is measured: a kernel of networks whose width doubles some times.
struct Case {
    name: &'static str,
    build: Build,
    of: LimitKind,
    widths: &'static [usize],
    /// Of all networks, a part.
    share: usize,
    weight_std: f64,
    /// 0 for `κ(x, x)`, 1 for `κ(x, x')`.
    entry: usize,
    /// Whether the bias is large enough to be seen.
    biased: bool,
}

/// Sines at small widths, with the variances and entries at which the bias is seen best: ReLU has none on the diagonal. Outputs grow
/// with the width, so that they, which are draws too, do not decide how single networks deviate.
const CASES: [Case; 5] = [
    Case {
        name: "dense, sin, κ(x, x)",
        build: sines,
        of: LimitKind::Nngp,
        widths: &[4, 8, 16, 32],
        share: 1,
        weight_std: 1.2,
        entry: 0,
        biased: true,
    },
    Case {
        name: "dense, sin, κ(x, x')",
        build: sines,
        of: LimitKind::Ntk,
        widths: &[4, 8, 16],
        share: 4,
        weight_std: 2.0,
        entry: 1,
        biased: true,
    },
    Case {
        name: "dense, erf, κ(x, x')",
        build: dense,
        of: LimitKind::Nngp,
        widths: &[16, 32, 64, 128, 256],
        share: 20,
        weight_std: 1.5,
        entry: 1,
        biased: false,
    },
    Case {
        name: "dense, erf, κ(x, x')",
        build: dense,
        of: LimitKind::Ntk,
        widths: &[16, 32, 64, 128, 256],
        share: 20,
        weight_std: 1.5,
        entry: 1,
        biased: false,
    },
    Case {
        name: "convolutions, global average pool, erf",
        build: images,
        of: LimitKind::Nngp,
        widths: &[8, 16, 32, 64],
        share: 20,
        weight_std: 1.5,
        entry: 1,
        biased: false,
    },
];

fn sines(width: usize) -> mercer_net::Result<Network> {
    Mlp::new(4, &[width; 3], 4 * width).activation(Activation::Sin).build(0)
}

fn dense(width: usize) -> mercer_net::Result<Network> {
    Mlp::new(8, &[width; 3], width).activation(Activation::Erf).build(0)
}

fn images(width: usize) -> mercer_net::Result<Network> {
    let layers = [CnnLayer::conv(width, 3), CnnLayer::conv(width, 3), CnnLayer::GlobalAveragePool];
    Cnn::new(&[3, 6, 6], &layers, width).activation(Activation::Erf).build(0)
}

pub(super) fn run(arguments: &[String]) -> Outcome {
    let all: usize = option(arguments, "--networks").map_or(Ok(20_000), str::parse)?;
    let mut good = true;
    for case in CASES {
        let networks = (all / case.share).max(2);
        println!("{}: {:?}, {networks} networks; relative to the largest it can be", case.name, case.of);
        println!("| width | bias of the mean | ± | deviation of one network |");
        println!("|---:|---:|---:|---:|");
        let (mut biases, mut singles) = (Vec::new(), Vec::new());
        for &width in case.widths {
            let (bias, error) = measure(&(case.build)(width)?, &case, networks)?;
            let single = error * (networks as f64).sqrt();
            println!("| {width} | {bias:+.5} | {error:.5} | {single:.4} |");
            if bias.abs() > 3.0 * error {
                biases.push((width as f64, bias.abs()));
            }
            singles.push((width as f64, single));
        }
        let one = slope(&singles);
        if case.biased {
            let mean = slope(&biases);
            println!("bias ~ width^{mean:.2} over {} widths", biases.len());
            good &= biases.len() >= 3 && (mean + 1.0).abs() < 0.3;
        } else {
            good &= (one + 0.5).abs() < 0.1;
        }
        println!("one network ~ width^{one:.2}\n");
    }
    Ok(good)
}

/// An entry over random networks relative to the limit: the difference and its standard error.
fn measure(network: &Network, case: &Case, n_networks: usize) -> Result<(f64, f64), Failure> {
    let shapes = vec![network.inputs()[0].declared_sample()?];
    let mut random = stream(0, "rates");
    let count = 2 * shapes[0].iter().product::<usize>();
    let x: Vec<f32> = (0..count).map(|_| random.sample::<f64, _>(StandardNormal) as f32).collect();
    let rule = Rule::ntk(case.weight_std, 0.1);
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let limit = Limit::<f64>::of_network(network, &shapes, &rule, case.of)?.gram(&[&wide], 2)?;
    let kernel = MonteCarlo::<f32>::new(network, &shapes, &rule, case.of, n_networks, 0)?;
    let mut moments = kernel.start(2);
    kernel.extend(&mut moments, 0..n_networks, &[&x], 2)?;
    let largest = (limit[0] * limit[3 * case.entry]).sqrt();
    let error = f64::from(moments.standard_errors()[case.entry]);
    Ok(((f64::from(moments.mean()[case.entry]) - limit[case.entry]) / largest, error / largest))
}

/// The slope of a line through logarithms.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(&|p| p.0.ln()), mean(&|p| p.1.ln()));
    mean(&|p| (p.0.ln() - x) * (p.1.ln() - y)) / mean(&|p| (p.0.ln() - x).powi(2))
}
