//! The work: two passes, tests, samples and files.

use super::classes::Decisions;
use super::findings::{SampleFindings, ShiftFindings, ShiftKind, TestFindings, UnlikeSample, ViewFindings};
use super::opened::OpenedShift;
use super::passes::{FirstPass, Reader, SecondPass};
use super::{figures, files, saved, words};
use crate::Error;
use crate::job::record::InputRecord;
use crate::job::{Artefact, Outcome};
use mercer_data::folder::digest;
use mercer_kernel::Real;
use mercer_lens::shift::{Permutations, TestKind, balanced_accuracy, corrected, density_ratios, energy_on_a_line};
use mercer_run::Context;
use std::marker::PhantomData;

/// New samples that are listed.
const LISTED: usize = 10;

/// The work in one precision.
pub(super) struct Work<T>(PhantomData<T>);

/// One number or more per sample, the old ones first.
pub(super) struct PerSample {
    pub(super) pc1: Vec<f64>,
    pub(super) pc2: Vec<f64>,
    pub(super) score: Vec<f64>,
    pub(super) witness: Vec<f64>,
    pub(super) ratio: Vec<f64>,
    pub(super) n_first: usize,
}

impl<T: Real> Work<T> {
    pub(super) fn run(mut opened: OpenedShift, context: &Context) -> Result<Outcome<ShiftFindings>, Error> {
        let folder = opened.folder.take();
        let mut findings = opened.nothing();
        let mut samples = None;
        if let Some(test) = &opened.test {
            let permutations = {
                let _phase = context.phase("permutations");
                let (own, other) = (opened.reference.n_samples, test.n_samples);
                Permutations::draw(own, other, opened.job.permutations, opened.job.seed)?
            };
            samples = Some(opened.compare::<T>(&permutations, &mut findings, context)?);
        }
        findings.sentences = words::sentences(&findings);
        let Some(folder) = folder else { return Ok(opened.watch.outcome(findings, Vec::new(), context)) };
        let _phase = context.phase("writing");
        if let Some(samples) = &samples {
            folder.file("samples.csv", files::samples(samples, &opened.ids, opened.job.keep).as_bytes())?;
            figures::write(&folder, &findings, samples)?;
        }
        let inputs = opened.inputs()?;
        let place = Artefact::file("shift", folder.path().display().to_string());
        let mut outcome = match opened.from {
            Some(_) => {
                let content = serde_json::json!({ "from": opened.job.from });
                folder.finish(opened.given, inputs, findings, &content, (opened.watch, context))?
            }
            None => {
                let network = opened.saved_network.as_ref();
                let content = saved::write(&folder, network, (&opened.reference, &opened.ids[0]), &opened.job)?;
                folder.finish(opened.given, inputs, findings, &content, (opened.watch, context))?
            }
        };
        outcome.artefacts.insert(0, place);
        Ok(outcome)
    }
}

impl OpenedShift {
    /// Findings before any work.
    fn nothing(&self) -> ShiftFindings {
        ShiftFindings {
            network: self.network_name(),
            n_samples: self.reference.n_samples,
            n_test: self.test.as_ref().map_or(0, |test| test.n_samples),
            permutations: self.job.permutations,
            level: self.job.level,
            tests: Vec::new(),
            p_value: None,
            shifted: false,
            kind: None,
            layers: Vec::new(),
            samples: None,
            label_shift: None,
            estimated_accuracy: None,
            approximations: Vec::new(),
            sentences: Vec::new(),
        }
    }

    /// Compares the two sets.
    fn compare<T: Real>(
        &self,
        permutations: &Permutations,
        findings: &mut ShiftFindings,
        context: &Context,
    ) -> Result<PerSample, Error> {
        let mut reader = Reader::<T>::new(self, context)?;
        let first = {
            let _phase = context.phase("first pass");
            reader.first(permutations, context)?
        };
        let mut decisions = self.decisions(&first, permutations)?;
        let second = {
            let _phase = context.phase("second pass");
            let matched = decisions.as_mut().and_then(|found| found.matched.as_mut());
            reader.second(&first, permutations, matched, context)?
        };
        let _phase = context.phase("tests");
        self.test(&reader, &first, &second, decisions.as_ref(), permutations, findings)?;
        findings.approximations = reader.views.iter().filter_map(super::views::ViewSource::approximation).collect();
        let count = self.job.frequencies.saturating_mul(2);
        findings.approximations.push(format!("Gaussian kernels are those of {count} random Fourier features"));
        if let Some(Decisions { labels, accuracy, matched, .. }) = decisions {
            let matched_p_value = matched.map(super::passes::Matched::p_value).transpose()?;
            findings.estimated_accuracy = Some(accuracy);
            // Without other rates of decisions, the classes cannot explain the shift; and a test that finds nothing is no proof.
            let kind = |p: f64| match (p > self.job.level, findings.decisions_differ()) {
                (false, _) => Some(ShiftKind::Covariate),
                (true, true) => Some(ShiftKind::Label),
                (true, false) => None,
            };
            findings.kind = matched_p_value.filter(|_| findings.shifted).and_then(kind);
            findings.label_shift = Some(super::findings::LabelShiftFindings { matched_p_value, ..labels });
        }
        self.samples(&reader.views[reader.main()].name, second, reader.main(), findings)
    }

