//! The work: data in, posterior, predictions and files out.

use super::UncertaintyArguments;
use super::figures;
use super::method::{Method, NoiseChoice, PriorChoice};
use super::report::{KIND, Scores, UncertaintyReport};
use crate::console::Console;
use crate::failure::Failure;
use crate::format::bytes;
use crate::options::{DataOptions, Real, Samples, saved_network};
use mercer::data::{Classes, Columns, Existing, Labels, Results, write_atomic, write_npy};
use mercer::kernel::empirical::Kind;
use mercer::kernel::{FeatureMap, Ntk, Recipe, SavedKernel};
use mercer::learn::LearnError;
use mercer::learn::laplace::{
    ClassScores, Detection, Functional, KIND as SAVED, Laplace, Likelihood, MonteCarlo, Needs, Posterior,
    RegressionScores, Settings, entropies,
};
use mercer::net::Network;
use mercer::net::network::TrainedOn;
use mercer::run::Context;
use mercer::spectral::{Eigenfunctions, Landmarks, Nystrom};
use ndarray::{Array2, ArrayView2};
use std::sync::Arc;

const POSTERIOR: &str = "posterior";

/// What the command writes beside `result.json` and the posterior.
const FILES: [&str; 9] = [
    "probabilities.npy",
    "map_probabilities.npy",
    "ood_probabilities.npy",
    "ood_map_probabilities.npy",
    "mean.npy",
    "variance.npy",
    "reliability.svg",
    "entropy.svg",
    "deviation.svg",
];

/// Samples with what they show.
struct Part {
    samples: Samples,
    labels: Option<Labels>,
}

impl UncertaintyArguments {
    /// Opens samples, whose columns are those of `like` and whose classes are the network's outputs.
    fn open(
        &self,
        (flag, data): (&str, &[String]),
        labels: Option<&String>,
        network: &Network,
        like: &[Option<Columns>],
        console: &Console,
    ) -> Result<Part, Failure> {
        let (classes, preprocess) = (self.data.classes.clone(), self.data.preprocess.clone());
        let labels = labels.cloned();
        let options = DataOptions { data: data.to_vec(), labels, classes, preprocess, used: Vec::new() };
        let samples = Samples::given(flag, data, &options, network, like, console)?;
        let mut samples = samples.in_order_of(&format!("{flag}-labels"), network, self.node.as_deref(), &options)?;
        let labels = samples.labels.take();
        Ok(Part { samples, labels })
    }

