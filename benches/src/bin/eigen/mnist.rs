//! MNIST through the kernels of random CNNs with max-pools (NeuralEF, section 4.2.1, table 1).

use crate::tools::{Fallible, Images, linear_probe, sgd_probe};
use crate::{Options, Outcome};
use mercer_data::{Dataset, shuffled};
use mercer_kernel::classic::{Classic, Expression};
use mercer_kernel::infinite::Rule;
use mercer_kernel::montecarlo::{Ensemble, RandomNetworks};
use mercer_kernel::{FeatureMap, Kernel};
use mercer_net::arch::{Cnn, CnnLayer};
use mercer_net::train::{Decay, Schedule};
use mercer_run::Context;
use mercer_spectral::learnt::{Batches, FeatureRows, Learn, LearningMethod, LearningSettings, Learnt, side_by_side};
use mercer_spectral::{Comparison, Eigenfunctions, Solver, Spectrum, exact};
use ndarray::{Array2, s};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

const FUNCTIONS: usize = 10;

/// The first test images, by which the second kernel was chosen: the accuracy on the others is said, too.
const CHOSEN_BY: usize = 2000;

/// A random CNN without padding: Conv5-ReLU-MaxPool2-Conv5-ReLU-MaxPool, dense layers, and linear outputs.
struct Prior {
    name: &'static str,
    paper: &'static str,
    pool: usize,
    dense: bool,
}

const PRIORS: [Prior; 2] = [
    Prior { name: "the paper's CNN-GP", paper: "84.98 %", pool: 2, dense: true },
    Prior { name: "CNN-GP with a second pool of 4 and no dense layer", paper: "", pool: 4, dense: false },
];

impl Prior {
    /// With widths of the convolutions, and of a dense layer if there is one.
    fn network(
        &self,
        widths: [usize; 2],
        dense: Option<usize>,
        outputs: usize,
        seed: u64,
    ) -> Fallible<mercer_net::Network> {
        let conv = |channels| CnnLayer::Conv { channels, kernel: 5, stride: 1, padding: Some(0) };
        let mut layers = vec![conv(widths[0]), CnnLayer::max_pool(2), conv(widths[1]), CnnLayer::max_pool(self.pool)];
        layers.extend(dense.map(CnnLayer::dense));
        Ok(Cnn::new(&[1, 28, 28], &layers, outputs).build(seed)?)
    }
}

/// Takes `--data-dir` (the four IDX files), `--samples`, `--test`, `--networks`, `--outputs`, `--steps`, `--batch`, `--extra`, and
/// `--only classic` for the classic kernels alone, `--all` training images of which are projected.
pub(crate) fn table(options: &Options) -> Outcome {
    let folder = PathBuf::from(options.value("--data-dir").ok_or("--data-dir: the folder of MNIST's IDX files")?);
    let samples = options.number("--samples", 6000)?;
    let test = Images::idx(&folder, "t10k", 0..options.number("--test", 10_000)?)?;
    println!("{} test images of MNIST\n", test.samples());
    println!("| logistic regression on | all test images | without the first {CHOSEN_BY} | the paper |");
    println!("|---|---:|---:|---:|");
    let only = options.value("--only");
    if only.is_none_or(|rows| rows == "classic") {
        let train = Images::idx(&folder, "train", 0..options.number("--all", 60_000)?)?;
        classic(&train.centred()?, &test.centred()?, samples, options.seed)?;
    }
    if only.is_some_and(|rows| rows == "classic") {
        return Ok(());
    }
    let train = Images::idx(&folder, "train", 0..samples)?;
    let (train, test) = (train.standardised()?, test.standardised()?);
    PRIORS.iter().try_for_each(|prior| random_networks(prior, &train, &test, options))
}

/// The rows of the classic kernels, as in the paper's code: pixels from -1 to 1, landmarks that are 6000 random training images, all of
/// the training images projected, and a classifier by stochastic gradient descent, one class against the others.
fn classic(train: &Images, test: &Images, landmarks: usize, seed: u64) -> Outcome {
    let chosen = &shuffled(train.samples(), seed, 0)[..landmarks.min(train.samples())];
    let landmarks = [Dataset::from_array("landmarks", train.data[0].select::<f32>(chosen)?.view())?];
    for (name, text, paper) in [
        ("Nyström, polynomial", "polynomial(scale=0.001, bias=1, degree=10)", "78.00 %"),
        ("Nyström, RBF", "rbf(lengthscale=10)", "77.55 %"),
    ] {
        let kernel: Arc<dyn Kernel<f32>> = Arc::new(Classic::new(&text.parse::<Expression>()?, 784)?);
        // Nyström's functions under the measure of the landmarks are the exact ones of the landmarks.
        let functions = exact(kernel, &landmarks, FUNCTIONS, Solver::Lanczos, &Context::new())?.0;
        let eval = |images: &Images| functions.eval_data(&images.data, &Context::new());
        let (seen, new) = (eval(train)?, eval(test)?);
        let from = CHOSEN_BY.min(test.samples());
        let all = sgd_probe((seen.view(), &train.classes), (new.view(), &test.classes), seed)?;
        let others =
            sgd_probe((seen.view(), &train.classes), (new.slice(s![from.., ..]), &test.classes[from..]), seed)?;
        println!("| {name}, by SGD | {:.2} % | {:.2} % | {paper} |", 100.0 * all, 100.0 * others);
        row(&format!("{name}, multinomial"), (&seen, train), (&new, test), "")?;
    }
    Ok(())
}

