//! Two moons and circles through the kernels of random networks (NeuralEF, section 4.2.1 and figure 3).

use crate::experiment::Experiment;
use crate::images::linear_probe;
use crate::options::Options;
use crate::report::{Drawing, Format, Report, Table};
use crate::{Fallible, row};
use mercer::data::{Dataset, shuffled, synthetic};
use mercer::kernel::FeatureMap;
use mercer::kernel::infinite::Rule;
use mercer::kernel::montecarlo::{Ensemble, RandomNetworks};
use mercer::linalg::syrk;
use mercer::net::arch::{Activation, Mlp};
use mercer::report::{Figure, Panel};
use mercer::run::Context;
use mercer::spectral::learnt::{Batches, Learn, LearningMethod, LearningSettings, Learnt, Matrices, side_by_side};
use mercer::spectral::{Comparison, Eigenfunctions, Solver, Spectrum};
use ndarray::{Array2, ArrayView2, Axis, s};
use std::sync::Arc;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "moons",
    group: "Eigenfunctions",
    title: "Two moons and circles",
    paper: super::NEURALEF,
    claim: "Three eigenfunctions of the kernels of random networks make two moons and two circles linearly separable (section 4.2.1, \
        figure 3).",
    published: "as a figure only.",
    setting: "1000 points (moons with noise 0.04; all coordinates standardised, as in the authors' code), the kernels of 10,000 random \
        MLPs 2-16-16-1, eigenfunctions by NeuralEF with its finish. The best three of eight functions are chosen on the training half.",
    cost: 20,
    needs: &[],
    options: &["samples", "networks", "steps"],
    threads: 1,
    run,
};

/// Functions that are kept of those that are learnt.
const FUNCTIONS: usize = 8;

fn run(options: &Options) -> Fallible<Report> {
    let (samples, networks) = (options.number("samples", 1000, 100)?, options.number("networks", 10_000, 50)?);
    let steps = options.number("steps", 2000, 20)?;
    let mut table = Table::new(
        "A linear classifier is trained on half of the points; the share of the other half that it gets right:",
    )
    .column("data", Format::Plain)
    .column("on x", Format::Percent(1))
    .column("ψ₁ ψ₂ ψ₃, exact", Format::Percent(1))
    .column("ψ₁ ψ₂ ψ₃, learnt", Format::Percent(1))
    .column(format!("best three of {FUNCTIONS}"), Format::Percent(1))
    .column("which", Format::Plain)
    .column(format!("all {FUNCTIONS}"), Format::Percent(1))
    .column("|cos| with the exact functions", Format::Cosine);
    let sets = [
        // The authors' noise; their code standardises the coordinates, too.
        ("two moons", synthetic::two_moons(samples, 0.04, options.seed)?, Activation::Relu),
        ("circles", synthetic::circles(samples, 0.5, 0.05, options.seed)?, Activation::Erf),
    ];
    let mut figure = Figure::new("Projections by three eigenfunctions of MLP-GP kernels").columns(2);
    for (name, (points, classes), activation) in sets {
        let x = standardised(points).mapv(|x| x as f32);
        let gram = kernel_matrix(&x, activation, networks, options.seed)?;
        let truth = Spectrum::of_matrix(gram.mapv(f64::from).view(), FUNCTIONS, Solver::Lanczos, &Context::new())?;
        let found = learn(&x, gram, steps, options.seed)?;
        let data = [Dataset::from_array(name, x.view().into_dyn())?];
        let psi = found.eval_data(&data, &Context::new())?;
        let compared = Comparison::new(found.values().view(), psi.mapv(f64::from).view(), &truth)?;
        // Half of the points train, in an order that has nothing to do with their classes.
        let halves = Halves::new(&shuffled(samples, options.seed, 0), classes.indices());
        let exact = truth.functions.mapv(|x| x as f32);
        let three = halves.best_three(&psi)?;
        table.push(row![
            format!("{name} ({activation})"),
            halves.probe(x.view())?,
            halves.probe(exact.slice(s![.., ..3]))?,
            halves.probe(psi.slice(s![.., ..3]))?,
            halves.probe(psi.select(Axis(1), &three).view())?,
            three.map(|at| format!("ψ{}", at + 1)).join(" "),
            halves.probe(psi.view())?,
            compared.cosines.to_vec(),
        ]);
        let of_class = |class: usize| {
            let own = psi.rows().into_iter().zip(classes.indices()).filter(move |(_, own)| **own == class);
            own.map(|(row, _)| [0, 1, 2].map(|j| f64::from(row[three[j]]))).collect::<Vec<_>>()
        };
        let sets = (0..2).map(|class| (format!("class {class}"), of_class(class)));
        let axes = three.map(|at| format!("ψ{}", at + 1));
        let axes = [axes[0].as_str(), axes[1].as_str(), axes[2].as_str()];
        figure = figure.panel(Panel::scatter3(format!("{name} ({activation})"), axes, sets));
    }
    let drawing = Drawing { file: "moons.svg", caption: "Projections by three eigenfunctions", figure };
    Ok(Report { tables: vec![table], figures: vec![drawing], ..Report::default() })
}

