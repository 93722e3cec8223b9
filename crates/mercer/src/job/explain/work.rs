//! The work: network, surrogates, faithfulness, attributions and files.

use super::attribute::{Attributed, Attributor};
use super::figures::DRAWN;
use super::findings::{ExplainFindings, FgsmFindings, LayerShare, SurrogateFindings};
use super::methods::{Problem, slopes};
use super::opened::OpenedExplain;
use super::validate::{Validation, ValidationFindings, Validator};
use super::words::{Sight, recommendation};
use super::{ClassChoice, files, saved};
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::surrogate::{FitTo, Fitted, KernelRows, Surrogate, SurrogateForm, SurrogateSpec};
use crate::job::{Artefact, Outcome};
use mercer_data::Dataset;
use mercer_kernel::Real;
use mercer_kernel::gram::Gram;
use mercer_learn::metrics::accuracy;
use mercer_lens::neighbours::{Neighbour, largest};
use mercer_lens::{Bootstrap, Faithfulness, Grouping, decisions, faithfulness, local_gaps};
use mercer_run::Context;
use ndarray::{Array2, ArrayView1, Axis};
use std::marker::PhantomData;

/// Draws of the bootstrap intervals. The ends of a 95 % interval vary by about a tenth of its width.
const DRAWS: usize = 500;

/// The work in one precision.
pub(super) struct Work<T>(PhantomData<T>);

/// What the network says of the samples.
pub(super) struct Said {
    train: Option<Array2<f64>>,
    pub(super) test: Array2<f64>,
    /// The class that the network decides for.
    pub(super) predicted: Vec<usize>,
    /// The class at which network and surrogate are compared.
    pub(super) compared: Vec<usize>,
    ood: Option<Elsewhere>,
    fgsm: Option<Elsewhere>,
}

/// Other samples on which faithfulness is measured as well.
struct Elsewhere {
    inputs: Vec<Dataset>,
    network: Array2<f64>,
    compared: Vec<usize>,
    /// Their classes, if they are known.
    correct: Option<Vec<usize>>,
}

/// What the kernel values of samples say.
struct Seen {
    /// The scores of every machine.
    scores: Vec<Array2<f64>>,
    /// The training samples with the largest kernel values.
    examples: Vec<Vec<Neighbour>>,
}

/// A surrogate with everything that was computed with it.
pub(super) struct Explained {
    pub(super) spec: SurrogateSpec,
    pub(super) surrogate: Surrogate,
    pub(super) findings: SurrogateFindings,
    pub(super) scores: Array2<f64>,
    /// The training samples with the largest kernel values; listed once per kernel.
    pub(super) examples: Vec<Vec<Neighbour>>,
}

