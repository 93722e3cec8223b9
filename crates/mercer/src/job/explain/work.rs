//! The work: network, surrogates, faithfulness, attributions and files.

use super::attribute::{Attributed, Attributor, Seen};
use super::figures::Drawing;
use super::findings::{AttributionFindings, ExplainFindings, LayerShare, SurrogateFindings};
use super::methods::Problem;
use super::opened::OpenedExplain;
use super::validate::{Validation, ValidationFindings, Validator};
use super::words::{Sight, recommendation};
use super::{ClassChoice, files, saved};
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::record::InputRecord;
use crate::job::surrogate::{FitTo, Fitted, KernelRows, Surrogate, SurrogateForm, SurrogateSpec, TestSet};
use crate::job::{Artefact, Outcome};
use crate::spec::saved_network;
use mercer_data::folder::SavedSamples;
use mercer_kernel::gram::Gram;
use mercer_kernel::{Real, Recipe};
use mercer_learn::KernelMachine;
use mercer_learn::metrics::accuracy;
use mercer_lens::neighbours::Neighbour;
use mercer_lens::{Bootstrap, Faithfulness, Grouping, decisions, faithfulness, local_gaps};
use mercer_run::Context;
use ndarray::{Array2, Array3, ArrayView1, Axis};
use std::marker::PhantomData;

/// Draws of the bootstrap intervals. The ends of a 95 % interval vary by about a tenth of its width.
const DRAWS: usize = 500;

/// The work in one precision.
pub(super) struct Work<T>(PhantomData<T>);

/// What the network says of the samples.
struct Said {
    train: Option<Array2<f64>>,
    test: Array2<f64>,
    ood: Option<Array2<f64>>,
    /// The class that the network decides for.
    predicted: Vec<usize>,
    /// The class at which network and surrogate are compared.
    compared: Vec<usize>,
}

/// A surrogate with everything that was computed with it.
struct Explained<T: Real> {
    rows: KernelRows<T>,
    surrogate: Surrogate,
    findings: SurrogateFindings,
    scores: Array2<f64>,
    examples: Vec<Vec<Neighbour>>,
}