    pub(super) fn compute<T: Real>(&self, network: &Network, console: &Console) -> Result<UncertaintyReport, Failure> {
        let data = &self.data;
        let train = self.open(("--train", &data.train), Some(&data.train_labels), network, &[], console)?;
        train.samples.hint(Some(network), console)?;
        let like = &train.samples.columns;
        let test = self.open(("--test", &data.test), data.test_labels.as_ref(), network, like, console)?;
        let ood = match &data.ood[..] {
            [] => None,
            texts => Some(self.open(("--ood", texts), None, network, like, console)?),
        };
        let validation = match &data.validation[..] {
            [] => None,
            texts => {
                let labels = data.validation_labels.as_ref();
                Some(self.open(("--validation", texts), labels, network, like, console)?)
            }
        };
        let Some(known) = &train.labels else { return Err(Failure::new("--train-labels: there are no labels in it")) };
        let likelihood = match Likelihood::of(known) {
            Likelihood::Gaussian { .. } => Likelihood::Gaussian { noise: self.posterior.noise.start() },
            classes => classes,
        };
        let test_labels =
            test.labels.as_ref().map(|labels| same_classes("--test-labels", labels, known)).transpose()?;
        let settings = self.settings(likelihood)?;
        settings.check_samples(train.samples.n_samples).map_err(|error| self.failure(error))?;
        let shapes = train.samples.shapes();
        for (flag, part) in [("--test", Some(&test)), ("--ood", ood.as_ref()), ("--validation", validation.as_ref())] {
            if let Some(part) = part
                && part.samples.shapes() != shapes
            {
                let text = format!("{flag} has samples of shape {:?}, --train of {shapes:?}", part.samples.shapes());
                return Err(Failure::new(text).hint("all must fit the network in the same way"));
            }
        }
        let features = matches!(self.posterior.method, Method::Eigen).then_some(self.posterior.components);
        let graph = network.graph(&shapes).map_err(|error| self.failure(error.into()))?;
        let n_outputs = settings.n_outputs(&graph).map_err(|error| self.failure(error))?;
        let outputs = |count: usize| count.saturating_mul(n_outputs);
        let needs = Needs::of::<T>(network, &shapes, &settings, features.map(outputs)).map_err(|e| self.failure(e))?;
        needs.check(&settings, console.context()).map_err(|error| self.failure(error))?;
        let mut report = UncertaintyReport::begin(self, &train.samples, &test.samples, needs);
        if self.dry_run {
            return Ok(report);
        }
        self.prepare_folder()?;
        let bar = console.context();
        let start = std::time::Instant::now();
        let functions = match self.posterior.method {
            Method::Eigen => Some(self.eigenfunctions::<T>(network, &train.samples, &settings, &bar)?),
            _ => None,
        };
        let fitted = match &functions {
            Some(functions) => {
                let map: Arc<dyn FeatureMap<T>> = Arc::new(functions.clone());
                Laplace::fit_features(network, map, &train.samples.inputs, known, &settings, &bar)
            }
            None => Laplace::<T>::fit(network, &train.samples.inputs, known, &settings, &bar),
        };
        let mut machine = fitted.map_err(|error| self.failure(error))?;
        report.notes.extend_from_slice(machine.notes());
        self.choose_prior(&mut machine, validation.as_ref(), known, &mut report, &bar)?;
        let functional = machine.predict(&test.samples.inputs, &bar).map_err(|error| self.failure(error))?;
        let other = ood.as_ref().map(|ood| machine.predict(&ood.samples.inputs, &bar)).transpose();
        let other = other.map_err(|error| self.failure(error))?;
        report.seconds = start.elapsed().as_secs_f64();
        report.prior_precision = Some(machine.prior_precision());
        report.noise = machine.noise();
        let evidence = machine.log_evidence(machine.prior_precision()).map_err(|error| self.failure(error))?;
        report.log_evidence = Some(evidence);
        report.repairs =
            machine.repairs().map_err(|error| self.failure(error))?.iter().map(ToString::to_string).collect();
        report.clipped = functional.clipped + other.as_ref().map_or(0, |other| other.clipped);
        match machine.noise() {
            None => self.classes(&mut report, &functional, test_labels.as_ref(), other.as_ref())?,
            Some(noise) => self.values(&mut report, &functional, noise, test_labels.as_ref(), other.as_ref())?,
        }
        report.compare();
        let folder = self.output.path.join(POSTERIOR);
        let network = saved_network(&self.net, network, &self.parameters)?;
        let classes = match known {
            Labels::Classes(classes) if !classes.are_numbered() => Some(classes.names().to_vec()),
            _ => None,
        };
        let trained_on = TrainedOn { classes, ..train.samples.trained_on() };
        let saved = Posterior { laplace: machine, network, functions, trained_on };
        saved.save(&folder, Existing::Replace).map_err(|error| self.failure(error))?;
        let written = FILES.iter().filter(|name| self.output.path.join(name).is_file());
        report.files = written.map(|&name| name.to_owned()).collect();
        self.write_report(&report)?;
        Ok(report)
    }

    /// Eigenfunctions of the full tangent kernel, from landmarks among the training samples.
    fn eigenfunctions<T: Real>(
        &self,
        network: &Network,
        train: &Samples,
        settings: &Settings,
        bar: &Context,
    ) -> Result<Eigenfunctions<T>, Failure> {
        let graph = network.graph(&train.shapes()).map_err(|error| self.failure(error.into()))?;
        let selection = settings.selection(&graph).map_err(|error| self.failure(error))?;
        let kernel = Ntk::<T>::of(network, &train.shapes(), Kind::Full, &selection);
        let kernel = kernel.map_err(|error| self.failure(error.into()))?;
        let count = self.posterior.landmarks.clamp(1, train.n_samples);
        let method = Nystrom::new(Landmarks::Uniform(count)).seed(self.posterior.seed);
        let fit = method.fit(Arc::new(kernel), &train.inputs, self.posterior.components, bar);
        let functions = fit.map_err(|error| Failure::new(format!("--method eigen: {error}")))?.functions;
        let recipe = Recipe::Tangent { kind: Kind::Full, selection, by_layer: false };
        let saved = SavedKernel::new(recipe, Some(saved_network(&self.net, network, &self.parameters)?));
        Ok(functions.with_kernel(Some(saved)))
    }

