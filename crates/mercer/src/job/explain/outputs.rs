//! The files of an explanation: arrays, tables, figures, the index and the surrogate.

use super::attribute::Attributed;
use super::figures::{DRAWN, Drawing};
use super::findings::{AttributionFindings, LayerShare};
use super::opened::OpenedExplain;
use super::work::{Explained, Said};
use super::{files, saved};
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::record::InputRecord;
use crate::job::surrogate::KernelRows;
use crate::spec::{fingerprint_of_labels, saved_network};
use mercer_data::folder::SavedSamples;
use mercer_kernel::{Real, Recipe};
use mercer_learn::KernelMachine;
use mercer_lens::neighbours::Neighbour;
use ndarray::Array3;

impl OpenedExplain {
    /// Writes the arrays and tables.
    pub(super) fn write(
        &self,
        explained: &[Explained],
        said: &Said,
        attributed: &Attributed,
        (folder, layers): (&ResultFolder, Option<Vec<LayerShare>>),
        groups: Vec<String>,
    ) -> Result<AttributionFindings, Error> {
        let main = &explained[0];
        let (classes, ids) = (self.known.classes.names(), &self.known.ids);
        let (n_classes, n_groups) = (classes.len(), groups.len());
        folder.file("top.csv", files::top(attributed, classes, ids).as_bytes())?;
        let examples: Vec<(String, Vec<Vec<Neighbour>>)> = explained
            .iter()
            .filter(|own| !own.examples.is_empty())
            .map(|own| (own.findings.kernel.clone(), own.examples.clone()))
            .collect();
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

    pub(super) fn draw(
        &self,
        main: &Explained,
        said: &Said,
        attributed: &Attributed,
        found: &AttributionFindings,
        (folder, line): (&ResultFolder, Option<mercer_lens::Line>),
    ) -> Result<(), Error> {
        let rows = self.drawn();
        let drawing = Drawing {
            folder,
            classes: self.known.classes.names(),
            groups: &found.groups,
            group_of: self.groups.as_ref().unwrap_or(&self.known.classes).indices(),
            ids: &self.known.ids,
            train: &self.known.samples,
            labels: self.known.classes.indices(),
            test: &self.test.samples,
            rows: &rows[..rows.len().min(DRAWN)],
            predicted: &said.predicted,
            compared: &said.compared,
        };
        drawing.faithfulness(&said.test, &main.scores, line)?;
        drawing.means(&found.mean_by_group)?;
        drawing.boxes(attributed)?;
        drawing.examples(attributed)
    }

    /// Saves the index, and beside it the surrogate unless it is an earlier one.
    pub(super) fn save<T: Real>(
        &self,
        (rows, main): (&KernelRows<T>, &Explained),
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
        let mut content = saved::write(folder, &network, rows, surrogate, (self.job.node.clone(), line))?;
        // Machines compute their kernel in double precision.
        let shapes = self.known.samples.shapes();
        let failed = |error| rows.spec.failure(error);
        let recipe: &Recipe = &rows.recipe;
        let needed = self.known.source.network().filter(|_| recipe.needs_network());
        let built = recipe.build::<f64>(needed, &shapes).map_err(failed)?;
        let kernel = rows.spec.saved(recipe, &self.known.source, &built)?;
        let samples = SavedSamples {
            inputs: self.known.samples.inputs.clone(),
            columns: self.known.samples.columns.clone(),
            labels: Some(mercer_data::Labels::Classes(self.known.classes.clone())),
            ids: self.known.ids.names(),
        };
        let machine = KernelMachine { machine: main.surrogate.machine.clone(), kernel: Some(kernel), samples };
        content.machine = Some(saved::save_surrogate(folder.path(), &machine, self.destination.force)?);
        serde_json::to_value(content).map_err(|error| Error::new(format!("the index cannot be written: {error}")))
    }

    /// The inputs that decide the numbers, besides the settings.
    pub(super) fn inputs(&self) -> Result<Vec<InputRecord>, Error> {
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
        inputs.extend(self.known.ids.record("ids", self.job.ids.as_ref()));
        if let (Some(reference), Some(groups)) = (&self.job.groups, &self.groups) {
            let print = fingerprint_of_labels(&mercer_data::Labels::Classes(groups.clone()));
            inputs.push(InputRecord::new("groups", &reference.to_string(), print));
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