impl<T: Real> Work<T> {
    pub(super) fn run(mut opened: OpenedExplain, context: &Context) -> Result<Outcome<ExplainFindings>, Error> {
        let Some(folder) = opened.folder.take() else {
            return Err(Error::new("there is no destination for the results"));
        };
        let said = opened.said::<T>(context)?;
        let (grouping, group_names) = opened.grouping();
        let (mut explained, mut attributed) = (Vec::new(), Attributed::default());
        for (at, rows) in opened.kernels::<T>()?.into_iter().enumerate() {
            // The first kernel explains.
            let attribution = (at == 0).then_some((&grouping, &folder, &mut attributed));
            explained.push(opened.explain(rows, &said, attribution, context)?);
        }
        let Some(main) = explained.first() else { return Err(Error::new("‹kernel›: there is none")) };
        let layers = if opened.job.by_layer { Some(opened.layers(main, &said, &folder, context)?) } else { None };
        let validation = opened.validate(main, &said, &folder, context)?;
        let _phase = context.phase("writing");
        let attribution = opened.write(&explained, &said, &attributed, (&folder, layers), group_names)?;
        let line = main.findings.faithfulness.line;
        let line = opened.earlier.as_ref().and_then(saved::SavedExplanation::line).or(line);
        let gaps = local_gaps(said.test.view(), main.scores.view(), &said.compared, line)?;
        let classes = opened.known.classes.names().to_vec();
        let correct = opened.test.classes.as_deref();
        folder.file("local.csv", files::local(&gaps, correct, &said.compared, &classes).as_bytes())?;
        opened.draw(main, &said, &attributed, &attribution, (&folder, line))?;
        let content = opened.save(main, &folder, line)?;
        let mut surrogates: Vec<SurrogateFindings> = explained.into_iter().map(|own| own.findings).collect();
        let tau = |found: &SurrogateFindings| found.faithfulness.tau.unwrap_or(f64::NEG_INFINITY);
        surrogates.sort_by(|a, b| tau(b).total_cmp(&tau(a)));
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

impl OpenedExplain {
    /// The scores of the network on all samples that need them.
    fn said<T: Real>(&self, context: &Context) -> Result<Said, Error> {
        let _phase = context.phase("network");
        let network = self.known.network()?;
        let scores = |set: &TestSet| self.known.logits.scores::<T>(network, &set.samples.inputs, context);
        let test = scores(&self.test)?;
        let ood = self.ood.as_ref().map(scores).transpose()?;
        let train = match self.job.surrogate.to {
            to if self.earlier.is_none() && (to == FitTo::Network || self.job.validate.is_some()) => {
                Some(self.known.logits.scores::<T>(network, &self.known.samples.inputs, context)?)
            }
            _ => None,
        };
        let predicted = decisions(test.view());
        let compared = match (&self.job.class, self.fixed_class, &self.test.classes) {
            (_, Some(class), _) => vec![class; predicted.len()],
            (ClassChoice::Correct, _, Some(correct)) => correct.clone(),
            _ => predicted.clone(),
        };
        Ok(Said { train, test, ood, predicted, compared })
    }

    /// Fits a surrogate, or takes the earlier one, and measures it. Kernel values of test samples are computed once, for
    /// scores and attributions together.
    fn explain<T: Real>(
        &self,
        mut rows: KernelRows<T>,
        said: &Said,
        attribution: Option<(&Grouping, &ResultFolder, &mut Attributed)>,
        context: &Context,
    ) -> Result<Explained<T>, Error> {
        let train = &self.known.samples.inputs;
        let (spec, surrogate, fitted) = match &self.earlier {
            Some(earlier) => {
                if let Some(features) = earlier.features::<T>(self.known.samples.n_samples)? {
                    rows = rows.with_features(features);
                }
                let (spec, fitted) = earlier.fitted();
                (spec, earlier.surrogate(self.known.classes.n_classes())?, fitted)
            }
            None => {
                {
                    let _phase = context.phase("kernel");
                    rows.compute(train, context)?;
                }
                let spec = self.job.surrogate.clone();
                let scores = said.train.as_ref().map(|scores| scores.view());
                let (surrogate, fitted) = spec.fit(&rows, &self.known.classes, scores, self.job.seed, context)?;
                if self.job.validate.is_none() {
                    rows.forget();
                }
                (spec, surrogate, fitted)
            }
        };
        if fitted.converged == Some(false) {
            let kernel = rows.spec.name();
            context.note(&format!(
                "the {} on {kernel} did not converge; a larger ‹penalty› makes its problem easier",
                spec.machine
            ));
        }
        let seen = |set: &TestSet, top: usize, attributor: Option<&mut Attributor<'_>>| -> Result<Seen<'_>, Error> {
            let _phase = context.phase("attribution");
            let mut seen = Seen::new(&surrogate, set.samples.n_samples, top);
            let mut attributor = attributor;
            rows.visit(&set.samples.inputs, train, context, &mut |first, rows| {
                seen.visit(first, rows)?;
                attributor.as_mut().map_or(Ok(()), |attributor| attributor.visit(first, rows))
            })?;
            Ok(seen)
        };
        let Seen { scores, examples, .. } = match attribution {
            Some((grouping, folder, attributed)) => {
                let mut attributor = self.attributor(&surrogate, said, grouping, folder)?;
                let found = seen(&self.test, self.job.top, Some(&mut attributor))?;
                *attributed = attributor.finish()?;
                found
            }
            None => seen(&self.test, self.job.top, None)?,
        };
        let other = self.ood.as_ref().map(|set| seen(set, 0, None)).transpose()?;
        let bootstrap = Bootstrap { draws: DRAWS, seed: self.job.seed };
        let truth = self.test.classes.as_deref();
        let faithful = faithfulness(said.test.view(), scores.view(), &said.compared, truth, bootstrap)?;
        let faithful_ood = match (&other, &said.ood) {
            (Some(Seen { scores, .. }), Some(network)) => {
                let predicted = decisions(network.view());
                Some(faithfulness(network.view(), scores.view(), &predicted, None, bootstrap)?)
            }
            _ => None,
        };
        let accuracy = truth.map(|truth| accuracy(&decisions(scores.view()), truth)).transpose()?;
        let findings = surrogate_findings(&rows, &spec, fitted, (accuracy, faithful, faithful_ood));
        Ok(Explained { rows, surrogate, findings, scores, examples })
    }

    /// The groups of the training samples, and their names.
    fn grouping(&self) -> (Grouping, Vec<String>) {
        let groups = self.groups.as_ref().unwrap_or(&self.known.classes);
        (Grouping::new(groups.indices(), groups.n_classes()), groups.names().to_vec())
    }

    fn attributor<'a>(
        &'a self,
        surrogate: &'a Surrogate,
        said: &'a Said,
        grouping: &'a Grouping,
        folder: &ResultFolder,
    ) -> Result<Attributor<'a>, Error> {
        let all = match self.job.all {
            true => {
                let shape = [self.known.samples.n_samples, surrogate.n_classes];
                Some(folder.writer().rows_file::<f32>("attribution.npy", &shape)?)
            }
            false => None,
        };
        Ok(Attributor {
            surrogate,
            grouping,
            predicted: &said.predicted,
            correct: self.test.classes.as_deref(),
            top: self.job.top,
            rows: &self.job.rows,
            all,
            found: Attributed::default(),
        })
    }

