//! The work: kernels, opinions, the review list, duplicates, poison and files.

use super::findings::{AuditFindings, DuplicateFindings, ForensicFindings, OpinionFindings};
use super::opened::OpenedAudit;
use super::poison::Space;
use super::{figures, files};
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::record::InputRecord;
use crate::job::surrogate::{CHOSEN_AMONG, KernelRows, ROUGH, ROUGH_STEPS, SurrogateSpec};
use crate::job::{Artefact, Outcome};
use crate::spec::saved_network;
use mercer_data::{Dataset, Fingerprint, RowBlock};
use mercer_kernel::Real;
use mercer_learn::metrics::accuracy;
use mercer_learn::softmax;
use mercer_learn::surrogate::{DualGlm, DualRidge, Influence, PenaltyChoice, RidgeInfluence, one_hot};
use mercer_lens::audit::{
    Confidence, Opinion, Review, Votes, confident_joint, conflicting_duplicates, leave_one_out_residuals, measure,
    neighbour_disagreement, out_of_fold, review,
};
use mercer_lens::duplicates::{Duplicates, exact, near};
use mercer_lens::forensics::{Rule, evaluate, trace};
use mercer_lens::neighbours::{Neighbour, largest};
use mercer_lens::{decisions, log_odds};
use mercer_run::Context;
use ndarray::{Array1, Array2};
use std::marker::PhantomData;

/// Shares of the data after whose inspection the audit is measured.
const BUDGETS: [f64; 5] = [0.01, 0.05, 0.1, 0.2, 0.5];

/// Groups of contradicting duplicates that are listed in the findings.
const LISTED: usize = 100;

/// The kernel of the last hidden layer, in which poison is looked for as well.
const LAST_LAYER: &str = "normalised(ck)";

/// The column of signs of poison in the kernel's space.
const POISON_KERNEL: &str = "poison_kernel";

/// The work in one precision.
pub(super) struct Work<T>(PhantomData<T>);