impl<T: Real> Work<T> {
    pub(super) fn run(mut opened: OpenedExplain, context: &Context) -> Result<Outcome<ExplainFindings>, Error> {
        let Some(folder) = opened.folder.take() else {
            return Err(Error::new("there is no destination for the results"));
        };
        let said = opened.said::<T>(context)?;
        let (grouping, group_names) = opened.grouping();
        let (mut explained, mut attributed, mut first) = (Vec::new(), Attributed::default(), None);
        for rows in opened.kernels::<T>()? {
            // The first kernel explains.
            let attribution = first.is_none().then_some((&grouping, &folder, &mut attributed));
            let (rows, own) = opened.explain(rows, &said, attribution, context)?;
            explained.extend(own);
            first.get_or_insert(rows);
        }
        let (Some(rows), Some(main)) = (first, explained.first()) else {
            return Err(Error::new("‹kernel›: there is none"));
        };
        let layers =
            if opened.job.by_layer { Some(opened.layers((&rows, main), &said, &folder, context)?) } else { None };
        let validation = opened.validate((&rows, main), &said, &folder, context)?;
        let _phase = context.phase("writing");
        let attribution = opened.write(&explained, &said, &attributed, (&folder, layers), group_names)?;
        let line = main.findings.faithfulness.line;
        let line = opened.earlier.as_ref().and_then(saved::SavedExplanation::line).or(line);
        let gaps = local_gaps(said.test.view(), main.scores.view(), &said.compared, line)?;
        let classes = opened.known.classes.names().to_vec();
        let correct = opened.test.classes.as_deref();
        folder.file("local.csv", files::local(&gaps, correct, &said.compared, &classes).as_bytes())?;
        opened.draw(main, &said, &attributed, &attribution, (&folder, line))?;
        let content = opened.save((&rows, main), &folder, line)?;
        let mut surrogates: Vec<SurrogateFindings> = explained.into_iter().map(|own| own.findings).collect();
        let tau = |found: &SurrogateFindings| found.faithfulness.tau.unwrap_or(f64::NEG_INFINITY);
        surrogates.sort_by(|a, b| tau(b).total_cmp(&tau(a)));
        let fgsm = match (opened.job.fgsm, &said.fgsm) {
            (Some(epsilon), Some(set)) => Some(FgsmFindings { epsilon, network_accuracy: set.accuracy(&set.network)? }),
            _ => None,
        };
        let findings = ExplainFindings {
            network: opened.known.path.display().to_string(),
            n_train: opened.known.samples.n_samples,
            n_test: opened.test.samples.n_samples,
            classes,
            compared_class: match (&opened.job.class, correct) {
                (ClassChoice::Correct, None) => ClassChoice::Predicted.to_string(),
                (choice, _) => choice.to_string(),
            },
            network_accuracy: correct.map(|correct| accuracy(&said.predicted, correct)).transpose()?,
            fgsm,
            recommendation: recommendation(&surrogates),
            surrogates,
            summary: attribution,
            n_doubtful: gaps.iter().filter(|gap| gap.doubt.is_some()).count(),
            validation,
        };
        let inputs = opened.inputs()?;
        let place = Artefact::file("explanation", folder.path().display().to_string());
        let mut outcome = folder.finish(opened.job, inputs, findings, &content, (opened.watch, context))?;
        outcome.artefacts.insert(0, place);
        Ok(outcome)
    }
}

impl Elsewhere {
    /// The share of correct decisions; none without labels.
    fn accuracy(&self, scores: &Array2<f64>) -> Result<Option<f64>, Error> {
        Ok(self.correct.as_ref().map(|correct| accuracy(&decisions(scores.view()), correct)).transpose()?)
    }
}

impl OpenedExplain {
    /// The scores of the network on all samples that need them.
    fn said<T: Real>(&self, context: &Context) -> Result<Said, Error> {
        let _phase = context.phase("network");
        let network = self.known.network()?;
        let scores = |inputs: &[Dataset]| self.known.logits.scores::<T>(network, inputs, context);
        let test = scores(&self.test.samples.inputs)?;
        let train = match self.job.surrogate.to {
            to if self.earlier.is_none() && (to == FitTo::Network || self.retraining.is_some()) => {
                Some(scores(&self.known.samples.inputs)?)
            }
            _ => None,
        };
        let predicted = decisions(test.view());
        let compared = match (&self.job.class, self.fixed_class, &self.test.classes) {
            (_, Some(class), _) => vec![class; predicted.len()],
            (ClassChoice::Correct, _, Some(correct)) => correct.clone(),
            _ => predicted.clone(),
        };
        let ood = match &self.ood {
            Some(set) => {
                let (inputs, network) = (set.samples.inputs.clone(), scores(&set.samples.inputs)?);
                Some(Elsewhere { inputs, compared: decisions(network.view()), network, correct: None })
            }
            None => None,
        };
        let fgsm = match self.job.fgsm {
            Some(epsilon) => {
                // Away from the correct class, or from the decision if it is not known.
                let own = self.test.classes.as_ref().unwrap_or(&predicted);
                let slopes = slopes(test.view(), own);
                let inputs = self.known.logits.perturbed::<T>(network, &self.test.samples.inputs, &slopes, epsilon)?;
                let network = scores(&inputs)?;
                Some(Elsewhere { inputs, network, compared: compared.clone(), correct: self.test.classes.clone() })
            }
            None => None,
        };
        Ok(Said { train, test, predicted, compared, ood, fgsm })
    }

