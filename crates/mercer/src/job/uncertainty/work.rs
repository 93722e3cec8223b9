//! The work: posterior, prior, predictions and files.

use super::choice::{NoiseChoice, PosteriorMethod, Predictive, PriorChoice};
use super::conformal::Labelled;
use super::findings::{Scores, UncertaintyFindings};
use super::labels::labels_setting;
use super::opened::OpenedUncertainty;
use super::saved::Content;
use super::select::Row;
use super::{Predictions, UncertaintyJob, figures};
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::record::InputRecord;
use crate::job::{Opened, Outcome};
use crate::spec::Samples;
use mercer_data::Labels;
use mercer_kernel::Real;
use mercer_learn::laplace::{
    ClassScores, Detection, Laplace, Marginals, Posterior, RegressionScores, entropies, features_of,
};
use mercer_report::figure::Figure;
use mercer_run::Context;
use mercer_spectral::Eigenfunctions;
use ndarray::{Array2, ArrayView2};
use std::marker::PhantomData;

/// The work in one precision.
pub(super) struct Work<T>(PhantomData<T>);

impl<T: Real> Work<T> {
    pub(super) fn run(mut opened: OpenedUncertainty, context: &Context) -> Result<Outcome<UncertaintyFindings>, Error> {
        let Some(folder) = opened.folder.take() else {
            return Err(Error::new("there is no destination for the results"));
        };
        let inputs = opened.inputs()?;
        let (laplace, functions) = opened.fit::<T>(context)?;
        let (predictive, chosen) = opened.select(&laplace, context)?;
        let predictive = opened.calibrate(&laplace, predictive, context)?;
        let (job, parts) = (&opened.job, &opened.parts);
        let phase = context.phase("predicting");
        let draws = predictive.draws();
        let predict = |samples: &Samples| {
            laplace.marginals(&samples.inputs, draws.as_ref(), context).map_err(|error| job.failure(error))
        };
        let own = predict(&parts.test)?;
        let other = parts.ood.as_ref().map(predict).transpose()?;
        let needs = opened.plan().needs;
        let (n_train, n_test) = (parts.train.n_samples, parts.test.n_samples);
        let mut findings = UncertaintyFindings::begin(job, needs, n_train, n_test);
        findings.prior_precision = laplace.prior_precision();
        findings.noise = laplace.noise();
        let evidence = laplace.log_evidence(laplace.prior_precision());
        findings.log_evidence = evidence.map_err(|error| job.failure(error))?;
        let repairs = laplace.repairs().map_err(|error| job.failure(error))?;
        findings.repairs = repairs.iter().map(ToString::to_string).collect();
        findings.clipped = own.clipped + other.as_ref().map_or(0, |other| other.clipped);
        findings.chosen = chosen;
        drop(phase);
        let names = parts.train.trained_on().classes;
        let mut results =
            Results { folder: &folder, files: Vec::new(), findings: &mut findings, predictive: &predictive };
        results.put(&own, parts.test.labels.as_ref(), other.as_ref(), context)?;
        results.regions(own, parts.test.labels.as_ref(), names.as_deref())?;
        findings.files = results.files;
        findings.compare(context);
        let (network, trained_on) = (opened.saved.clone(), parts.train.trained_on());
        let posterior = Posterior { laplace, network, functions, trained_on };
        let content = Content { posterior: posterior.write(folder.writer())?, predictive };
        let mut outcome = folder.finish(job.clone(), inputs, findings, &content, (opened.watch, context))?;
        outcome.measurements.note("needs_bytes", &needs.bytes);
        Ok(outcome)
    }
}