    /// All tests in all views, and their p-values.
    fn test<T: Real>(
        &self,
        reader: &Reader<'_, T>,
        first: &FirstPass,
        second: &SecondPass,
        decisions: Option<&Decisions>,
        permutations: &Permutations,
        findings: &mut ShiftFindings,
    ) -> Result<(), Error> {
        let mut tests: Vec<(TestKind, String, Vec<f64>)> = Vec::new();
        for ((view, found), projected) in reader.views.iter().zip(&first.statistics).zip(&second.projected) {
            let line = energy_on_a_line(&projected.column(0).to_vec(), permutations)?;
            let all = [
                (TestKind::MmdLinear, found.linear.clone()),
                (TestKind::MmdGaussian, found.gaussian.clone()),
                (TestKind::Classifier, found.classifier.clone()),
                (TestKind::Pc1, line),
            ];
            tests.extend(all.into_iter().map(|(kind, statistics)| (kind, view.name.clone(), statistics)));
        }
        if let (Some(decisions), Some(logits)) = (decisions, &self.logits) {
            tests.push((TestKind::Predictions, logits.node().to_owned(), decisions.statistics.clone()));
        }
        let statistics: Vec<&[f64]> = tests.iter().map(|(.., statistics)| statistics.as_slice()).collect();
        let p_values = corrected(&statistics)?;
        findings.tests = (0..tests.len())
            .map(|at| TestFindings {
                name: tests[at].0,
                node: tests[at].1.clone(),
                statistic: tests[at].2[0],
                p_value: p_values.alone[at],
                corrected_p_value: p_values.corrected[at],
                deviations: p_values.deviations[at],
            })
            .collect();
        (findings.p_value, findings.shifted) = (Some(p_values.least), p_values.least <= self.job.level);
        for (at, (view, fitted)) in reader.views.iter().zip(&first.views).enumerate() {
            let own = findings.tests.iter().filter(|test| test.node == view.name && test.name != TestKind::Predictions);
            findings.layers.push(ViewFindings {
                node: view.name.clone(),
                n_features: view.n_features,
                reduced_to: view.reduced_to(),
                lengthscale: fitted.lengthscale(),
                explained: fitted.explained(),
                accuracy: balanced_accuracy(&second.projected[at].column(2).to_vec(), permutations.n_first()),
                p_value: own.map(|test| test.corrected_p_value).fold(1.0, f64::min),
            });
        }
        Ok(())
    }

    /// Which samples differ.
    fn samples(
        &self,
        node: &str,
        second: SecondPass,
        main: usize,
        findings: &mut ShiftFindings,
    ) -> Result<PerSample, Error> {
        let column = |at: usize| second.projected[main].column(at).to_vec();
        let (pc1, pc2, score, n_first) = (column(0), column(1), column(2), findings.n_samples);
        let ratio = density_ratios(&pc1, &pc2, n_first)?;
        let found = PerSample { pc1, pc2, score, witness: second.witness, ratio, n_first };
        let kept = |ratios: &[f64]| ratios.iter().filter(|ratio| **ratio >= self.job.keep).count();
        let mut order: Vec<usize> = (n_first..found.witness.len()).collect();
        order.sort_by(|&a, &b| found.witness[b].total_cmp(&found.witness[a]).then(a.cmp(&b)));
        let one = |&row: &usize| UnlikeSample {
            row: row - n_first,
            id: self.ids[1].name(row - n_first).into_owned(),
            witness: found.witness[row],
            density_ratio: found.ratio[row],
        };
        findings.samples = Some(SampleFindings {
            node: node.to_owned(),
            keep: self.job.keep,
            n_kept: kept(&found.ratio[..n_first]),
            n_kept_test: kept(&found.ratio[n_first..]),
            least_alike: order.iter().take(LISTED).map(one).collect(),
        });
        Ok(found)
    }

    fn inputs(&self) -> Result<Vec<InputRecord>, Error> {
        let mut inputs = Vec::new();
        match (&self.from, &self.job.from) {
            (Some(print), Some(path)) => {
                inputs.push(InputRecord::new("from", &path.display().to_string(), print.clone()));
            }
            _ => {
                if let (Some(network), Some(path)) = (&self.saved_network, &self.job.net) {
                    inputs.push(InputRecord::new("net", &path.display().to_string(), digest(network.bytes())));
                }
                let places: Vec<String> = self.job.reference.data.iter().map(ToString::to_string).collect();
                inputs.push(InputRecord::new("data", &places.join(", "), self.reference.fingerprint()?));
                if let (Some(labels), Some(print)) = (&self.job.reference.labels, self.reference.labels_fingerprint()) {
                    inputs.push(InputRecord::new("labels", &labels.to_string(), print));
                }
            }
        }
        let [ids, test_ids] = &self.ids;
        inputs.extend(ids.record("ids", self.given.ids.as_ref()));
        inputs.extend(test_ids.record("test-ids", self.given.test_ids.as_ref()));
        if let Some(test) = &self.test {
            let places: Vec<String> = self.job.test.iter().map(ToString::to_string).collect();
            inputs.push(InputRecord::new("test", &places.join(", "), test.fingerprint()?));
            if let (Some(labels), Some(print)) = (&self.job.test_labels, test.labels_fingerprint()) {
                inputs.push(InputRecord::new("test-labels", &labels.to_string(), print));
            }
        }
        Ok(inputs)
    }
}