/// The opinions about all samples, with their names and their weights in the combined score.
struct Opinions(Vec<(&'static str, Opinion, f64)>);

impl<T: Real> Work<T> {
    pub(super) fn run(mut opened: OpenedAudit, context: &Context) -> Result<Outcome<AuditFindings>, Error> {
        let Some(folder) = opened.folder.take() else {
            return Err(Error::new("there is no destination for the results"));
        };
        let labels = opened.known.classes.indices().to_vec();
        let network = {
            let _phase = context.phase("network");
            opened.known.logits.scores::<T>(opened.known.network()?, &opened.known.samples.inputs, context)?
        };
        let mut rows = opened.kernel::<T>(&opened.job.kernel)?;
        {
            let _phase = context.phase("kernel");
            rows.compute(&opened.known.samples.inputs, context)?;
        }
        let neighbours = opened.neighbours(&rows, context)?;
        let duplicates = opened.duplicates::<T>(&rows, &neighbours, context)?;
        let (surrogate, probabilities) = opened.surrogate(&rows, context)?;
        let mut opinions = opened.opinions(&rows, &probabilities, &neighbours, &duplicates, context)?;
        let disagreement = opinions.scores("neighbours").to_vec();
        let spaces = opened.poison(&rows, &disagreement, context)?;
        for (name, space) in &spaces {
            let words =
                format!("the sign of poison in the {}", if *name == POISON_KERNEL { "kernel" } else { "last layer" });
            let opinion = Opinion::from_scores(&words, space.scores.clone())?;
            opinions.0.push((name, opinion, 0.0));
        }
        let loss: Vec<f64> = log_odds(network.view(), &labels)?.iter().map(|odds| (-odds).exp().ln_1p()).collect();
        opinions.0.push(("network_loss", Opinion::from_scores("the network's loss", loss)?, 1.0));
        let list = opinions.review(&labels)?;
        let _phase = context.phase("writing");
        opened.write(&folder, &list, &opinions)?;
        let forensics = opened.forensics(&rows, &folder, context)?;
        let names = opened.known.classes.names().to_vec();
        let joint = confident_joint(probabilities.view(), &labels)?;
        let findings = AuditFindings {
            network: opened.job.net.display().to_string(),
            kernel: opened.job.kernel.clone(),
            n_samples: labels.len(),
            penalty: surrogate,
            training_accuracy: accuracy(&decisions(network.view()), &labels)?,
            out_of_fold_accuracy: accuracy(&decisions(probabilities.view()), &labels)?,
            estimated_noise: joint.noise,
            n_suspicious: list.iter().filter(|entry| entry.score >= opened.job.cut).count(),
            n_disputed: opinions.disputed(&labels),
            duplicates: opened.duplicate_findings(&duplicates),
            poison: spaces.iter().flat_map(|(name, space)| space.findings(name, &names)).collect(),
            forensics,
            measures: opened.measures(&list, &opinions)?,
            classes: names,
        };
        figures::write(&folder, &opened, &list)?;
        let inputs = opened.inputs()?;
        let place = Artefact::file("audit", folder.path().display().to_string());
        let content = serde_json::json!({ "kernel": opened.job.kernel });
        let mut outcome = folder.finish(opened.job, inputs, findings, &content, (opened.watch, context))?;
        outcome.artefacts.insert(0, place);
        Ok(outcome)
    }
}

impl Opinions {
    /// The scores of an opinion.
    fn scores(&self, name: &str) -> &[f64] {
        self.0.iter().find(|(own, ..)| *own == name).map_or(&[], |(_, opinion, _)| &opinion.scores)
    }

    fn review(&self, labels: &[usize]) -> Result<Vec<Review>, Error> {
        let weighted: Vec<(&Opinion, f64)> = self.0.iter().map(|(_, opinion, weight)| (opinion, *weight)).collect();
        Ok(review(labels, &weighted)?)
    }

    /// Samples for which at least two opinions suggest another label.
    fn disputed(&self, labels: &[usize]) -> usize {
        let against = |row: usize| {
            let others =
                self.0.iter().filter(|(_, opinion, _)| opinion.suggested[row].is_some_and(|own| own != labels[row]));
            others.count() >= 2
        };
        (0..labels.len()).filter(|&row| against(row)).count()
    }
}

impl OpenedAudit {
    /// The nearest other samples of every training sample.
    fn neighbours<T: Real>(&self, rows: &KernelRows<T>, context: &Context) -> Result<Vec<Vec<Neighbour>>, Error> {
        let _phase = context.phase("neighbours");
        let count = self.job.surrogate.neighbours;
        let mut found = Vec::with_capacity(self.known.samples.n_samples);
        rows.visit_own(context, &mut |first, rows| {
            found.extend(largest(rows, count, Some(first))?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Exact duplicates by the bytes of the samples; near ones by a normalised kernel.
    fn duplicates<T: Real>(
        &self,
        rows: &KernelRows<T>,
        neighbours: &[Vec<Neighbour>],
        context: &Context,
    ) -> Result<Duplicates, Error> {
        let _phase = context.phase("duplicates");
        let hashes = hashes::<T>(&self.known.samples.inputs, context)?;
        let labels = self.known.classes.indices();
        match matches!(rows.recipe, mercer_kernel::Recipe::Normalised(_)) {
            true => Ok(near(neighbours, self.job.near, Some(&hashes), Some(labels))?),
            false => Ok(exact(&hashes, Some(labels))?),
        }
    }

    /// The penalty of the surrogate, and its probabilities for samples it was not fitted on.
    fn surrogate<T: Real>(&self, rows: &KernelRows<T>, context: &Context) -> Result<(f64, Array2<f64>), Error> {
        let _phase = context.phase("fitting");
        let spec: &SurrogateSpec = &self.job.surrogate;
        let (_, targets) = one_hot(&self.known.classes)?;
        let penalties = spec.penalties(rows.mean_diagonal()?);
        let folds = PenaltyChoice { folds: spec.folds, seed: self.job.seed, most_samples: CHOSEN_AMONG };
        rows.fitted_on(|rows| {
            let penalty = match penalties[..] {
                [penalty] => penalty,
                _ => {
                    let rough = DualGlm::new(1.0, spec.norm)?.until(ROUGH, ROUGH_STEPS)?;
                    folds.choose(&penalties, &rough, rows, targets.view(), context)?.value
                }
            };
            let scores = folds.held_out(&DualGlm::new(penalty, spec.norm)?, rows, targets.view(), context)?;
            Ok((penalty, softmax(scores.view())))
        })
    }

    /// The opinions about the labels, to which the network's loss comes. The weights were chosen where labels had been
    /// flipped: on the embedded digits, on MNIST and on CIFAR-10. The residual is the best single score there, and the
    /// influence on itself, which is large for rare samples too, the worst. The loss is good unless the network has
    /// learnt its labels by heart.
    fn opinions<T: Real>(
        &self,
        rows: &KernelRows<T>,
        probabilities: &Array2<f64>,
        neighbours: &[Vec<Neighbour>],
        duplicates: &Duplicates,
        context: &Context,
    ) -> Result<Opinions, Error> {
        let _phase = context.phase("leaving out");
        let (labels, n_classes) = (self.known.classes.indices(), self.known.classes.n_classes());
        let (_, targets) = one_hot(&self.known.classes)?;
        let scale = rows.mean_diagonal()?;
        let ridges: Vec<f64> = (-6..=2).map(|power| scale * 10_f64.powi(power)).collect();
        let settings = DualRidge::new(1.0)?.centred();
        let (residuals, own) = rows.fitted_on(|rows| {
            let penalty = settings.choose(&ridges, rows, targets.view(), context)?.value;
            let influence = RidgeInfluence::new(&DualRidge::new(penalty)?.centred(), rows, targets.view(), context)?;
            let residuals = leave_one_out_residuals(influence.predictions().view(), targets.view())?;
            // A sample that changes its own score most when it is left out has to be learnt by heart.
            let own: Vec<f64> = influence.self_influence(labels)?.iter().map(|change| -change).collect();
            Ok((residuals, own))
        })?;
        Ok(Opinions(vec![
            ("out_of_fold", out_of_fold(probabilities.view(), labels, Confidence::Margin)?, 0.5),
            ("leave_one_out", residuals, 2.0),
            ("self_influence", Opinion::from_scores("its influence on itself", own)?, 0.25),
            ("neighbours", neighbour_disagreement(neighbours, labels, n_classes, Votes::Weighted)?, 0.5),
            ("duplicates", conflicting_duplicates(duplicates, labels, n_classes)?, 0.0),
        ]))
    }

    /// Unknown poison in the space of the kernel, and in that of the last layer if the network has one.
    fn poison<T: Real>(
        &self,
        rows: &KernelRows<T>,
        disagreement: &[f64],
        context: &Context,
    ) -> Result<Vec<(&'static str, Space)>, Error> {
        let _phase = context.phase("poison");
        let (labels, n_classes) = (self.known.classes.indices(), self.known.classes.n_classes());
        let look = |rows: &KernelRows<T>| Space::look(rows, labels, n_classes, (disagreement, self.job.seed));
        let mut spaces = vec![(POISON_KERNEL, look(rows)?)];
        if let Ok(mut last) = self.kernel::<T>(LAST_LAYER) {
            last.compute(&self.known.samples.inputs, context)?;
            spaces.push(("poison_last_layer", look(&last)?));
        }
        Ok(spaces)
    }

    fn write(&self, folder: &ResultFolder, list: &[Review], opinions: &Opinions) -> Result<(), Error> {
        let (classes, ids) = (self.known.classes.names(), &self.known.ids);
        folder.file("review.csv", files::review(list, classes, ids).as_bytes())?;
        let mut combined = vec![0.0; list.len()];
        list.iter().for_each(|entry| combined[entry.index] = entry.score);
        let names: Vec<&str> = std::iter::once("combined").chain(opinions.0.iter().map(|(name, ..)| *name)).collect();
        let columns: Vec<&[f64]> = std::iter::once(&combined[..])
            .chain(opinions.0.iter().map(|(_, opinion, _)| &opinion.scores[..]))
            .collect();
        folder.file("scores.csv", files::scores(&names, &columns, ids).as_bytes())?;
        let mut clean: Vec<u64> =
            list.iter().filter(|entry| entry.score < self.job.cut).map(|entry| entry.index as u64).collect();
        clean.sort_unstable();
        folder.array("clean.npy", &Array1::from_vec(clean))
    }

    fn duplicate_findings(&self, duplicates: &Duplicates) -> DuplicateFindings {
        let ids = |members: &[usize]| members.iter().map(|&row| self.known.ids.name(row).into_owned()).collect();
        DuplicateFindings {
            n_groups: duplicates.groups.len(),
            n_redundant: duplicates.redundant(),
            n_conflicts: duplicates.conflicts().count(),
            conflicts: duplicates.conflicts().take(LISTED).map(|group| ids(&group.members)).collect(),
        }
    }

    /// How well the combined score and every opinion find what is really wrong.
    fn measures(&self, list: &[Review], opinions: &Opinions) -> Result<Vec<OpinionFindings>, Error> {
        let Some(truth) = &self.truth else { return Ok(Vec::new()) };
        let mut combined = vec![0.0; list.len()];
        list.iter().for_each(|entry| combined[entry.index] = entry.score);
        let own = |name: &str, scores: &[f64]| -> Result<OpinionFindings, Error> {
            Ok(OpinionFindings { name: name.to_owned(), measures: measure(scores, truth, &BUDGETS)? })
        };
        let mut found = vec![own("combined", &combined)?];
        for (name, opinion, _) in &opinions.0 {
            found.push(own(name, &opinion.scores)?);
        }
        Ok(found)
    }

    /// Traces test samples back to known poison.
    fn forensics<T: Real>(
        &self,
        rows: &KernelRows<T>,
        folder: &ResultFolder,
        context: &Context,
    ) -> Result<Option<ForensicFindings>, Error> {
        let (Some(poisoned), Some(test)) = (&self.poisoned, &self.test) else { return Ok(None) };
        let _phase = context.phase("forensics");
        let rule = Rule { k: self.job.surrogate.neighbours, threshold: self.job.threshold };
        let mut neighbours = Vec::new();
        rows.visit(&test.samples.inputs, &self.known.samples.inputs, context, &mut |_, rows| {
            neighbours.extend(largest(rows, rule.k, None)?);
            Ok(())
        })?;
        let verdicts = trace(&neighbours, poisoned, rule)?;
        folder.file("forensics.csv", files::forensics(&verdicts).as_bytes())?;
        let detection = self.test_poisoned.as_ref().map(|truth| evaluate(&verdicts, truth)).transpose()?;
        Ok(Some(ForensicFindings {
            n_poisoned: poisoned.iter().filter(|poisoned| **poisoned).count(),
            neighbours: rule.k,
            threshold: rule.threshold,
            n_test: verdicts.len(),
            n_flagged: verdicts.iter().filter(|verdict| verdict.flagged).count(),
            detection,
        }))
    }

    /// The inputs that decide the numbers, besides the settings.
    fn inputs(&self) -> Result<Vec<InputRecord>, Error> {
        let network = saved_network(&self.job.net, &self.job.parameters, self.known.network()?)?;
        let (place, train) = (self.job.net.display().to_string(), &self.known.samples);
        let mut inputs = vec![
            InputRecord::new("net", &place, mercer_data::folder::digest(network.bytes())),
            InputRecord::new("data", &train.places(), train.fingerprint()?),
        ];
        if let (Some(labels), Some(print)) = (&self.job.train.labels, train.labels_fingerprint()) {
            inputs.push(InputRecord::new("labels", &labels.to_string(), print));
        }
        inputs.extend(self.known.ids.record("ids", self.job.ids.as_ref()));
        if let Some(test) = &self.test {
            inputs.push(InputRecord::new("test", &test.samples.places(), test.samples.fingerprint()?));
        }
        let marked = [
            ("wrong", &self.job.truth, &self.truth),
            ("poisoned", &self.job.poisoned, &self.poisoned),
            ("test-poisoned", &self.job.test_poisoned, &self.test_poisoned),
        ];
        for (setting, reference, marks) in marked {
            if let (Some(reference), Some(marks)) = (reference, marks) {
                let bytes: Vec<u8> = marks.iter().map(|&marked| u8::from(marked)).collect();
                inputs.push(InputRecord::new(setting, &reference.to_string(), mercer_data::folder::digest(&bytes)));
            }
        }
        Ok(inputs)
    }
}

/// A number for every sample that is the same for the same inputs.
fn hashes<T: Real>(inputs: &[Dataset], context: &Context) -> Result<Vec<u128>, Error> {
    const BLOCK: usize = 1024;
    let n_samples = inputs.first().map_or(0, Dataset::n_samples);
    let mut found = Vec::with_capacity(n_samples);
    for start in (0..n_samples).step_by(BLOCK) {
        context.check()?;
        let rows = start..(start + BLOCK).min(n_samples);
        let block = RowBlock::<T>::read(inputs, rows.clone())?;
        for at in 0..rows.len() {
            let mut fingerprint = Fingerprint::new();
            for (slice, input) in block.slices().into_iter().zip(inputs) {
                let width: usize = input.sample_shape().iter().product();
                for value in &slice[at * width..(at + 1) * width] {
                    fingerprint.update(&value.wide().to_le_bytes());
                }
            }
            found.push(u128::from_str_radix(&fingerprint.finish(), 16).unwrap_or_default());
        }
    }
    Ok(found)
}
