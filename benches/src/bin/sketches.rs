//! `cargo xtask sketches`: error against time of all sketches, on the trace-NTK of a ResNet-20 over test images of CIFAR-10.
//!
//! The error is the relative Frobenius distance of the Gram matrix of the features from the exact one, its root mean square over
//! seeds; the time is that of the features, the gradients included, best of the seeds, on all threads.

use mercer_data::{Preprocess, Source};
use mercer_kernel::sketch::{Sketch, Spec, parse};
use mercer_kernel::{Block, Features, Kernel, Kind, Ntk};
use mercer_net::Network;
use std::error::Error;
use std::time::Instant;

/// Samples whose gradients are in memory together: 1.1 GB of them.
const BLOCK: usize = 100;

const METHODS: [&str; 8] = ["gaussian", "rademacher", "sjlt", "sjlt:2", "sjlt:4", "srht", "khatri-rao", "kronecker"];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |flag: &str| arguments.iter().position(|a| a == flag).and_then(|at| arguments.get(at + 1));
    let images = value("--images").ok_or("--images FILE is missing")?;
    let n: usize = value("--samples").map_or(Ok(500), |text| text.parse())?;
    let seeds: u64 = value("--seeds").map_or(Ok(3), |text| text.parse())?;
    let sizes = value("--k").map_or("1024,4096", String::as_str);
    let only = value("--only").map_or("", String::as_str);

    let network =
        Network::from_onnx(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/nets/cifar10_resnet20.onnx"))?;
    let steps = Preprocess::new().scale(1.0 / 255.0).channels_first();
    let steps = steps.normalise(vec![0.485, 0.456, 0.406], vec![0.229, 0.224, 0.225]);
    let data = Source::new(images, None).open()?.with_preprocess(steps)?;
    let shape = vec![data.sample_shape().to_vec()];
    let x: Vec<f32> = data.rows::<f32>(0..n)?.into_iter().collect();

    let start = Instant::now();
    let kernel = Ntk::<f32>::new(&network, &shape, Kind::Trace)?;
    let exact = gram(&kernel, &x, n)?;
    println!("exact trace-NTK of {n} images: {:.1} s\n", start.elapsed().as_secs_f64());
    println!("| K | sketch | seconds | ms per sample | relative error | against Gaussian |");
    println!("|---:|---|---:|---:|---:|---:|");
    for k in sizes.split(',') {
        let mut gaussian = None;
        for name in METHODS.iter().filter(|name| name.contains(only)) {
            let (first, rest) = name.split_once(':').unwrap_or((name, ""));
            let text = if rest.is_empty() { format!("{first}:{k}") } else { format!("{first}:{k}:{rest}") };
            let (method, k) = parse(&text)?;
            let (mut squares, mut seconds) = (0.0, f64::INFINITY);
            for seed in 0..seeds {
                let spec = Spec { seed, ..Spec::new(method, k, Kind::Trace) };
                let sketch = Sketch::<f32>::from_spec(&network, &shape, &spec)?;
                let (error, time) = measure(sketch, &x, n, &exact)?;
                (squares, seconds) = (squares + error * error, seconds.min(time));
            }
            let error = (squares / seeds as f64).sqrt();
            if *name == "gaussian" {
                gaussian = Some(error);
            }
            let ratio = gaussian.map_or("–".to_owned(), |base| format!("{:.2}", error / base));
            let each = 1e3 * seconds / n as f64;
            println!("| {k} | {name} | {seconds:.1} | {each:.2} | {error:.4} | {ratio} |");
        }
    }
    Ok(())
}

/// The Gram matrix, from blocks that are prepared again when they are needed.
fn gram(kernel: &Ntk<f32>, x: &[f32], n: usize) -> Result<Vec<f64>, Box<dyn Error>> {
    let size = x.len() / n;
    let starts: Vec<usize> = (0..n).step_by(BLOCK).collect();
    let prepare = |start: usize| -> Result<Block, Box<dyn Error>> {
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
fn measure(sketch: Sketch<f32>, x: &[f32], n: usize, exact: &[f64]) -> Result<(f64, f64), Box<dyn Error>> {
    let start = Instant::now();
    let features = Features(sketch);
    let block = features.prepare(&[x], n)?;
    let seconds = start.elapsed().as_secs_f64();
    let mut found = vec![0.0; n * n];
    features.contract(&block, &block, &mut found);
    let difference: f64 = found.iter().zip(exact).map(|(&a, b)| (f64::from(a) - b).powi(2)).sum();
    Ok(((difference / exact.iter().map(|b| b * b).sum::<f64>()).sqrt(), seconds))
}
