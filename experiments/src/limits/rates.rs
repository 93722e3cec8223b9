//! Distances from the limit against the width: of the mean over random networks, and of single ones.
//!
//! The mean over networks differs from the limit by a bias `O(1/width)` and by its sampling error; single networks
//! deviate by `O(width^-½)`. Slopes are fitted to all widths whose bias is larger than three standard errors.

use crate::experiment::Experiment;
use crate::options::Options;
use crate::report::{Format, Report, Table};
use crate::{Fallible, row};
use mercer::data::random::stream;
use mercer::kernel::MonteCarlo;
use mercer::kernel::infinite::{Limit, LimitKind, Rule};
use mercer::net::Network;
use mercer::net::arch::{Activation, Cnn, CnnLayer, Mlp};
use rand::RngExt;
use rand_distr::StandardNormal;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "rates",
    group: "Limits",
    title: "Rates of convergence to the limit",
    paper: "",
    claim: "The mean kernel over random networks differs from the limit by O(1/width), single networks by O(width^-½).",
    published: "",
    setting: "Dense networks with sines and erf, convolutions with a global average pool. Slopes are fitted to the widths whose bias is \
        larger than three standard errors.",
    cost: 600,
    needs: &[],
    options: &["networks"],
    threads: 0,
    run,
};

/// A network of some width.
type Build = fn(usize) -> mercer::net::Result<Network>;

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

fn sines(width: usize) -> mercer::net::Result<Network> {
    Mlp::new(4, &[width; 3], 4 * width).activation(Activation::Sin).build(0)
}

fn dense(width: usize) -> mercer::net::Result<Network> {
    Mlp::new(8, &[width; 3], width).activation(Activation::Erf).build(0)
}

fn images(width: usize) -> mercer::net::Result<Network> {
    let layers = [CnnLayer::conv(width, 3), CnnLayer::conv(width, 3), CnnLayer::GlobalAveragePool];
    Cnn::new(&[3, 6, 6], &layers, width).activation(Activation::Erf).build(0)
}

fn run(options: &Options) -> Fallible<Report> {
    let all = options.number("networks", 20_000, 200)?;
    let mut report = Report::default();
    let mut holds = true;
    for case in CASES {
        let networks = (all / case.share).max(2);
        let mut table = Table::new(format!(
            "{}: {:?}, {networks} networks; relative to the largest it can be:",
            case.name, case.of
        ))
        .column("width", Format::Plain)
        .column("bias of the mean", Format::Fixed(5))
        .column("its standard error", Format::Fixed(5))
        .column("deviation of one network", Format::Fixed(4));
        let (mut biases, mut singles) = (Vec::new(), Vec::new());
        let widths = if options.quick { &case.widths[..2] } else { case.widths };
        for &width in widths {
            let (bias, error) = measure(&(case.build)(width)?, &case, networks, options.seed)?;
            let single = error * (networks as f64).sqrt();
            table.push(row![width, bias, error, single]);
            if bias.abs() > 3.0 * error {
                biases.push((width as f64, bias.abs()));
            }
            singles.push((width as f64, single));
        }
        report.tables.push(table);
        let one = slope(&singles);
        let mut note = format!("{}, {:?}: the deviation of one network falls as width^{one:.2}", case.name, case.of);
        if case.biased {
            let mean = slope(&biases);
            note += &format!(", the bias of the mean as width^{mean:.2} over {} widths", biases.len());
            holds &= biases.len() >= 3 && (mean + 1.0).abs() < 0.3;
        } else {
            holds &= (one + 0.5).abs() < 0.1;
        }
        report.notes.push(note + ".");
    }
    Ok(Report { holds: Some(holds), ..report })
}

/// An entry over random networks relative to the limit: the difference and its standard error.
fn measure(network: &Network, case: &Case, n_networks: usize, seed: u64) -> Fallible<(f64, f64)> {
    let shapes = vec![network.inputs()[0].declared_sample()?];
    let mut random = stream(0, "rates");
    let count = 2 * shapes[0].iter().product::<usize>();
    let x: Vec<f32> = (0..count).map(|_| random.sample::<f64, _>(StandardNormal) as f32).collect();
    let rule = Rule::ntk(case.weight_std, 0.1);
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let limit = Limit::<f64>::of_network(network, &shapes, &rule, case.of)?.gram(&[&wide], 2)?;
    let kernel = MonteCarlo::<f32>::new(network, &shapes, &rule, case.of, n_networks, seed)?;
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