    /// Fits the machines to a kernel, or takes the earlier one, and measures them. Kernel values of test samples are
    /// computed once, for scores and attributions of all machines together.
    fn explain<T: Real>(
        &self,
        mut rows: KernelRows<T>,
        said: &Said,
        attribution: Option<(&Grouping, &ResultFolder, &mut Attributed)>,
        context: &Context,
    ) -> Result<(KernelRows<T>, Vec<Explained>), Error> {
        let fits = match &self.earlier {
            Some(earlier) => {
                if let Some(features) = earlier.features::<T>(self.known.samples.n_samples)? {
                    rows = rows.with_features(features);
                }
                let (spec, fitted) = earlier.fitted();
                vec![(spec, earlier.surrogate(self.known.classes.n_classes())?, fitted)]
            }
            None => self.fit(&mut rows, said, context)?,
        };
        for (spec, _, fitted) in fits.iter().filter(|(.., fitted)| fitted.converged == Some(false)) {
            let (kernel, steps) = (rows.spec.name(), fitted.iterations.unwrap_or(0));
            context.note(&format!(
                "the {} on {kernel} did not converge in {steps} steps; a larger ‹penalty› makes its problem easier",
                spec.machine
            ));
        }
        let surrogates: Vec<&Surrogate> = fits.iter().map(|(_, surrogate, _)| surrogate).collect();
        let phase = context.phase("attribution");
        let Seen { scores: seen, examples } = match attribution {
            Some((grouping, folder, attributed)) => {
                let mut attributor = self.attributor(surrogates[0], said, grouping, folder)?;
                let found = self.seen(&rows, &surrogates, &self.test.samples.inputs, Some(&mut attributor), context)?;
                *attributed = attributor.finish()?;
                found
            }
            None => self.seen(&rows, &surrogates, &self.test.samples.inputs, None, context)?,
        };
        let elsewhere = |set: &Option<Elsewhere>| match set {
            Some(set) => Ok::<_, Error>(self.seen(&rows, &surrogates, &set.inputs, None, context)?.scores),
            None => Ok(Vec::new()),
        };
        let (ood, fgsm) = (elsewhere(&said.ood)?, elsewhere(&said.fgsm)?);
        drop(phase);
        let mut explained = Vec::with_capacity(fits.len());
        let mut examples = Some(examples);
        for (at, ((spec, surrogate, fitted), scores)) in fits.iter().zip(seen).enumerate() {
            let findings = SurrogateFindings {
                kernel: rows.spec.name(),
                machine: spec.machine,
                to: spec.to,
                sees: Sight::of_recipe(&rows.recipe),
                penalty: fitted.penalty,
                penalty_norm: fitted.norm,
                selection: fitted.selection.clone(),
                iterations: fitted.iterations,
                converged: fitted.converged,
                n_features: rows.n_features(),
                accuracy: (self.test.classes.as_ref())
                    .map(|correct| accuracy(&decisions(scores.view()), correct))
                    .transpose()?,
                faithfulness: self.faithful(&said.test, &scores, &said.compared, self.test.classes.as_deref())?,
                faithfulness_ood: self.faithful_elsewhere(said.ood.as_ref(), ood.get(at))?,
                faithfulness_fgsm: self.faithful_elsewhere(said.fgsm.as_ref(), fgsm.get(at))?,
            };
            let (spec, surrogate, examples) = (spec.clone(), surrogate.clone(), examples.take().unwrap_or_default());
            explained.push(Explained { spec, surrogate, findings, scores, examples });
        }
        Ok((rows, explained))
    }