/// The rows of one kernel.
fn random_networks(prior: &Prior, train: &Images, test: &Images, options: &Options) -> Outcome {
    let (networks, outputs) = (options.number("--networks", 200)?, options.number("--outputs", 16)?);
    let (steps, extra) = (options.number("--steps", 2000)?, options.number("--extra", 246)?);
    let start = Instant::now();
    // Weights of variance 2/fan-in, biases of variance 0.01: appendix B. All outputs of a network count.
    let random = prior.network([16, 16], prior.dense.then_some(16), outputs, 0)?;
    let ensemble = Ensemble::new(&random, &[vec![1, 28, 28]], &Rule::ntk(2f64.sqrt(), 0.1), options.seed)?;
    let map = RandomNetworks::<f32>::new(Arc::new(ensemble), networks)?;
    let of = |images: &Images| -> Fallible<Array2<f32>> {
        let numbers = images.data[0].read::<f32>()?;
        let mut features = Array2::<f32>::zeros((images.samples(), map.n_features()));
        let to = features.as_slice_mut().expect("a fresh array is contiguous");
        map.features(&[numbers.as_slice().ok_or("layout")?], images.samples(), to)?;
        Ok(features)
    };
    let features = of(train)?;
    let (truth, combinations) = Spectrum::of_features(features.view(), FUNCTIONS, Solver::Lanczos, &Context::new())?;
    let known = of(test)?.dot(&combinations);
    let name = format!("{}, exact, through all random networks", prior.name);
    row(&name, (&truth.functions, train), (&known, test), "")?;
    let kernel_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let mut kernel = FeatureRows::new(features, 1)?;
    let batch = options.number("--batch", 512)?;
    let mut batches = Batches::new(&train.data, &mut kernel, batch, options.seed, &Context::new())?;
    let schedule = Schedule { decay: Decay::Cosine { floor: 0.0 }, ..Schedule::constant(1e-3) };
    let settings =
        LearningSettings::new(LearningMethod::NeuralEf).steps(steps).schedule(schedule).components(FUNCTIONS);
    let network = side_by_side(&[prior.network([16, 32], Some(256), FUNCTIONS + extra, options.seed)?])?;
    let learnt: Learnt<f32> = Learn::new(settings).run(network, &mut batches)?;
    let (before, after) = (learnt.before[0].truncated(FUNCTIONS), &learnt.after[0]);
    report(&format!("{}, learnt, before the finish", prior.name), &before, train, test, "")?;
    report(&format!("{}, learnt, after the finish", prior.name), after, train, test, prior.paper)?;
    let psi = after.eval_data(&train.data, &Context::new())?;
    let found = Comparison::new(after.values().view(), psi.view(), &truth)?;
    let list = |numbers: &[f64]| numbers.iter().map(|x| format!("{x:.3}")).collect::<Vec<_>>().join(" ");
    eprintln!(
        "{}: {networks} random CNNs of width 16 with {outputs} outputs (the paper: 2000 with one), {kernel_seconds:.0} s; one CNN \
         16-32-256 with {} outputs (ten of 32-64-128), {steps} steps of {batch} (20,000), {:.0} s\n  cosines with the exact \
         functions {}\n  relative errors of the values {}",
        prior.name,
        FUNCTIONS + extra,
        start.elapsed().as_secs_f64(),
        list(&found.cosines),
        list(&found.value_errors)
    );
    Ok(())
}

fn report(name: &str, functions: &Eigenfunctions<f32>, train: &Images, test: &Images, paper: &str) -> Outcome {
    let eval = |images: &Images| functions.eval_data(&images.data, &Context::new());
    row(name, (&eval(train)?, train), (&eval(test)?, test), paper)
}

/// A row of the table, from functions on images.
fn row(name: &str, train: (&Array2<f32>, &Images), test: (&Array2<f32>, &Images), paper: &str) -> Outcome {
    let accuracy = |from: usize| {
        let images = (test.0.slice(s![from.., ..]), &test.1.classes[from..]);
        linear_probe((train.0.view(), &train.1.classes), images)
    };
    let (all, others) = (accuracy(0)?, accuracy(CHOSEN_BY.min(test.1.samples()))?);
    println!("| {name} | {:.2} % | {:.2} % | {paper} |", 100.0 * all, 100.0 * others);
    Ok(())
}
