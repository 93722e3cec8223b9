//! MNIST through the kernel of random CNNs with max-pools (NeuralEF, section 4.2.1, table 1).

use crate::tools::{Fallible, Images, linear_probe};
use crate::{Options, Outcome};
use mercer_kernel::classic::{Classic, Expression};
use mercer_kernel::infinite::Rule;
use mercer_kernel::montecarlo::{Ensemble, RandomNetworks};
use mercer_kernel::{FeatureMap, Kernel};
use mercer_net::arch::{Cnn, Layer};
use mercer_net::progress::Silent;
use mercer_net::train::{Decay, Schedule};
use mercer_spectral::learnt::{Batches, FeatureRows, Learn, Learnt, Method, Settings, side_by_side};
use mercer_spectral::{Comparison, Eigenfunctions, Landmarks, Nystrom, Solver, Spectrum};
use ndarray::Array2;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

const FUNCTIONS: usize = 10;

/// Conv5-ReLU-MaxPool2-Conv5-ReLU-MaxPool2-Linear-ReLU-Linear, without padding.
fn cnn(widths: [usize; 3], outputs: usize, seed: u64) -> Fallible<mercer_net::Network> {
    let conv = |channels| Layer::Conv { channels, kernel: 5, stride: 1, padding: Some(0) };
    let layers = [conv(widths[0]), Layer::max_pool(2), conv(widths[1]), Layer::max_pool(2), Layer::dense(widths[2])];
    Ok(Cnn::new(&[1, 28, 28], &layers, outputs).build(seed)?)
}

/// Takes `--data-dir` (the four IDX files), `--samples`, `--test`, `--networks`, `--outputs`, `--steps`, `--batch`, `--extra`.
pub(crate) fn table(options: &Options) -> Outcome {
    let folder = PathBuf::from(options.value("--data-dir").ok_or("--data-dir: the folder of MNIST's IDX files")?);
    let train = Images::idx(&folder, "train", options.number("--samples", 6000)?)?;
    let test = Images::idx(&folder, "t10k", options.number("--test", 2000)?)?;
    let (networks, outputs) = (options.number("--networks", 200)?, options.number("--outputs", 16)?);
    let (steps, extra) = (options.number("--steps", 2000)?, options.number("--extra", 246)?);
    println!("{} training and {} test images of MNIST", train.samples(), test.samples());
    let start = Instant::now();
    // Weights of variance 2/fan-in, biases of variance 0.01: appendix B. All outputs of a network count.
    let random = cnn([16, 16, 16], outputs, 0)?;
    let ensemble = Ensemble::new(&random, &[vec![1, 28, 28]], &Rule::ntk(2f64.sqrt(), 0.1), options.seed)?;
    let map = RandomNetworks::<f32>::new(Arc::new(ensemble), networks)?;
    let of = |images: &Images| -> Fallible<Array2<f32>> {
        let numbers = images.data[0].read::<f32>()?;
        let mut features = Array2::<f32>::zeros((images.samples(), map.n_features()));
        let to = features.as_slice_mut().expect("a fresh array is contiguous");
        map.features(&[numbers.as_slice().ok_or("layout")?], images.samples(), to)?;
        Ok(features)
    };
    let features = of(&train)?;
    println!(
        "kernel: {networks} random CNNs of width 16 with {outputs} outputs each (the paper: 2000 with one), {:.0} s",
        start.elapsed().as_secs_f64()
    );
    let (truth, combinations) = Spectrum::of_features(features.view(), FUNCTIONS, Solver::Lanczos)?;
    let known = (truth.functions.view(), of(&test)?.dot(&combinations));
    let exact = linear_probe((known.0, &train.classes), (known.1.view(), &test.classes))?;
    let start = Instant::now();
    let mut kernel = FeatureRows::new(features, 1)?;
    let batch = options.number("--batch", 512)?;
    let mut batches = Batches::new(&train.data, &mut kernel, batch, options.seed)?;
    let schedule = Schedule { decay: Decay::Cosine { floor: 0.0 }, ..Schedule::constant(1e-3) };
    let settings = Settings::new(Method::NeuralEf).steps(steps).schedule(schedule).components(FUNCTIONS);
    let network = side_by_side(&[cnn([16, 32, 256], FUNCTIONS + extra, options.seed)?])?;
    let learnt: Learnt<f32> = Learn::new(settings).run(network, &mut batches)?;
    println!(
        "one CNN of widths 16-32-256 with {} outputs (the paper: ten CNNs of 32-64-128), {steps} steps of {batch} (20,000), {:.0} s",
        FUNCTIONS + extra,
        start.elapsed().as_secs_f64()
    );
    println!("\n| functions | logistic regression on test images | the paper |");
    println!("|---|---:|---:|");
    println!("| CNN-GP, exact, through all random networks | {:.2} % | |", 100.0 * exact);
    report("CNN-GP, NeuralEF objective, before the finish", &learnt.before[0].truncated(FUNCTIONS), &train, &test, "")?;
    report("CNN-GP, after the finish", &learnt.after[0], &train, &test, "84.98 %")?;
    for (name, text, paper) in [
        ("Nyström, polynomial", "polynomial(scale=0.001, bias=1, degree=10)", "78.00 %"),
        ("Nyström, RBF", "rbf(lengthscale=10)", "77.55 %"),
    ] {
        let kernel: Arc<dyn Kernel<f32>> = Arc::new(Classic::new(&text.parse::<Expression>()?, 784)?);
        let method = Nystrom::new(Landmarks::Uniform(train.samples().min(1000)));
        let fit = method.fit(kernel, &train.data, FUNCTIONS, &Silent::default())?;
        report(name, &fit.functions, &train, &test, paper)?;
    }
    let psi = learnt.after[0].eval_data(&train.data, &Silent::default())?;
    let found = Comparison::new(learnt.after[0].values().view(), psi.view(), &truth)?;
    let list = |numbers: &[f64]| numbers.iter().map(|x| format!("{x:.3}")).collect::<Vec<_>>().join(" ");
    println!("\nbeside the exact functions of the matrix: cosines {}", list(&found.cosines));
    println!("values: relative errors {}", list(&found.value_errors));
    Ok(())
}

fn report(name: &str, functions: &Eigenfunctions<f32>, train: &Images, test: &Images, paper: &str) -> Outcome {
    let eval = |images: &Images| functions.eval_data(&images.data, &Silent::default());
    let (one, two) = (eval(train)?, eval(test)?);
    let accuracy = linear_probe((one.view(), &train.classes), (two.view(), &test.classes))?;
    println!("| {name} | {:.2} % | {paper} |", 100.0 * accuracy);
    Ok(())
}