    /// Computes the kernel and fits every machine to it.
    fn fit<T: Real>(
        &self,
        rows: &mut KernelRows<T>,
        said: &Said,
        context: &Context,
    ) -> Result<Vec<(SurrogateSpec, Surrogate, Fitted)>, Error> {
        {
            let _phase = context.phase("kernel");
            rows.compute(&self.known.samples.inputs, context)?;
        }
        let scores = said.train.as_ref().map(|scores| scores.view());
        let mut fits = Vec::new();
        for spec in self.job.surrogates() {
            let (surrogate, fitted) = spec.fit(rows, &self.known.classes, scores, self.job.seed, context)?;
            fits.push((spec, surrogate, fitted));
        }
        if self.job.validate.is_none() {
            rows.forget();
        }
        Ok(fits)
    }

    /// The scores of all machines, and the training samples with the largest kernel values.
    fn seen<T: Real>(
        &self,
        rows: &KernelRows<T>,
        surrogates: &[&Surrogate],
        inputs: &[Dataset],
        mut attributor: Option<&mut Attributor<'_, T>>,
        context: &Context,
    ) -> Result<Seen, Error> {
        let n_samples = inputs.first().map_or(0, Dataset::n_samples);
        let empty = |surrogate: &&Surrogate| Array2::zeros((n_samples, surrogate.n_classes));
        let mut scores: Vec<Array2<f64>> = surrogates.iter().map(empty).collect();
        let mut examples = Vec::new();
        rows.visit(inputs, &self.known.samples.inputs, context, &mut |first, rows| {
            for (surrogate, scores) in surrogates.iter().zip(&mut scores) {
                for (at, row) in rows.outer_iter().enumerate() {
                    let own = surrogate.scores(row.as_slice().unwrap_or(&[]))?;
                    scores.row_mut(first + at).assign(&ndarray::aview1(&own));
                }
            }
            if self.job.top > 0 {
                examples.extend(largest(rows, self.job.top, None)?);
            }
            attributor.as_mut().map_or(Ok(()), |attributor| attributor.visit(first, rows))
        })?;
        Ok(Seen { scores, examples })
    }

    fn faithful(
        &self,
        network: &Array2<f64>,
        scores: &Array2<f64>,
        compared: &[usize],
        correct: Option<&[usize]>,
    ) -> Result<Faithfulness, Error> {
        let bootstrap = Bootstrap { draws: DRAWS, seed: self.job.seed };
        Ok(faithfulness(network.view(), scores.view(), compared, correct, bootstrap)?)
    }

    fn faithful_elsewhere(
        &self,
        set: Option<&Elsewhere>,
        scores: Option<&Array2<f64>>,
    ) -> Result<Option<Faithfulness>, Error> {
        let (Some(set), Some(scores)) = (set, scores) else { return Ok(None) };
        self.faithful(&set.network, scores, &set.compared, set.correct.as_deref()).map(Some)
    }

    /// The groups of the training samples, and their names.
    fn grouping(&self) -> (Grouping, Vec<String>) {
        let groups = self.groups.as_ref().unwrap_or(&self.known.classes);
        (Grouping::new(groups.indices(), groups.n_classes()), groups.names().to_vec())
    }

    /// Test samples whose attributions are kept in full: those that the user asked for, or the first ones, which are
    /// drawn.
    pub(super) fn drawn(&self) -> Vec<usize> {
        match self.job.rows.is_empty() {
            true => (0..self.test.samples.n_samples.min(DRAWN)).collect(),
            false => self.job.rows.clone(),
        }
    }

