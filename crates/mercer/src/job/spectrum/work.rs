//! The work: weights, kernels, files.

use super::findings::{CheckpointSpectra, KernelSpectrum, KernelTargets, SpectrumFindings, WeightSpectrum};
use super::kernels::{self, FirstKernel};
use super::opened::{OpenedSpectrum, checkpoint};
use super::products::{self, FeatureProducts};
use super::weights::{FirstWeight, spectrum};
use super::{figures, words};
use crate::Error;
use crate::error::cannot_open;
use crate::job::record::InputRecord;
use crate::job::surrogate::KernelRows;
use crate::job::{Artefact, Outcome};
use crate::spec::{KernelSpec, NetworkSource, saved_network};
use mercer_data::folder::digest;
use mercer_data::read_regular;
use mercer_kernel::{NtkOperator, Real, Recipe};
use mercer_lens::spectra::TargetAlignment;
use mercer_net::Network;
use mercer_run::Context;
use rayon::prelude::*;
use std::marker::PhantomData;
use std::path::Path;

/// The normalisation of the eigenvalues of weights.
const NORMALISATION: &str =
    "eigenvalues of W·Wᵀ/d for a weight of h outputs and d inputs; those of Wᵀ·W/h are d/h times as large";

/// The conjugate kernel.
const CONJUGATE: &str = "ck";

/// The work in one precision.
pub(super) struct Work<T>(PhantomData<T>);

/// What later checkpoints are compared with.
struct First {
    weights: Vec<FirstWeight>,
    ck: Option<FirstKernel>,
    ntk: Option<FirstKernel>,
}

impl<T: Real> Work<T> {
    pub(super) fn run(mut opened: OpenedSpectrum, context: &Context) -> Result<Outcome<SpectrumFindings>, Error> {
        let folder = opened.folder.take();
        let paths: Vec<Option<&Path>> = match opened.job.checkpoints.is_empty() {
            true => vec![None],
            false => opened.job.checkpoints.iter().map(|path| Some(path.as_path())).collect(),
        };
        let mut checkpoints = Vec::with_capacity(paths.len());
        let mut first: Option<First> = None;
        for (at, path) in paths.iter().enumerate() {
            let network = checkpoint(&opened.job, *path)?;
            let name = path.unwrap_or(&opened.job.net);
            let name = name.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
            let (found, own) = opened.spectra::<T>(network, name, first.as_ref(), context)?;
            checkpoints.push(found);
            first = first.or(Some(own));
            context.report(at + 1, paths.len(), "checkpoints");
        }
        let mut findings = SpectrumFindings {
            network: opened.job.net.display().to_string(),
            normalisation: NORMALISATION,
            n_samples: opened.samples.as_ref().map_or(0, |samples| samples.n_samples),
            checkpoints,
            sentences: Vec::new(),
        };
        findings.sentences = words::sentences(&findings);
        let Some(folder) = folder else { return Ok(opened.watch.outcome(findings, Vec::new(), context)) };
        let _phase = context.phase("writing");
        figures::write(&folder, &findings)?;
        let inputs = opened.inputs()?;
        let place = Artefact::file("spectrum", folder.path().display().to_string());
        let content = serde_json::json!({ "kernel": opened.job.kernel });
        let mut outcome = folder.finish(opened.job, inputs, findings, &content, (opened.watch, context))?;
        outcome.artefacts.insert(0, place);
        Ok(outcome)
    }
}

/// A kernel's spectrum, its alignment with labels, and what later ones are compared with.
type OfKernel = (KernelSpectrum, Option<TargetAlignment>, FirstKernel);