impl OpenedUncertainty {
    /// The posterior with its prior, and its eigenfunctions.
    fn fit<T: Real>(&self, context: &Context) -> Result<(Laplace<T>, Vec<Eigenfunctions<T>>), Error> {
        let (job, network, train) = (&self.job, &self.network, &self.parts.train);
        let functions = match job.method {
            PosteriorMethod::Eigen { components, landmarks, .. } => {
                let _phase = context.phase("functions");
                self.functions::<T>(components, landmarks, context)?
            }
            _ => Vec::new(),
        };
        let phase = context.phase("fitting");
        let known = &self.parts.known;
        let fitted = match &functions[..] {
            [] => Laplace::<T>::fit(network, &train.inputs, known, &self.settings, context),
            some => {
                let graph = network.graph(&train.shapes()).map_err(|error| job.failure(error.into()))?;
                let n_outputs = self.settings.n_outputs(&graph).map_err(|error| job.failure(error))?;
                let map = features_of(some, n_outputs).map_err(|error| job.failure(error))?;
                Laplace::fit_features(network, map, &train.inputs, known, &self.settings, context)
            }
        };
        let mut laplace = fitted.map_err(|error| job.failure(error))?;
        laplace.notes().iter().for_each(|note| context.note(note));
        drop(phase);
        let _phase = context.phase("prior");
        job.choose_prior(&mut laplace, self.parts.divided.choosing.as_ref(), context)?;
        Ok((laplace, functions))
    }

    /// The inputs that decide the numbers, besides the settings.
    fn inputs(&self) -> Result<Vec<InputRecord>, Error> {
        let place = self.job.net.display().to_string();
        let mut inputs = vec![InputRecord { setting: "net".to_owned(), place, fingerprint: self.fingerprint.clone() }];
        let parts = &self.parts;
        for (setting, samples, labels) in [
            ("data", Some(&parts.train), self.job.train.labels.as_ref()),
            ("test", Some(&parts.test), self.job.test_labels.as_ref()),
            ("ood", parts.ood.as_ref(), None),
            ("validation", parts.validation.as_ref(), self.job.validation_labels.as_ref()),
        ] {
            let Some(samples) = samples else { continue };
            let (place, fingerprint) = (samples.places(), samples.fingerprint()?);
            inputs.push(InputRecord { setting: setting.to_owned(), place, fingerprint });
            if let (Some(labels), Some(fingerprint)) = (labels, samples.labels_fingerprint()) {
                let setting = labels_setting(setting);
                inputs.push(InputRecord { setting, place: labels.to_string(), fingerprint });
            }
        }
        inputs.extend(self.job.of_functions()?);
        Ok(inputs)
    }
}

impl UncertaintyJob {
    /// The observation noise of a regression, then the prior; together if the evidence chooses both.
    fn choose_prior<T: Real>(
        &self,
        laplace: &mut Laplace<T>,
        validation: Option<&Labelled>,
        context: &Context,
    ) -> Result<(), Error> {
        let by_evidence = self.noise == NoiseChoice::Evidence && laplace.noise().is_some();
        if by_evidence {
            let chosen = match self.prior.is_searched() {
                false => laplace.maximise_noise(context).map(|_| ()),
                true => laplace.maximise_evidence_and_noise(context).map(|_| ()),
            };
            chosen.map_err(|error| {
                let error = self.failure(error);
                if error.is_interrupted() { error } else { error.hint("set it: ‹noise-std› SIGMA") }
            })?;
        }
        let chosen = match (self.prior, validation) {
            (PriorChoice::Given(_) | PriorChoice::WeightDecay(_), _) => return Ok(()),
            (PriorChoice::Evidence, _) if by_evidence => return Ok(()),
            (PriorChoice::Validation, Some(samples)) => {
                let found = laplace.validate(&samples.inputs, &samples.labels, context);
                found.map(|found| found.note().iter().for_each(|note| context.note(note)))
            }
            _ => laplace.maximise_evidence(context).map(|_| ()),
        };
        chosen.map_err(|error| self.failure(error))
    }
}

/// The named files, and their scores.
struct Results<'a> {
    folder: &'a ResultFolder,
    files: Vec<String>,
    findings: &'a mut UncertaintyFindings,
    predictive: &'a Predictive,
}