    /// Compares the scores of several methods with networks that were retrained on parts of the data.
    fn validate<T: Real>(
        &self,
        main: &Explained<T>,
        said: &Said,
        folder: &ResultFolder,
        context: &Context,
    ) -> Result<Option<ValidationFindings>, Error> {
        let (Some(spec), Some(retraining), Some(network_train)) = (&self.job.validate, &self.retraining, &said.train)
        else {
            return Ok(None);
        };
        let kept = folder.path().join("retrained");
        let problem = Problem {
            known: &self.known,
            test: &self.test.samples.inputs,
            classes: &said.compared,
            network_train,
            network_test: &said.test,
            spec: main.rows.spec.clone(),
            seed: self.job.seed,
        };
        let validator = Validator {
            spec,
            retraining,
            known: &self.known,
            test: &self.test,
            classes: &said.compared,
            kept: &kept,
            seed: self.job.seed,
        };
        let phase = context.phase("methods");
        let attribution = problem.attribution(&main.rows, &main.surrogate, &main.scores, context)?;
        match spec.kind {
            Validation::Removal => {
                drop(phase);
                validator.removal(&attribution, context).map(Some)
            }
            Validation::Lds => {
                let methods = problem.methods((&main.rows, attribution), context)?;
                drop(phase);
                validator.lds(&methods, context).map(Some)
            }
        }
    }