    /// The noise of a regression's observations, then the prior: together where the evidence chooses both.
    fn choose_prior<T: Real>(
        &self,
        machine: &mut Laplace<T>,
        validation: Option<&Part>,
        known: &Labels,
        report: &mut UncertaintyReport,
        bar: &Context,
    ) -> Result<(), Failure> {
        let by_evidence = self.posterior.noise == NoiseChoice::Evidence && machine.noise().is_some();
        if by_evidence {
            let chosen = match self.posterior.prior {
                PriorChoice::Given(_) => machine.maximise_noise().map(|_| ()),
                _ => machine.maximise_evidence_and_noise().map(|_| ()),
            };
            chosen.map_err(|error| self.failure(error).hint("--noise SIGMA gives the noise"))?;
        }
        let chosen = match (self.posterior.prior, validation) {
            (PriorChoice::Given(_), _) => return Ok(()),
            (PriorChoice::Evidence, _) if by_evidence => return Ok(()),
            (PriorChoice::Validation, Some(Part { samples, labels: Some(labels) })) => {
                let labels = same_classes("--validation-labels", labels, known)?;
                machine.validate(&samples.inputs, &labels, bar).map(|found| report.notes.extend(found.note()))
            }
            _ => machine.maximise_evidence().map(|_| ()),
        };
        chosen.map_err(|error| self.failure(error))
    }

    fn classes(
        &self,
        report: &mut UncertaintyReport,
        functional: &Functional,
        labels: Option<&Labels>,
        other: Option<&Functional>,
    ) -> Result<(), Failure> {
        let probabilities = |functional: &Functional| match self.posterior.draws {
            None => Ok(functional.probit()),
            Some(draws) => {
                let (seed, scale) = (self.posterior.seed, self.posterior.noise_scale);
                functional.monte_carlo(&MonteCarlo { draws, seed, scale }).map_err(|error| self.failure(error))
            }
        };
        let both = [("map_", functional.map()), ("", probabilities(functional)?)];
        let others = other.map(|other| Ok::<_, Failure>([other.map(), probabilities(other)?])).transpose()?;
        let mut entropy = Vec::new();
        for (at, (prefix, own)) in both.iter().enumerate() {
            self.write_array(&format!("{prefix}probabilities.npy"), own.view())?;
            let mut scores = Scores::default();
            if let Some(Labels::Classes(classes)) = labels {
                scores.classes = Some(ClassScores::of(own.view(), classes.indices()).map_err(|e| self.failure(e))?);
            }
            let usual = entropies(own.view()).to_vec();
            let other = others.as_ref().map(|others| entropies(others[at].view()).to_vec());
            if let (Some(other), Some(others)) = (&other, &others) {
                self.write_array(&format!("ood_{prefix}probabilities.npy"), others[at].view())?;
                scores.detection = Some(Detection::of(&usual, other).map_err(|error| self.failure(error))?);
            }
            entropy.push((usual, other));
            if at == 0 { report.map = scores } else { report.laplace = scores }
        }
        self.write_array("variance.npy", functional.variances().view())?;
        figures::entropy(&self.output.path, &entropy)?;
        figures::reliability(&self.output.path, &report.map, &report.laplace)
    }

    fn values(
        &self,
        report: &mut UncertaintyReport,
        functional: &Functional,
        noise: f64,
        labels: Option<&Labels>,
        other: Option<&Functional>,
    ) -> Result<(), Failure> {
        self.write_array("mean.npy", functional.mean.view())?;
        self.write_array("variance.npy", functional.variances().view())?;
        if let Some(Labels::Targets(targets)) = labels {
            let alone = Array2::from_elem(targets.dim(), noise * noise);
            for (variances, scores) in
                [(alone.clone(), &mut report.map), (functional.variances() + &alone, &mut report.laplace)]
            {
                let found = RegressionScores::of(functional.mean.view(), variances.view(), targets.view());
                scores.values = Some(found.map_err(|error| self.failure(error))?);
            }
        }
        let deviation = |functional: &Functional| -> Vec<f64> {
            functional.variances().outer_iter().map(|row| row.sum().sqrt()).collect()
        };
        let usual = deviation(functional);
        let other = other.map(deviation);
        if let Some(other) = &other {
            report.laplace.detection = Some(Detection::of(&usual, other).map_err(|error| self.failure(error))?);
        }
        figures::deviation(&self.output.path, usual, other)
    }