impl Results<'_> {
    fn put(
        &mut self,
        own: &Marginals,
        labels: Option<&Labels>,
        other: Option<&Marginals>,
        context: &Context,
    ) -> Result<(), Error> {
        let _phase = context.phase("writing");
        if let Some(noise) = own.noise() {
            let other = other.map(|other| other.variance.clone());
            return self.values((own.mean.clone(), own.variance.clone(), noise), labels, other);
        }
        let predictive = self.predictive;
        let predicted = |found: &Marginals| predictive.rows(found);
        self.classes(&predicted(own), labels, other.map(predicted).as_deref())?;
        self.array("variance.npy", own.variance.view())
    }

    /// The sets or intervals, if they were calibrated.
    fn regions(&mut self, own: Marginals, labels: Option<&Labels>, names: Option<&[String]>) -> Result<(), Error> {
        let Some(calibrated) = &self.predictive.conformal else { return Ok(()) };
        let (Predictions::Classes { regions, .. } | Predictions::Values { regions, .. }) =
            Predictions::new(own, self.predictive, names)?;
        if let Some(regions) = regions {
            self.findings.conformal = Some(regions.findings(calibrated, labels)?);
            self.files.extend(regions.write(self.folder, names)?);
        }
        Ok(())
    }

    /// Of the network alone, at its temperature, and of the posterior.
    fn classes(
        &mut self,
        own: &[(Row, Array2<f64>)],
        labels: Option<&Labels>,
        other: Option<&[(Row, Array2<f64>)]>,
    ) -> Result<(), Error> {
        let (result, is_chosen) = (self.predictive.result(), self.findings.chosen.is_some());
        let mut entropy = Vec::new();
        for (at, (row, own)) in own.iter().enumerate() {
            let mut scores = Scores::default();
            if let Some(Labels::Classes(classes)) = labels {
                scores.classes = Some(ClassScores::measure(own.view(), classes.indices())?);
            }
            let usual = entropies(own.view()).to_vec();
            let mut unusual = None;
            if let Some((_, other)) = other.map(|other| &other[at]) {
                let found = entropies(other.view()).to_vec();
                scores.detection = Some(Detection::measure(&usual, &found)?);
                unusual = Some(found);
            }
            // The result, and the rows that it was chosen from.
            let prefixes = [(*row == result).then_some(""), (*row != result || is_chosen).then_some(row.prefix())];
            for prefix in prefixes.into_iter().flatten() {
                self.array(&format!("{prefix}probabilities.npy"), own.view())?;
                if let Some((_, other)) = other.map(|other| &other[at]) {
                    self.array(&format!("ood_{prefix}probabilities.npy"), other.view())?;
                }
            }
            entropy.push(figures::Entropies { row: *row, usual, other: unusual });
            match row {
                Row::Network => self.findings.map = scores,
                Row::Scaled => self.findings.scaled = Some(scores),
                Row::Laplace => self.findings.laplace = scores,
            }
        }
        self.figure("entropy.svg", &figures::entropy(entropy))?;
        match figures::reliability(self.findings) {
            Some(figure) => self.figure("reliability.svg", &figure),
            None => Ok(()),
        }
    }

    fn values(
        &mut self,
        (mean, variance, noise): (Array2<f64>, Array2<f64>, f64),
        labels: Option<&Labels>,
        other: Option<Array2<f64>>,
    ) -> Result<(), Error> {
        self.array("mean.npy", mean.view())?;
        self.array("variance.npy", variance.view())?;
        let findings = &mut *self.findings;
        if let Some(Labels::Targets(targets)) = labels {
            let alone = Array2::from_elem(targets.dim(), noise * noise);
            for (variances, scores) in [(alone.clone(), &mut findings.map), (&variance + &alone, &mut findings.laplace)]
            {
                scores.values = Some(RegressionScores::measure(mean.view(), variances.view(), targets.view())?);
            }
        }
        let deviation =
            |variances: &Array2<f64>| -> Vec<f64> { variances.outer_iter().map(|row| row.sum().sqrt()).collect() };
        let (usual, other) = (deviation(&variance), other.as_ref().map(deviation));
        if let Some(other) = &other {
            findings.laplace.detection = Some(Detection::measure(&usual, other)?);
        }
        self.figure("deviation.svg", &figures::deviation(usual, other))
    }

    fn array(&mut self, name: &str, array: ArrayView2<'_, f64>) -> Result<(), Error> {
        self.files.push(name.to_owned());
        self.folder.array(name, &array)
    }

    fn figure(&mut self, name: &str, figure: &Figure) -> Result<(), Error> {
        self.files.push(name.to_owned());
        self.folder.file(name, figure.to_svg().as_bytes())
    }
}