    /// The contribution of every layer to the score of the predicted class.
    fn layers<T: Real>(
        &self,
        main: &Explained<T>,
        said: &Said,
        folder: &ResultFolder,
        context: &Context,
    ) -> Result<Vec<LayerShare>, Error> {
        let _phase = context.phase("layers");
        let kernel = main.rows.spec.name();
        let (Some(recipe), SurrogateForm::Dual { weights, .. }) =
            (main.rows.recipe.clone().by_layer(), &main.surrogate.form)
        else {
            return Err(Error::new(format!("‹by-layer›: {kernel} has no layers"))
                .hint("exact tangent kernels have layers, such as trace and 'normalised(trace)', with machines other than neighbours"));
        };
        let failed = |error| main.rows.spec.failure(error);
        let shapes = self.known.samples.shapes();
        let built = recipe.build::<T>(self.known.source.network(), &shapes).map_err(failed)?;
        let gram = Gram::new(&*built.kernel, &self.test.samples.inputs).against(&self.known.samples.inputs);
        let names = built.kernel.parts();
        let mut found = Array2::zeros((self.test.samples.n_samples, names.len()));
        for blocks in gram.strips(names.len(), context.memory() / 4).map_err(failed)? {
            let (rows, strip) = gram.strip(blocks, false, context).map_err(failed)?;
            for (layer, part) in strip.outer_iter().enumerate() {
                for (at, row) in rows.clone().zip(part.outer_iter()) {
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

    /// Writes the arrays and tables.
    fn write<T: Real>(
        &self,
        explained: &[Explained<T>],
        said: &Said,
        attributed: &Attributed,
        (folder, layers): (&ResultFolder, Option<Vec<LayerShare>>),
        groups: Vec<String>,
    ) -> Result<AttributionFindings, Error> {
        let main = &explained[0];
        let (classes, ids) = (self.known.classes.names(), &self.known.ids);
        let (n_classes, n_groups) = (classes.len(), groups.len());
        folder.file("top.csv", files::top(attributed, classes, ids).as_bytes())?;
        let examples: Vec<(String, Vec<Vec<Neighbour>>)> =
            explained.iter().map(|own| (own.findings.kernel.clone(), own.examples.clone())).collect();
        if self.job.top > 0 {
            folder.file("examples.csv", files::examples(&examples, ids).as_bytes())?;
        }
        folder.array("scores.npy", &main.scores)?;
        folder.array("network_scores.npy", &said.test)?;
        folder.array("distribution.npy", &attributed.distributions(&said.predicted, n_groups))?;
        if let Some(means) = attributed.means(n_classes, n_groups) {
            folder.array("means.npy", &means)?;
        }
        if !self.job.rows.is_empty() {
            let n_train = self.known.samples.n_samples;
            let mut whole = Array3::zeros((self.job.rows.len(), n_train, n_classes));
            for (mut slot, row) in whole.outer_iter_mut().zip(&self.job.rows) {
                if let Some((_, kept)) = attributed.kept.iter().find(|(own, _)| own == row) {
                    slot.assign(kept);
                }
            }
            folder.array("attribution.npy", &whole)?;
        }
        let (effective_samples, top_share) = attributed.concentration(&said.predicted);
        Ok(AttributionFindings {
            kernel: main.findings.kernel.clone(),
            groups,
            effective_samples,
            top_share,
            mean_inside_quartiles: attributed.inside(&said.predicted),
            mean_by_group: attributed.by_group(&said.predicted, n_classes, n_groups),
            layers,
        })
    }

    fn draw<T: Real>(
        &self,
        main: &Explained<T>,
        said: &Said,
        attributed: &Attributed,
        found: &AttributionFindings,
        (folder, line): (&ResultFolder, Option<mercer_lens::Line>),
    ) -> Result<(), Error> {
        let drawing = Drawing {
            folder,
            classes: self.known.classes.names(),
            groups: &found.groups,
            ids: &self.known.ids,
            train: &self.known.samples,
            labels: self.known.classes.indices(),
            test: &self.test.samples,
            rows: &self.job.rows,
            predicted: &said.predicted,
            compared: &said.compared,
        };
        drawing.faithfulness(&said.test, &main.scores, line)?;
        drawing.means(&found.mean_by_group)?;
        drawing.boxes(attributed)?;
        drawing.examples(attributed)
    }

    /// Saves the index, and beside it the surrogate unless it is an earlier one.
    fn save<T: Real>(
        &self,
        main: &Explained<T>,
        folder: &ResultFolder,
        line: Option<mercer_lens::Line>,
    ) -> Result<serde_json::Value, Error> {
        let (Some(net), None) = (&self.job.net, &self.earlier) else {
            let from = self.earlier.as_ref().map(|earlier| earlier.path().display().to_string());
            return Ok(serde_json::json!({ "from": from }));
        };
        let network = saved_network(net, &self.job.parameters, self.known.network()?)?;
        let penalty = main.findings.penalty;
        let surrogate = (&self.job.surrogate, penalty);
        let content = saved::write(folder, &network, &main.rows, surrogate, (self.job.node.clone(), line))?;
        // Machines compute their kernel in double precision.
        let shapes = self.known.samples.shapes();
        let failed = |error| main.rows.spec.failure(error);
        let recipe: &Recipe = &main.rows.recipe;
        let needed = self.known.source.network().filter(|_| recipe.needs_network());
        let built = recipe.build::<f64>(needed, &shapes).map_err(failed)?;
        let kernel = main.rows.spec.saved(recipe, &self.known.source, &built)?;
        let samples = SavedSamples {
            inputs: self.known.samples.inputs.clone(),
            columns: self.known.samples.columns.clone(),
            labels: Some(mercer_data::Labels::Classes(self.known.classes.clone())),
            ids: self.known.ids.names(),
        };
        let machine = KernelMachine { machine: main.surrogate.machine.clone(), kernel: Some(kernel), samples };
        saved::save_surrogate(folder.path(), &machine, self.destination.force)?;
        serde_json::to_value(content).map_err(|error| Error::new(format!("the index cannot be written: {error}")))
    }

    /// The inputs that decide the numbers, besides the settings.
    fn inputs(&self) -> Result<Vec<InputRecord>, Error> {
        let mut inputs = Vec::new();
        match (&self.job.net, &self.earlier) {
            (_, Some(earlier)) => {
                inputs.push(InputRecord::new("from", &earlier.path().display().to_string(), earlier.fingerprint()));
            }
            (Some(net), None) => {
                let place = net.display().to_string();
                let network = saved_network(net, &self.job.parameters, self.known.network()?)?;
                inputs.push(InputRecord::new("net", &place, mercer_data::folder::digest(network.bytes())));
                let train = &self.known.samples;
                inputs.push(InputRecord::new("data", &train.places(), train.fingerprint()?));
                if let (Some(labels), Some(print)) = (&self.job.train.labels, train.labels_fingerprint()) {
                    inputs.push(InputRecord::new("labels", &labels.to_string(), print));
                }
            }
            (None, None) => {}
        }
        for (setting, set) in [("test", Some(&self.test)), ("ood", self.ood.as_ref())] {
            if let Some(set) = set {
                inputs.push(InputRecord::new(setting, &set.samples.places(), set.samples.fingerprint()?));
            }
        }
        if let (Some(labels), Some(print)) = (&self.job.test_labels, self.test.samples.labels_fingerprint()) {
            inputs.push(InputRecord::new("test-labels", &labels.to_string(), print));
        }
        Ok(inputs)
    }
}

fn surrogate_findings<T: Real>(
    rows: &KernelRows<T>,
    spec: &SurrogateSpec,
    fitted: Fitted,
    (accuracy, faithfulness, faithfulness_ood): (Option<f64>, Faithfulness, Option<Faithfulness>),
) -> SurrogateFindings {
    SurrogateFindings {
        kernel: rows.spec.name(),
        machine: spec.machine,
        to: spec.to,
        sees: Sight::of_recipe(&rows.recipe),
        penalty: fitted.penalty,
        penalty_norm: fitted.norm,
        selection: fitted.selection,
        iterations: fitted.iterations,
        converged: fitted.converged,
        n_features: rows.n_features(),
        accuracy,
        faithfulness,
        faithfulness_ood,
    }
}