    fn prepare_folder(&self) -> Result<(), Failure> {
        let path = &self.output.path;
        // The posterior is a folder of its own, which knows its files.
        let results = Results::find(path, KIND, &FILES, |_| false, |_| None)?;
        crate::output::prepare_folder(path, &results, self.output.force, false, "--force replaces what is there")?;
        if self.output.force {
            mercer::data::folder::remove(&path.join(POSTERIOR), SAVED)?;
        }
        Ok(())
    }

    fn write_array(&self, name: &str, array: ArrayView2<'_, f64>) -> Result<(), Failure> {
        Ok(write_npy(&self.output.path.join(name), &array, Existing::Replace)?)
    }

    fn write_report(&self, report: &UncertaintyReport) -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(report);
        let json = json.map_err(|error| Failure::new(format!("the result cannot be written as JSON: {error}")))?;
        write_atomic(&self.output.path.join("result.json"), Existing::Replace, |writer| {
            writer.write_all(json.as_bytes())?;
            writer.write_all(b"\n")
        })?;
        Ok(())
    }

    /// Errors of the library, in terms of the options.
    fn failure(&self, error: LearnError) -> Failure {
        use mercer::kernel::KernelError;
        match error {
            LearnError::Memory { what, side, needed, allowed, .. } => {
                let text = format!(
                    "--method {what}: a matrix of side {} takes {}, but {} are allowed",
                    crate::format::grouped(side),
                    bytes(needed),
                    bytes(allowed)
                );
                Failure::new(text).hint(match self.posterior.method {
                    Method::Full => "--method kron, diag, sketch or last-layer-full; or more with --memory",
                    Method::LastLayerFull => "--method last-layer-kron; or more with --memory",
                    Method::Sketch => "a smaller K with --sketch; or more with --memory",
                    Method::Eigen => "fewer --components; or more with --memory",
                    _ => "--method diag or last-layer-kron; or more with --memory",
                })
            }
            LearnError::Network(error) => Failure::of_network(&self.net, *error),
            LearnError::Data(error) => (*error).into(),
            LearnError::Kernel(error) => match *error {
                KernelError::Network(error) => Failure::of_network(&self.net, *error),
                KernelError::Data(error) => (*error).into(),
                KernelError::Cancelled => Failure::interrupted("interrupted; nothing was written"),
                other => Failure::new(format!("{}: {other}", self.net.display())),
            },
            other => Failure::new(other.to_string()),
        }
    }
}

/// Labels whose classes have the numbers of the training set's.
fn same_classes(flag: &str, own: &Labels, known: &Labels) -> Result<Labels, Failure> {
    let renamed = |own: &Classes, known: &Classes| {
        own.with_names(known.names()).map_err(|error| Failure::new(format!("{flag}: {error}")))
    };
    match (own, known) {
        (Labels::Classes(own), Labels::Classes(known)) if own.names() != known.names() => {
            renamed(own, known).map(Labels::Classes)
        }
        (Labels::Classes(_), Labels::Targets(known)) if known.ncols() == 1 => Ok(Labels::Targets(column(own)?)),
        (Labels::Targets(_), Labels::Classes(_)) => {
            Err(Failure::new(format!("{flag} are numbers, --train-labels are classes"))
                .hint("both must be of one kind"))
        }
        _ => Ok(own.clone()),
    }
}

/// Whole numbers among the targets of a regression look like classes.
fn column(labels: &Labels) -> Result<Array2<f64>, Failure> {
    let Labels::Classes(classes) = labels else { return Err(Failure::new("the labels are not whole numbers")) };
    let numbers = classes.indices().iter().map(|&index| classes.names()[index].parse::<f64>());
    let numbers: Vec<f64> =
        numbers.collect::<Result<_, _>>().map_err(|_| Failure::new("the labels are not numbers"))?;
    Ok(Array2::from_shape_fn((numbers.len(), 1), |(row, _)| numbers[row]))
}