/// Coordinates of mean 0 and deviation 1.
fn standardised(mut points: Array2<f64>) -> Array2<f64> {
    for mut column in points.columns_mut() {
        let (mean, deviation) = (column.mean().unwrap_or(0.0), column.std(0.0));
        column.mapv_inplace(|x| (x - mean) / deviation);
    }
    points
}

/// The kernel of random networks with weights of variance 2/width and biases of variance 1 (appendix B).
fn kernel_matrix(x: &Array2<f32>, activation: Activation, networks: usize, seed: u64) -> Fallible<Array2<f32>> {
    let network = Mlp::new(2, &[16, 16], 1).activation(activation).build(0)?;
    let ensemble = Ensemble::new(&network, &[vec![2]], &Rule::ntk(2f64.sqrt(), 1.0), seed)?;
    let map = RandomNetworks::<f32>::new(Arc::new(ensemble), networks)?;
    let mut features = Array2::zeros((x.nrows(), map.n_features()));
    map.features(
        &[x.as_slice().ok_or("layout")?],
        x.nrows(),
        features.as_slice_mut().expect("a fresh array is contiguous"),
    )?;
    Ok(syrk(features.view()))
}

/// Points of two classes, half of them for training.
struct Halves {
    order: Vec<usize>,
    classes: Vec<usize>,
}

impl Halves {
    fn new(order: &[usize], classes: &[usize]) -> Self {
        Self { order: order.to_vec(), classes: order.iter().map(|&i| classes[i]).collect() }
    }

    /// The share of the second half that a linear classifier of the first half gets right.
    fn probe(&self, features: ArrayView2<'_, f32>) -> Fallible<f64> {
        self.compare(features, self.order.len() / 2)
    }

    fn compare(&self, features: ArrayView2<'_, f32>, from: usize) -> Fallible<f64> {
        let half = self.order.len() / 2;
        let features = features.select(Axis(0), &self.order);
        let one = (features.slice(s![..half, ..]), &self.classes[..half]);
        linear_probe(one, (features.slice(s![from..from + half, ..]), &self.classes[from..from + half]))
    }

    /// The three functions that separate the first half best.
    fn best_three(&self, psi: &Array2<f32>) -> Fallible<[usize; 3]> {
        let k = psi.ncols();
        let mut best = (0.0, [0, 1, 2]);
        for a in 0..k {
            for b in a + 1..k {
                for c in b + 1..k {
                    let right = self.compare(psi.select(Axis(1), &[a, b, c]).view(), 0)?;
                    if right > best.0 {
                        best = (right, [a, b, c]);
                    }
                }
            }
        }
        Ok(best.1)
    }
}

/// The first functions of a few more, by NeuralEF and its finish.
fn learn(x: &Array2<f32>, gram: Array2<f32>, steps: usize, seed: u64) -> Fallible<Eigenfunctions<f32>> {
    let data = [Dataset::from_array("points", x.view().into_dyn())?];
    let mlp = |seed: u64| Mlp::new(2, &[32, 32], 1).activation(Activation::SinCos).build(seed);
    let networks = (0..2 * FUNCTIONS as u64).map(|index| mlp(1000 * seed + index)).collect::<Result<Vec<_>, _>>()?;
    let mut kernel = Matrices::new(gram, 1)?;
    let mut batches = Batches::new(&data, &mut kernel, 256, seed, &Context::new())?;
    let settings = LearningSettings::new(LearningMethod::NeuralEf).steps(steps).components(FUNCTIONS);
    let mut learnt: Learnt<f32> = Learn::new(settings).run(side_by_side(&networks)?, &mut batches)?;
    Ok(learnt.after.swap_remove(0))
}
