//! The conformance suite for what is not fitted on samples of one kernel: posteriors of networks, ensembles and linearised networks.

use super::conformance::{Known, N, close};
use super::sets::{labels, rbf, rows, targets};
use mercer_data::folder::{Folder, FolderWriter};
use mercer_data::{Classes, Dataset, Existing, Labels};
use mercer_kernel::sketch::SketchMethod;
use mercer_learn::ensemble::{FlowSettings, InfiniteEnsemble, Linearised, Prior};
use mercer_learn::laplace::{KIND, Laplace, LaplaceSettings, Likelihood, Structure};
use mercer_learn::{LearnError, Result};
use mercer_net::Network;
use mercer_net::arch::{Activation, Mlp};
use mercer_run::Context;
use ndarray::{Array2, ArrayView2, Axis, concatenate, s};
use std::path::Path;

/// Two targets, or logits of three classes.
const OUTPUTS: usize = 2;
const CLASSES: usize = 3;

/// A machine with whatever it takes to predict.
trait Fitted {
    /// Means, then covariances, as columns.
    fn predict(&self, x: ArrayView2<'_, f64>) -> Result<Array2<f64>>;
    /// The same with a column missing.
    fn narrow(&self, x: ArrayView2<'_, f64>) -> Result<Array2<f64>>;
    fn save(&self, folder: &Path, existing: Existing) -> Result<()>;
    fn load(&self, folder: &Path) -> Result<Box<dyn Fitted>>;
}

/// What is fitted, in units in which standard deviations are `scale` times as large.
type Fitter = Box<dyn Fn(ArrayView2<'_, f64>, &Known, f64) -> Result<Box<dyn Fitted>>>;

struct Member {
    name: String,
    fit: Fitter,
    classes: bool,
    /// Means, the other columns being covariances.
    n_means: usize,
}

impl Member {
    fn known(&self, x: &Array2<f64>) -> Known {
        if self.classes { Known::Classes(labels(x.view(), CLASSES)) } else { Known::Numbers(targets(x.view())) }
    }
}

fn members() -> Vec<Member> {
    let sketch = Structure::Sketch { method: SketchMethod::SparseJl { nonzeros: 1 }, k: 16, seed: 1, residual: false };
    let structures = [
        Structure::Full,
        Structure::Diagonal,
        Structure::Kronecker,
        Structure::LastLayerFull,
        Structure::LastLayerKronecker,
        Structure::LastLayerDiagonal,
        sketch,
    ];
    let mut members = Vec::new();
    for structure in structures {
        for classes in [false, true] {
            let n_means = if classes { CLASSES } else { OUTPUTS };
            let name = format!("posterior, {structure}, of {}", if classes { "classes" } else { "numbers" });
            let fit: Fitter =
                Box::new(move |x, known, scale| Ok(Box::new(Posterior::fit(structure, x, known, scale)?)));
            members.push(Member { name, fit, classes, n_means });
        }
    }
    let flow = |name: &str, fit: Fitter| Member { name: name.to_owned(), fit, classes: false, n_means: OUTPUTS };
    members
        .push(flow("ensemble, last layer", Box::new(|x, y, scale| Ok(Box::new(Flow::ensemble(false, x, y, scale)?)))));
    members
        .push(flow("ensemble, all layers", Box::new(|x, y, scale| Ok(Box::new(Flow::ensemble(true, x, y, scale)?)))));
    members.push(flow("linearised network", Box::new(|x, y, scale| Ok(Box::new(Flow::linearised(x, y, scale)?)))));
    members
}

fn network(n_outputs: usize) -> Network {
    Mlp::new(3, &[6], n_outputs).activation(Activation::Tanh).build(1).expect("a network")
}

fn dataset(x: ArrayView2<'_, f64>) -> Result<Dataset> {
    Ok(Dataset::from_array("x", x.into_dyn())?)
}

struct Posterior {
    machine: Laplace<f64>,
    network: Network,
}

impl Posterior {
    fn fit(structure: Structure, x: ArrayView2<'_, f64>, known: &Known, scale: f64) -> Result<Self> {
        let (labels, likelihood, n_outputs) = match known {
            Known::Numbers(numbers) => {
                (Labels::Targets(numbers.clone()), Likelihood::Gaussian { noise: 0.5 * scale }, OUTPUTS)
            }
            Known::Classes(classes) => (Labels::Classes(classes.clone()), Likelihood::Categorical, CLASSES),
        };
        let network = network(n_outputs);
        let settings = LaplaceSettings::new(structure, likelihood).prior_precision(2.0 / (scale * scale));
        let machine = Laplace::fit(&network, &[dataset(x)?], &labels, &settings, &Context::new())?;
        Ok(Self { machine, network })
    }
}

impl Fitted for Posterior {
    fn predict(&self, x: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let found = self.machine.predict(&[dataset(x)?], &Context::new())?;
        let covariances = found.covariance.len() / x.nrows();
        let covariance = found.covariance.into_shape_with_order((x.nrows(), covariances)).expect("a row per sample");
        Ok(concatenate![Axis(1), found.mean, covariance])
    }

    fn narrow(&self, x: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.predict(x.slice(s![.., 1..]))
    }

    fn save(&self, folder: &Path, existing: Existing) -> Result<()> {
        let writer = FolderWriter::create(folder, KIND, existing)?;
        let content = self.machine.write(&writer.objects())?;
        Ok(writer.commit(&content)?)
    }

    fn load(&self, folder: &Path) -> Result<Box<dyn Fitted>> {
        let folder = Folder::open(folder, Some(KIND))?;
        let machine = Laplace::read(&folder.objects(), &folder.content()?, &self.network, None)?;
        Ok(Box::new(Self { machine, network: network(self.machine.n_outputs()) }))
    }
}

/// Gradient flow for some time, with the kernels `K = s² exp(−‖x − y‖²)` and `Θ = K + s² x·y`.
#[derive(Clone)]
struct Flow {
    machine: NtkKind,
    training: Array2<f64>,
    square: f64,
}

#[derive(Clone)]
enum NtkKind {
    LastLayer(InfiniteEnsemble),
    AllLayers(InfiniteEnsemble),
    Network(Linearised),
}

const TIME: f64 = 30.0;

fn nngp(x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>, square: f64) -> Array2<f64> {
    rbf(x, y) * square
}

fn ntk(x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>, square: f64) -> Array2<f64> {
    (rbf(x, y) + x.dot(&y.t())) * square
}

/// The outputs of an untrained network.
fn outputs(x: ArrayView2<'_, f64>) -> Array2<f64> {
    Array2::from_shape_fn((x.nrows(), OUTPUTS), |(i, j)| (x[(i, 0)] + j as f64).cos())
}

impl Flow {
    fn settings(scale: f64) -> FlowSettings {
        FlowSettings { learning_rate: 1.0 / (scale * scale), regularisation: 1e-3 }
    }

    fn ensemble(all: bool, x: ArrayView2<'_, f64>, known: &Known, scale: f64) -> Result<Self> {
        let Known::Numbers(y) = known else { unreachable!("a regression is given numbers") };
        let (square, settings) = (scale * scale, Self::settings(scale));
        let prior = nngp(x, x, square);
        let machine = match all {
            true => NtkKind::AllLayers(InfiniteEnsemble::all_layers(
                ntk(x, x, square).view(),
                prior.view(),
                y.view(),
                settings,
            )?),
            false => NtkKind::LastLayer(InfiniteEnsemble::last_layer(prior.view(), y.view(), settings)?),
        };
        Ok(Self { machine, training: x.to_owned(), square })
    }

    fn linearised(x: ArrayView2<'_, f64>, known: &Known, scale: f64) -> Result<Self> {
        let Known::Numbers(y) = known else { unreachable!("a regression is given numbers") };
        let (square, settings) = (scale * scale, Self::settings(scale));
        let fitted = Linearised::fit(ntk(x, x, square).view(), outputs(x).view(), y.view(), settings)?;
        Ok(Self { machine: NtkKind::Network(fitted), training: x.to_owned(), square })
    }

    /// Without the kernel's first columns.
    fn after(&self, skipped: usize, x: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let kept = self.training.slice(s![skipped.., ..]);
        let (cross, tangent) = (nngp(x, kept, self.square), ntk(x, kept, self.square));
        let test = nngp(x, x, self.square);
        let prior = Prior { cross: cross.view(), test: test.view() };
        let found = match &self.machine {
            NtkKind::LastLayer(ensemble) => ensemble.predict(TIME, None, prior)?,
            NtkKind::AllLayers(ensemble) => ensemble.predict(TIME, Some(tangent.view()), prior)?,
            NtkKind::Network(network) => return network.predict(TIME, tangent.view(), outputs(x).view()),
        };
        Ok(concatenate![Axis(1), found.mean, found.covariance])
    }
}

impl Fitted for Flow {
    fn predict(&self, x: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.after(0, x)
    }

    fn narrow(&self, x: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.after(1, x)
    }

    fn save(&self, folder: &Path, existing: Existing) -> Result<()> {
        match &self.machine {
            NtkKind::LastLayer(ensemble) | NtkKind::AllLayers(ensemble) => ensemble.save(folder, existing),
            NtkKind::Network(network) => network.save(folder, existing),
        }
    }

    fn load(&self, folder: &Path) -> Result<Box<dyn Fitted>> {
        let machine = match &self.machine {
            NtkKind::LastLayer(_) => NtkKind::LastLayer(InfiniteEnsemble::load(folder)?),
            NtkKind::AllLayers(_) => NtkKind::AllLayers(InfiniteEnsemble::load(folder)?),
            NtkKind::Network(_) => NtkKind::Network(Linearised::load(folder)?),
        };
        Ok(Box::new(Self { machine, ..self.clone() }))
    }
}

#[test]
fn refit_gives_the_same_bits_and_disk_changes_nothing() {
    let (x, others) = (rows(N, 3, "training"), rows(7, 3, "others"));
    for member in members() {
        let fit = || (member.fit)(x.view(), &member.known(&x), 1.0).expect("fits");
        let machine = fit();
        let first = machine.predict(others.view()).expect("predicts");
        assert!(first.iter().all(|v| v.is_finite()), "{}", member.name);
        assert_eq!(fit().predict(others.view()).expect("predicts"), first, "{}", member.name);
        let folder = tempfile::tempdir().expect("a folder");
        machine.save(folder.path(), Existing::Refuse).expect("saves");
        assert!(machine.save(folder.path(), Existing::Refuse).is_err(), "{}", member.name);
        machine.save(folder.path(), Existing::Replace).expect("saves");
        let loaded = machine.load(folder.path()).expect("loads");
        assert_eq!(loaded.predict(others.view()).expect("predicts"), first, "{}", member.name);
    }
}

#[test]
fn the_order_of_samples_does_not_matter() {
    let (x, others) = (rows(N, 3, "training"), rows(7, 3, "others"));
    let order: Vec<usize> = (0..N).map(|i| (i * 17 + 3) % N).collect();
    let turned = x.select(Axis(0), &order);
    for member in members() {
        let known = member.known(&x);
        let first = (member.fit)(x.view(), &known, 1.0).expect("fits").predict(others.view()).expect("predicts");
        let second = (member.fit)(turned.view(), &known.select(&order), 1.0).expect("fits");
        // Sums in another order, and systems whose condition is below 10⁵.
        close(&member.name, &second.predict(others.view()).expect("predicts"), &first, 1e-9);
    }
}

/// In units in which the prior and the noise are twice as large, so are standard deviations; means stay.
#[test]
fn units_do_not_matter() {
    let (x, others) = (rows(N, 3, "training"), rows(7, 3, "others"));
    for member in members().into_iter().filter(|member| !member.classes) {
        let predict = |scale: f64| {
            let machine = (member.fit)(x.view(), &member.known(&x), scale).expect("fits");
            machine.predict(others.view()).expect("predicts")
        };
        let (first, mut second) = (predict(1.0), predict(2.0));
        second.slice_mut(s![.., member.n_means..]).mapv_inplace(|v| v / 4.0);
        // Powers of two change no digit; decompositions may take another path.
        close(&member.name, &second, &first, 1e-10);
    }
}

#[test]
fn one_sample_and_a_missing_class() {
    let (x, others) = (rows(N, 3, "training"), rows(7, 3, "others"));
    for member in members() {
        let one = (member.fit)(x.slice(s![..1, ..]), &member.known(&x).select(&[0]), 1.0).expect("fits");
        assert!(one.predict(others.view()).expect("predicts").iter().all(|v| v.is_finite()), "{}", member.name);
        assert!((member.fit)(x.slice(s![..0, ..]), &member.known(&x).select(&[]), 1.0).is_err(), "{}", member.name);
        if member.classes {
            let indices = labels(x.view(), 2).indices().iter().map(|&class| [0, 2][class]).collect();
            let known = Known::Classes(Classes::new(indices, CLASSES).expect("classes"));
            let machine = (member.fit)(x.view(), &known, 1.0).expect("fits");
            assert!(machine.predict(others.view()).expect("predicts").iter().all(|v| v.is_finite()), "{}", member.name);
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let (x, others) = (rows(N, 3, "training"), rows(7, 3, "others"));
    for member in members() {
        let (known, name) = (member.known(&x), &member.name);
        let mut broken = x.clone();
        broken[(3, 1)] = f64::NAN;
        assert!((member.fit)(broken.view(), &known, 1.0).is_err(), "{name}");
        let short = (member.fit)(x.view(), &known.select(&(0..N - 1).collect::<Vec<_>>()), 1.0);
        assert!(matches!(short.map(|_| ()), Err(LearnError::Shape { .. })), "{name}");
        if let Known::Numbers(numbers) = &known {
            let mut broken = numbers.clone();
            broken[(0, 0)] = f64::INFINITY;
            assert!((member.fit)(x.view(), &Known::Numbers(broken), 1.0).is_err(), "{name}");
        }
        let machine = (member.fit)(x.view(), &known, 1.0).expect("fits");
        assert!(machine.narrow(others.view()).is_err(), "{name}");
        let mut broken = others.clone();
        broken[(0, 0)] = f64::NAN;
        assert!(machine.predict(broken.view()).is_err(), "{name}");
    }
}