impl OpenedSpectrum {
    fn spectra<T: Real>(
        &self,
        network: Network,
        name: String,
        first: Option<&First>,
        context: &Context,
    ) -> Result<(CheckpointSpectra, First), Error> {
        let settings = (self.job.leading, self.job.seed);
        let weights = {
            let _phase = context.phase("weights");
            let (all, directions) = (&self.weights, self.directions.as_ref());
            let one = |at: usize| -> Result<(WeightSpectrum, FirstWeight), Error> {
                context.check()?;
                let earlier = first.map(|first| &first.weights[at]);
                spectrum(&all[at], all[at].values(&network)?, directions, settings, earlier)
            };
            (0..all.len()).into_par_iter().map(one).collect::<Result<Vec<_>, Error>>()?
        };
        let (weights, firsts): (Vec<_>, Vec<_>) = weights.into_iter().unzip();
        let (mut ck, mut ntk) = (None, None);
        if self.samples.is_some() {
            let _phase = context.phase("kernels");
            let source = NetworkSource::Trained(network);
            // Some networks have no last hidden layer.
            ck = match self.rows::<T>(CONJUGATE, &source) {
                Ok(rows) => Some(self.kernel(rows, &source, first.and_then(|first| first.ck.as_ref()), context)?),
                Err(error) => {
                    context.note(&format!("there is no conjugate kernel: {error}"));
                    None
                }
            };
            let rows = self.rows::<T>(&self.job.kernel, &source)?;
            ntk = Some(self.kernel(rows, &source, first.and_then(|first| first.ntk.as_ref()), context)?);
        }
        let (ck, ck_target, first_ck) = split(ck);
        let (ntk, ntk_target, first_ntk) = split(ntk);
        let kta = ntk_target.map(|ntk| KernelTargets { ck: ck_target, ntk });
        let first = First { weights: firsts, ck: first_ck, ntk: first_ntk };
        Ok((CheckpointSpectra { name, weights, ck, ntk, kta }, first))
    }

    fn rows<T: Real>(&self, text: &str, source: &NetworkSource) -> Result<KernelRows<T>, Error> {
        let spec = KernelSpec::of_network(text, &self.job.net, &self.job.parameters, self.job.seed);
        let shapes = self.samples.as_ref().map(|samples| samples.shapes()).unwrap_or_default();
        KernelRows::build(spec, source, &shapes)
    }

    fn kernel<T: Real>(
        &self,
        mut rows: KernelRows<T>,
        source: &NetworkSource,
        first: Option<&FirstKernel>,
        context: &Context,
    ) -> Result<OfKernel, Error> {
        let (text, targets, leading) = (rows.spec.name(), self.targets.as_ref(), self.job.leading);
        let inputs = self.samples.as_ref().map_or(&[][..], |samples| &samples.inputs[..]);
        let Some(n_products) = self.products else {
            rows.compute(inputs, context)?;
            return kernels::spectrum(&text, rows.gram()?.into_owned(), targets, (leading, T::epsilon().wide()), first);
        };
        let settings = (leading, n_products, self.job.seed);
        if rows.map().is_some() {
            rows.compute(inputs, context)?;
            let features = rows.features().ok_or_else(|| Error::new("the features are missing"))?.clone();
            return products::spectrum(&text, &FeatureProducts(features), targets, settings, first, context);
        }
        let (Recipe::Tangent { kind, selection, .. }, Some(network)) = (&rows.recipe, source.network()) else {
            let error = Error::new(format!("‹kernel› {text}: products without a matrix are for tangent kernels"));
            return Err(error.hint("‹kernel› trace or pseudo, a sketch of it, or more ‹memory› for the matrix"));
        };
        let operator = NtkOperator::<T>::new(network, inputs, *kind, selection, context)?;
        let found = products::spectrum(&text, &operator, targets, settings, first, context);
        match operator.failure() {
            Some(error) => Err(error.into()),
            None => found,
        }
    }

    fn inputs(&self) -> Result<Vec<InputRecord>, Error> {
        let network = saved_network(&self.job.net, &self.job.parameters, &self.network)?;
        let place = self.job.net.display().to_string();
        let mut inputs = vec![InputRecord::new("net", &place, digest(network.bytes()))];
        for path in &self.job.checkpoints {
            let bytes = read_regular(path, u64::MAX).map_err(|error| cannot_open(path.display(), &error))?;
            inputs.push(InputRecord::new("weights", &path.display().to_string(), digest(&bytes)));
        }
        if let Some(samples) = &self.samples {
            inputs.push(InputRecord::new("data", &samples.places(), samples.fingerprint()?));
            let labels = self.job.data.as_ref().and_then(|data| data.labels.as_ref());
            if let (Some(labels), Some(print)) = (labels, samples.labels_fingerprint()) {
                inputs.push(InputRecord::new("labels", &labels.to_string(), print));
            }
        }
        if let (Some(reference), Some(rows)) = (&self.job.direction, &self.directions) {
            inputs.push(InputRecord::new("direction", &reference.to_string(), crate::job::rows::fingerprint(rows)));
        }
        Ok(inputs)
    }
}

fn split(found: Option<OfKernel>) -> (Option<KernelSpectrum>, Option<TargetAlignment>, Option<FirstKernel>) {
    match found {
        Some((spectrum, target, first)) => (Some(spectrum), target, Some(first)),
        None => (None, None, None),
    }
}
