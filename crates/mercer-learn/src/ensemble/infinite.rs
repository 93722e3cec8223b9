//! Ensembles of infinitely wide networks.

use super::flow::{Flow, FlowSettings};
use crate::arrays::Arrays;
use crate::error::{Result, check_size};
use crate::repair::Repair;
use mercer_data::Existing;
use mercer_data::folder::{Folder, FolderKind, FolderWriter};
use mercer_linalg::{check_finite, check_symmetric, matmul};
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};
use std::path::Path;

const KIND: FolderKind = FolderKind { name: "infinite ensemble", version: 1 };

/// Which layers are trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Trained {
    /// Only the last one: the tangent kernel is the covariance of the prior.
    LastLayer,
    /// All of them.
    All,
}

/// The prior kernels that the prediction of an ensemble needs.
#[derive(Clone, Copy, Debug)]
pub struct Prior<'a> {
    /// `K` of test and training samples.
    pub cross: ArrayView2<'a, f64>,
    /// `K` of the test samples.
    pub test: ArrayView2<'a, f64>,
}

/// Infinitely many infinitely wide networks, trained by gradient flow.
///
/// With `q = (1 − e^{−ηλt/N})/λ` on the eigenvalues of the training kernel (regularised, if requested), and
/// `A = Θ(x, X) q(Θ)`,
///
/// ```text
/// all layers     mean A·Y                  covariance K(x,x) + A K(X,X) Aᵀ − A K(X,x) − K(x,X) Aᵀ
/// last layer     mean K(x,X) q(K)·Y        covariance K(x,x) − K(x,X) (1 − e^{−2ηKt/N})/K K(X,x)
/// ```
///
/// The second is the first with `Θ = K`. The second uses the regularised kernel for `K(X, X)` as well, the first uses
/// that of the prior.
#[derive(Clone, Debug)]
pub struct InfiniteEnsemble {
    flow: Flow,
    trained: Trained,
    targets: Array2<f64>,
    /// `K` of the training samples, if it is not the training kernel.
    prior: Array2<f64>,
}

/// The Gaussian that an ensemble predicts.
#[derive(Clone, Debug)]
pub struct EnsemblePrediction {
    /// A row per test sample.
    pub mean: Array2<f64>,
    /// The covariance of each output between test samples.
    pub covariance: Array2<f64>,
}

impl InfiniteEnsemble {
    /// Only the last layer is trained: `K` is the NNGP kernel of the training samples.
    pub fn last_layer(nngp: ArrayView2<'_, f64>, targets: ArrayView2<'_, f64>, settings: FlowSettings) -> Result<Self> {
        let flow = Self::flow(nngp, targets, settings)?;
        Ok(Self { flow, trained: Trained::LastLayer, targets: targets.to_owned(), prior: Array2::zeros((0, 0)) })
    }

    /// All layers are trained: the NTK and the NNGP kernel of the training samples.
    pub fn all_layers(
        ntk: ArrayView2<'_, f64>,
        nngp: ArrayView2<'_, f64>,
        targets: ArrayView2<'_, f64>,
        settings: FlowSettings,
    ) -> Result<Self> {
        let flow = Self::flow(ntk, targets, settings)?;
        check_symmetric("the NNGP kernel", nngp)?;
        check_size("the number of rows of the NNGP kernel", ntk.nrows(), nngp.nrows())?;
        Ok(Self { flow, trained: Trained::All, targets: targets.to_owned(), prior: nngp.to_owned() })
    }

    fn flow(gram: ArrayView2<'_, f64>, targets: ArrayView2<'_, f64>, settings: FlowSettings) -> Result<Flow> {
        let flow = Flow::new(gram, gram.nrows(), settings)?;
        check_size("the number of targets", gram.nrows(), targets.nrows())?;
        check_finite("the targets", targets)?;
        Ok(flow)
    }

    /// Directions that are never learnt.
    pub fn repairs(&self) -> Vec<Repair> {
        self.flow.repairs()
    }

    /// Mean and covariance at a time, which may be infinite. `tangent` is `Θ` of test and training samples. An ensemble
    /// with only the last layer trained uses the kernel of the prior instead and takes none.
    pub fn predict(
        &self,
        time: f64,
        tangent: Option<ArrayView2<'_, f64>>,
        prior: Prior<'_>,
    ) -> Result<EnsemblePrediction> {
        let tangent = match (self.trained, tangent) {
            (Trained::LastLayer, None) => prior.cross,
            (Trained::All, Some(tangent)) => tangent,
            (Trained::LastLayer, Some(_)) => {
                let reason = "an ensemble with only the last layer trained takes only the kernels of the prior";
                return Err(crate::error::setting("the tangent kernel", "given", reason));
            }
            (Trained::All, None) => {
                let reason = "an ensemble with all layers trained needs it";
                return Err(crate::error::setting("the tangent kernel", "not given", reason));
            }
        };
        let samples = prior.test.nrows();
        for (name, kernel) in [("the tangent kernel", tangent), ("the prior's kernel", prior.cross)] {
            check_finite(name, kernel)?;
            check_size("the number of training samples (columns of a kernel)", self.targets.nrows(), kernel.ncols())?;
            check_size("the number of test samples (rows of a kernel)", samples, kernel.nrows())?;
        }
        check_symmetric("the prior's kernel of the test samples", prior.test)?;
        let filter = self.flow.filter(time, 1.0)?;
        let mean = matmul(tangent, self.flow.apply(&filter, self.targets.view()).view());
        let covariance = match self.trained {
            Trained::LastLayer => {
                let learnt = self.flow.apply(&self.flow.filter(time, 2.0)?, prior.cross.t());
                &prior.test - &matmul(prior.cross, learnt.view())
            }
            Trained::All => {
                // Aᵀ = q(Θ) Θ(X, x)
                let turned = self.flow.apply(&filter, tangent.t());
                let across = matmul(prior.cross, turned.view());
                let spread = matmul(turned.t(), matmul(self.prior.view(), turned.view()).view());
                &prior.test + &spread - &across - across.t()
            }
        };
        // Products in the two orders differ in the last bits.
        let covariance = 0.5 * (&covariance + &covariance.t());
        Ok(EnsemblePrediction { mean, covariance })
    }

    /// Writes the machine into a folder and creates it if necessary.
    pub fn save(&self, folder: &Path, existing: Existing) -> Result<()> {
        let writer = FolderWriter::create(folder, KIND, existing)?;
        let objects = writer.objects();
        objects.array("values", &self.flow.values)?;
        objects.array("vectors", &self.flow.vectors)?;
        objects.array("targets", &self.targets)?;
        if self.trained == Trained::All {
            objects.array("prior", &self.prior)?;
        }
        let stored = Stored { settings: self.flow.settings, trained: self.trained, n_samples: self.flow.n_samples };
        Ok(writer.commit(&stored)?)
    }

    /// Reads a saved machine.
    pub fn load(folder: &Path) -> Result<Self> {
        let folder = Folder::open(folder, Some(KIND))?;
        let objects = folder.objects();
        let reader = Arrays(&objects);
        let Stored { settings, trained, n_samples } = folder.content()?;
        let n = Some(n_samples);
        let (values, vectors) = (reader.vector("values", n)?, reader.matrix("vectors", n, n)?);
        let targets = reader.matrix("targets", n, None)?;
        let prior = match trained {
            Trained::All => reader.matrix("prior", n, n)?,
            Trained::LastLayer => Array2::zeros((0, 0)),
        };
        Ok(Self { flow: Flow { settings, values, vectors, n_samples }, trained, targets, prior })
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    settings: FlowSettings,
    trained: Trained,
    n_samples: usize,
}