    fn attributor<'a, T: Real>(
        &'a self,
        surrogate: &'a Surrogate,
        said: &'a Said,
        grouping: &'a Grouping,
        folder: &ResultFolder,
    ) -> Result<Attributor<'a, T>, Error> {
        let all = match self.job.all {
            true => {
                let shape = [self.known.samples.n_samples, surrogate.n_classes];
                Some(folder.writer().rows_file::<T>("attribution.npy", &shape)?)
            }
            false => None,
        };
        Ok(Attributor {
            surrogate,
            grouping,
            predicted: &said.predicted,
            correct: self.test.classes.as_deref(),
            top: self.job.top,
            rows: self.drawn(),
            all,
            found: Attributed::default(),
        })
    }

    /// Compares the scores of several methods with networks that were retrained on parts of the data.
    fn validate<T: Real>(
        &self,
        (rows, main): (&KernelRows<T>, &Explained),
        said: &Said,
        folder: &ResultFolder,
        context: &Context,
    ) -> Result<Option<ValidationFindings>, Error> {
        let Some(spec) = &self.job.validate else { return Ok(None) };
        let problem = Problem {
            known: &self.known,
            test: &self.test.samples.inputs,
            classes: &said.compared,
            spec: rows.spec.clone(),
            seed: self.job.seed,
        };
        let phase = context.phase("methods");
        let attribution = problem.attribution(rows, &main.surrogate, context)?;
        drop(phase);
        let (Some(retraining), Some(network_train)) = (&self.retraining, &said.train) else {
            let _phase = context.phase("sanity");
            return self.sanity::<T>(main, (&problem, &attribution), context).map(Some);
        };
        let validator = Validator {
            spec,
            retraining,
            known: &self.known,
            test: &self.test,
            classes: &said.compared,
            folder,
            seed: self.job.seed,
        };
        if spec.kind == Validation::Removal {
            return validator.removal(&attribution, context).map(Some);
        }
        let phase = context.phase("methods");
        let methods = problem.methods((rows, attribution), (network_train, &said.test), context)?;
        drop(phase);
        validator.lds(&methods, context).map(Some)
    }

    /// The contribution of every layer to the score of the predicted class.
    fn layers<T: Real>(
        &self,
        (rows, main): (&KernelRows<T>, &Explained),
        said: &Said,
        folder: &ResultFolder,
        context: &Context,
    ) -> Result<Vec<LayerShare>, Error> {
        let _phase = context.phase("layers");
        let kernel = rows.spec.name();
        let (Some(recipe), SurrogateForm::Dual { weights, .. }) =
            (rows.recipe.clone().by_layer(), &main.surrogate.form)
        else {
            return Err(no_layers(&kernel));
        };
        let failed = |error| rows.spec.failure(error);
        let shapes = self.known.samples.shapes();
        let built = recipe.build::<T>(self.known.source.network(), &shapes).map_err(failed)?;
        let gram = Gram::new(&*built.kernel, &self.test.samples.inputs).against(&self.known.samples.inputs);
        let names = built.kernel.parts();
        let mut found = Array2::zeros((self.test.samples.n_samples, names.len()));
        for blocks in gram.strips(names.len(), context.memory() / 4).map_err(failed)? {
            let (range, strip) = gram.strip(blocks, false, context).map_err(failed)?;
            for (layer, part) in strip.outer_iter().enumerate() {
                for (at, row) in range.clone().zip(part.outer_iter()) {
                    let own: ArrayView1<'_, f64> = weights.row(said.predicted[at]);
                    found[(at, layer)] = own.dot(&row);
                }
            }
        }
        folder.array("layers.npy", &found)?;
        let means = found.mean_axis(Axis(0)).unwrap_or_default();
        let all: f64 = means.sum();
        let share = |(layer, &mean): (String, &f64)| LayerShare { layer, mean, share: mean / all };
        Ok(names.into_iter().zip(&means).map(share).collect())
    }
}

/// Only tangent kernels have parts by layer, and only scores that are sums over training samples have parts.
pub(super) fn no_layers(kernel: &str) -> Error {
    Error::new(format!("‹layers›: {kernel} has no layers"))
        .hint("tangent kernels have layers, such as trace and 'normalised(trace)', with machines other than neighbours")
}
