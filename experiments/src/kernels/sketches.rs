//! Error against time of all sketches, on the trace-NTK of a ResNet-20 over test images of CIFAR-10.
//!
//! The error is the relative Frobenius distance of the Gram matrix of the features from the exact one, its root mean square over
//! seeds; the time is that of the features, the gradients included, best of the seeds, on all threads.

use crate::experiment::{Experiment, Needs};
use crate::options::Options;
use crate::record::home;
use crate::report::{Format, Report, Table};
use crate::{Fallible, row};
use mercer::data::{Preprocess, Source};
use mercer::kernel::sketch::{Sketch, Spec, parse};
use mercer::kernel::{Block, Features, Kernel, Ntk, NtkKind};
use mercer::net::Network;
use std::time::Instant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "sketches",
    group: "Kernels",
    title: "Sketches of a tangent kernel",
    paper: "",
    claim: "Sparse and structured sketches of the trace-NTK of a ResNet-20 err like a Gaussian one, and cost little beside the gradients.",
    published: "",
    setting: "500 test images of CIFAR-10. The error is the relative Frobenius distance of the Gram matrix of the features from the exact \
        one, its root mean square over three seeds; the time is that of the features, gradients included, best of the seeds.",
    cost: 600,
    needs: &[Needs::Cifar10],
    options: &["samples", "seeds", "k", "only"],
    threads: 0,
    run,
};

/// Samples whose gradients are in memory together: 1.1 GB of them.
const BLOCK: usize = 100;

const METHODS: [&str; 8] = ["gaussian", "rademacher", "sjlt", "sjlt:2", "sjlt:4", "srht", "khatri-rao", "kronecker"];

fn run(options: &Options) -> Fallible<Report> {
    let (n, seeds) = (options.number("samples", 500, 20)?, options.number("seeds", 3, 1)?);
    let sizes = options.list("k", &[1024, 4096], &[64])?;
    let network = Network::from_onnx(home().join("../tests/golden/nets/cifar10_resnet20.onnx"))?;
    let steps = Preprocess::new().scale(1.0 / 255.0).channels_first();
    let steps = steps.normalise(vec![0.485, 0.456, 0.406], vec![0.229, 0.224, 0.225]);
    let data = Source::new(options.set(Needs::Cifar10)?.join("images.npy"), None).open()?.with_preprocess(steps)?;
    let shape = vec![data.sample_shape().to_vec()];
    let x: Vec<f32> = data.rows::<f32>(0..n)?.into_iter().collect();
    let start = Instant::now();
    let kernel = Ntk::<f32>::new(&network, &shape, NtkKind::Trace)?;
    let exact = gram(&kernel, &x, n)?;
    let note = format!("The exact trace-NTK of the {n} images took {:.1} s.", start.elapsed().as_secs_f64());
    let mut table = Table::new("")
        .column("K", Format::Plain)
        .column("sketch", Format::Plain)
        .column("seconds", Format::Fixed(1))
        .column("ms per sample", Format::Fixed(2))
        .column("relative error", Format::Fixed(4))
        .column("against Gaussian", Format::Fixed(2));
    for size in sizes {
        let mut gaussian = None;
        for name in METHODS.into_iter().filter(|name| options.wants(name)) {
            let (first, rest) = name.split_once(':').unwrap_or((name, ""));
            let text = if rest.is_empty() { format!("{first}:{size}") } else { format!("{first}:{size}:{rest}") };
            let (method, k) = parse(&text)?;
            let (mut squares, mut seconds) = (0.0, f64::INFINITY);
            for seed in 0..seeds as u64 {
                let spec = Spec { seed: options.seed * 1000 + seed, ..Spec::new(method, k, NtkKind::Trace) };
                let sketch = Sketch::<f32>::from_spec(&network, &shape, &spec)?;
                let (error, time) = measure(sketch, &x, n, &exact)?;
                (squares, seconds) = (squares + error * error, seconds.min(time));
            }
            let error = (squares / seeds as f64).sqrt();
            if name == "gaussian" {
                gaussian = Some(error);
            }
            table.push(row![size, name, seconds, 1e3 * seconds / n as f64, error, gaussian.map(|base| error / base)]);
        }
    }
    Ok(Report { tables: vec![table], notes: vec![note], ..Report::default() })
}

/// The Gram matrix, from blocks that are prepared again when they are needed.
fn gram(kernel: &Ntk<f32>, x: &[f32], n: usize) -> Fallible<Vec<f64>> {
    let size = x.len() / n;
    let starts: Vec<usize> = (0..n).step_by(BLOCK).collect();
    let prepare = |start: usize| -> Fallible<Block> {
        let end = (start + BLOCK).min(n);
        Ok(kernel.prepare(&[&x[start * size..end * size]], end - start)?)
    };
    let mut gram = vec![0.0; n * n];
    for (at, &top) in starts.iter().enumerate() {
        let a = prepare(top)?;
        for &left in &starts[at..] {
            let other = if left == top { None } else { Some(prepare(left)?) };
            let b = other.as_ref().unwrap_or(&a);
            let mut tile = vec![0.0; a.samples() * b.samples()];
            kernel.contract(&a, b, &mut tile);
            for (index, &entry) in tile.iter().enumerate() {
                let (row, column) = (top + index / b.samples(), left + index % b.samples());
                gram[row * n + column] = f64::from(entry);
                gram[column * n + row] = f64::from(entry);
            }
        }
    }
    Ok(gram)
}

/// The relative error of a sketch, and the seconds its features took.
fn measure(sketch: Sketch<f32>, x: &[f32], n: usize, exact: &[f64]) -> Fallible<(f64, f64)> {
    let start = Instant::now();
    let features = Features(sketch);
    let block = features.prepare(&[x], n)?;
    let seconds = start.elapsed().as_secs_f64();
    let mut found = vec![0.0; n * n];
    features.contract(&block, &block, &mut found);
    let difference: f64 = found.iter().zip(exact).map(|(&a, b)| (f64::from(a) - b).powi(2)).sum();
    Ok(((difference / exact.iter().map(|b| b * b).sum::<f64>()).sqrt(), seconds))
}
