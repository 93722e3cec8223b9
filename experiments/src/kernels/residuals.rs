//! How far a sketched trace-NTK is from the exact one, entry by entry.

use crate::experiment::{Experiment, Needs};
use crate::explain::cifar::network;
use crate::options::Options;
use crate::report::{Drawing, Format, Report, Table};
use crate::{Fallible, row};
use mercer::data::{Preprocess, Source};
use mercer::net::Network;
use mercer::prelude::KernelFn;
use mercer::report::Figure;
use mercer::report::figure::{Axis, Panel, Series};
use ndarray::{Array2, ArrayD};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "sketch-residuals",
    group: "Kernels",
    title: "Residuals of a sketched trace-NTK",
    paper: "Engel et al. 2023, arXiv 2305.14585",
    claim: "The residuals between the trace-NTK and its random projection are small and their distribution falls exponentially \
        (figure 4a).",
    published: "as a figure only, for K = 10,240.",
    setting: "The ResNet-20 on test images of CIFAR-10, both kernels cosine-normalised; SJLT sketches with K features per output. The \
        residuals are those of all pairs of different images. A Johnson–Lindenstrauss sketch lets them fall as 1/√K; the last column is \
        √K times their standard deviation.",
    cost: 120,
    needs: &[Needs::Cifar10],
    options: &["samples", "k"],
    threads: 0,
    run,
};

/// Points of a curve.
const POINTS: usize = 200;

fn run(options: &Options) -> Fallible<Report> {
    let n = options.number("samples", 1000, 20)?;
    let sizes = options.list("k", &[256, 1024, 4096, 10_240], &[16, 64])?;
    let network = Network::from_onnx(network())?;
    let steps = Preprocess::new().scale(1.0 / 255.0).channels_first();
    let steps = steps.normalise(vec![0.485, 0.456, 0.406], vec![0.229, 0.224, 0.225]);
    let images = Source::new(options.set(Needs::Cifar10)?.join("images.npy"), None).open()?.with_preprocess(steps)?;
    let x: ArrayD<f32> = images.rows::<f32>(0..n)?;
    let exact = KernelFn::new("normalised(trace)", &network)?.gram(&x)?;
    let mut table = Table::new("")
        .column("K", Format::Plain)
        .column("mean", Format::Scientific(1))
        .column("standard deviation", Format::Fixed(5))
        .column("99.9 % below", Format::Fixed(5))
        .column("largest", Format::Fixed(5))
        .column("√K · deviation", Format::Fixed(3));
    let mut curves = Vec::new();
    for &k in &sizes {
        let kernel = format!("normalised(trace(sketch=sjlt:{k}))");
        let residuals = residuals(&exact, &KernelFn::new(&kernel[..], &network)?.gram(&x)?);
        let count = residuals.len() as f64;
        let mean = residuals.iter().sum::<f64>() / count;
        let deviation = (residuals.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / count).sqrt();
        let mut sizes: Vec<f64> = residuals.iter().map(|r| r.abs()).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        let below = |share: f64| sizes[((share * count) as usize).min(sizes.len() - 1)];
        table.push(row![k, mean, deviation, below(0.999), below(1.0), (k as f64).sqrt() * deviation]);
        curves.push(Series::line(format!("K = {k}"), survival(&sizes)));
    }
    let panel = Panel::lines("", Axis::linear("size of a residual"), Axis::log("share of larger ones"), curves);
    let drawing = Drawing {
        file: "sketch-residuals.svg",
        caption: "The share of residuals that are larger; a straight line falls exponentially.",
        figure: Figure::new("").panel(panel),
    };
    let figures = if options.quick { Vec::new() } else { vec![drawing] };
    Ok(Report { tables: vec![table], figures, ..Report::default() })
}

/// Of all pairs of different samples.
fn residuals(exact: &Array2<f32>, sketched: &Array2<f32>) -> Vec<f64> {
    let n = exact.nrows();
    let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
    pairs.map(|at| f64::from(sketched[at]) - f64::from(exact[at])).collect()
}

/// How many of the sorted numbers are larger, as a share; closely spaced where few are.
fn survival(sorted: &[f64]) -> Vec<(f64, f64)> {
    let n = sorted.len();
    let place = |point: usize| (n as f64).powf(1.0 - point as f64 / POINTS as f64).max(1.0);
    let mut counts: Vec<usize> = (0..=POINTS).map(|point| place(point) as usize).collect();
    counts.dedup();
    counts.into_iter().map(|count| (sorted[n - count], count as f64 / n as f64)).collect()
}
