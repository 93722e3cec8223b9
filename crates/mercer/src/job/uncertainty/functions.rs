//! The eigenfunctions of the method `eigen`: from landmarks among the training samples, or from folders.

use super::UncertaintyJob;
use super::opened::{OpenedUncertainty, eigenfunctions};
use crate::Error;
use crate::job::eigen::{SavedFunctions, located, precision_of};
use crate::job::record::InputRecord;
use crate::spec::Samples;
use mercer_kernel::{NtkKind, Real, Recipe, SavedKernel};
use mercer_net::Network;
use mercer_run::Context;
use mercer_run::names::Named;
use mercer_spectral::{EigenDescription, Eigenfunctions};

impl OpenedUncertainty {
    /// The functions with their kernels.
    pub(super) fn functions<T: Real>(
        &self,
        components: usize,
        landmarks: usize,
        context: &Context,
    ) -> Result<Vec<Eigenfunctions<T>>, Error> {
        if self.job.from.is_empty() {
            return Ok(vec![self.found::<T>(components, landmarks, context)?]);
        }
        let read = self.job.saved_functions::<T>(&self.network, &self.parts.train)?;
        Ok(read.into_iter().map(|saved| saved.functions.truncated(components)).collect())
    }

    /// Those of the full tangent kernel, from landmarks among the training samples.
    fn found<T: Real>(
        &self,
        components: usize,
        landmarks: usize,
        context: &Context,
    ) -> Result<Eigenfunctions<T>, Error> {
        let (job, train) = (&self.job, &self.parts.train);
        let shapes = train.shapes();
        let graph = self.network.graph(&shapes).map_err(|error| job.failure(error.into()))?;
        let selection = self.settings.selection(&graph).map_err(|error| job.failure(error))?;
        let recipe = Recipe::Tangent { kind: NtkKind::Full, selection, by_layer: false };
        let built = recipe.build::<T>(Some(&self.network), &shapes).map_err(|error| job.of_kernel(error))?;
        let method = eigenfunctions(landmarks.clamp(1, train.n_samples), job.seed);
        let identity = built.kernel.identity();
        let found = method.fit(built.kernel, &train.inputs, components, context).map_err(|error| {
            let error = Error::from(error);
            let text = format!("‹method› eigen: {}", error.message());
            if error.is_interrupted() { error } else { error.with_message(text) }
        })?;
        let saved = SavedKernel::new(recipe, Some(self.saved.clone())).with_identity(identity);
        Ok(found.functions.with_kernel(Some(saved)))
    }
}

impl UncertaintyJob {
    /// The functions of the folders, checked against the network and the samples.
    fn saved_functions<T: Real>(&self, network: &Network, train: &Samples) -> Result<Vec<SavedFunctions<T>>, Error> {
        let shapes = train.shapes();
        let own = fingerprint(network, &shapes)?;
        let open = |place: &std::path::PathBuf| -> Result<SavedFunctions<T>, Error> {
            let saved = SavedFunctions::<T>::open(place)?;
            let wrong = |reason: &str| Error::new(format!("‹from› {}: the functions {reason}", place.display()));
            if saved.functions.basis().input_shapes() != shapes {
                let found = format!("are of samples of shape {:?}", saved.functions.basis().input_shapes());
                return Err(wrong(&found).hint("they must be learnt from samples like ‹data›"));
            }
            if saved
                .functions
                .notes()
                .get("preprocess")
                .is_some_and(|stored| train.preprocess_note().ok() != Some(stored.clone()))
            {
                let hint = "learn them with the same ‹scale›, ‹mean›, ‹std› and ‹layout›";
                return Err(wrong("are of samples that were preprocessed in another way").hint(hint));
            }
            let kernel = saved.functions.saved_kernel();
            if let Some(other) = kernel.map(SavedKernel::open).transpose()?.flatten()
                && fingerprint(&other, &shapes)? != own
            {
                let hint = format!("learn them from {}", self.net.display());
                return Err(wrong("are those of another network, or of other parameters").hint(hint));
            }
            Ok(saved)
        };
        self.from.iter().map(open).collect()
    }

    /// Checks the folders, and returns the number of features of all outputs together.
    pub(super) fn saved_features<T: Real>(
        &self,
        network: &Network,
        train: &Samples,
        (n_outputs, components): (usize, usize),
    ) -> Result<usize, Error> {
        let mut total = 0_usize;
        for place in &self.from {
            let description = EigenDescription::read(located(place).0)?;
            let precision = precision_of(&description);
            if precision != self.precision {
                let text = format!("‹from› {}: the functions are in {}", place.display(), precision.name());
                return Err(Error::new(text).hint(format!("‹precision› {}", precision.name())));
            }
            let (rows, k) = (description.per_sample, description.components.min(components));
            let fits = if self.from.len() == 1 { rows == 1 || rows == n_outputs } else { rows == 1 };
            if !fits || (self.from.len() > 1 && self.from.len() != n_outputs) {
                let found = format!("{} of {rows} per sample", self.from.len());
                let text = format!("‹from›: there are {found}, and the network has {n_outputs} outputs");
                return Err(
                    Error::new(text).hint("one folder for all outputs, or one with a scalar kernel for every output")
                );
            }
            let repeated = if self.from.len() == 1 && rows == 1 { n_outputs } else { 1 };
            total = total.saturating_add(k.saturating_mul(repeated));
        }
        self.saved_functions::<T>(network, train)?;
        Ok(total.saturating_mul(n_outputs))
    }

    /// The folders, for the record.
    pub(super) fn of_functions(&self) -> Result<Vec<InputRecord>, Error> {
        let record = |place: &std::path::PathBuf| -> Result<InputRecord, Error> {
            let folder = mercer_data::folder::Folder::open(located(place).0, None)?;
            Ok(InputRecord::new("from", &place.display().to_string(), folder.fingerprint()))
        };
        self.from.iter().map(record).collect()
    }
}

fn fingerprint(network: &Network, shapes: &[Vec<usize>]) -> Result<String, Error> {
    let graph = network.graph(shapes)?;
    Ok(network.weights::<f64>(&graph).fingerprint(&graph))
}
