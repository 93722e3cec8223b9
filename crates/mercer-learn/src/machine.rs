//! Any fitted machine, written and read as part of a [folder](mercer_data::folder).

use crate::arrays::Arrays;
use crate::classes::ClassSet;
use crate::classification::{By, Centres, Neighbours};
use crate::error::Result;
use crate::linear::{Linear, LinearClassifier, ScoreLink, Solved};
use crate::process::{Binary, Latent, Multinomial, Process, ProcessClassifier};
use crate::repair::Repair;
use crate::samples::{SampleKind, SampleRows};
use crate::traits::{Classify, Predict};
use mercer_data::folder::{Part, PartWriter};
use mercer_linalg::Cholesky;
use ndarray::{Array1, Array2, ArrayViewD};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A fitted machine of any kind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Machine {
    /// A regression that is linear in rows.
    Linear(Linear),
    /// A classifier that is linear in rows.
    LinearClassifier(LinearClassifier),
    /// Gaussian process regression.
    Process(Process),
    /// Gaussian process classification.
    ProcessClassifier(ProcessClassifier),
    /// Votes of neighbours.
    Neighbours(Neighbours),
    /// Class means.
    Centres(Centres),
}

/// The manifest entry of a machine, apart from its arrays.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Content {
    Linear {
        basis: SampleKind,
        repairs: Vec<Repair>,
    },
    LinearClassifier {
        basis: SampleKind,
        repairs: Vec<Repair>,
        classes: ClassSet,
        link: ScoreLink,
        solved: Solved,
    },
    Process {
        basis: SampleKind,
        repairs: Vec<Repair>,
        noise: f64,
        jitter: f64,
        relative_jitter: f64,
        log_likelihood: f64,
    },
    ProcessClassifier {
        basis: SampleKind,
        repairs: Vec<Repair>,
        classes: ClassSet,
        log_likelihood: f64,
    },
    Neighbours {
        basis: SampleKind,
        repairs: Vec<Repair>,
        classes: ClassSet,
        count: usize,
        #[serde(default)]
        by: By,
        labels: Vec<usize>,
    },
    Centres {
        basis: SampleKind,
        repairs: Vec<Repair>,
        classes: ClassSet,
    },
}

macro_rules! from {
    ($($kind:ident),*) => {$(
        impl From<$kind> for Machine {
            fn from(machine: $kind) -> Self {
                Self::$kind(machine)
            }
        }
    )*};
}

from!(Linear, LinearClassifier, Process, ProcessClassifier, Neighbours, Centres);

impl Machine {
    /// What it was fitted on.
    pub fn basis(&self) -> SampleKind {
        match self {
            Self::Linear(machine) => machine.basis,
            Self::LinearClassifier(machine) => machine.scores.basis,
            Self::Process(machine) => machine.basis,
            Self::ProcessClassifier(machine) => machine.basis,
            Self::Neighbours(machine) => machine.basis,
            Self::Centres(machine) => machine.basis,
        }
    }

    /// The machine as a classifier, if it is one.
    pub fn as_classifier(&self) -> Option<&dyn Classify> {
        match self {
            Self::LinearClassifier(machine) => Some(machine),
            Self::ProcessClassifier(machine) => Some(machine),
            Self::Neighbours(machine) => Some(machine),
            Self::Centres(machine) => Some(machine),
            Self::Linear(_) | Self::Process(_) => None,
        }
    }

    fn as_predict(&self) -> &dyn Predict {
        match self {
            Self::Linear(machine) => machine,
            Self::LinearClassifier(machine) => machine,
            Self::Process(machine) => machine,
            Self::ProcessClassifier(machine) => machine,
            Self::Neighbours(machine) => machine,
            Self::Centres(machine) => machine,
        }
    }

    /// Writes the machine as part of a folder, and returns its entry for the manifest.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn write(&self, writer: &PartWriter<'_>) -> Result<Value> {
        let (basis, repairs) = (self.basis(), self.repairs().to_vec());
        let content = match self {
            Self::Linear(machine) => {
                writer.array("weights", &machine.weights)?;
                writer.array("bias", &machine.bias)?;
                Content::Linear { basis, repairs }
            }
            Self::LinearClassifier(LinearClassifier { scores, classes, link, solved }) => {
                writer.array("weights", &scores.weights)?;
                writer.array("bias", &scores.bias)?;
                let (classes, link, solved) = (classes.clone(), *link, *solved);
                Content::LinearClassifier { basis, repairs, classes, link, solved }
            }
            Self::Process(machine) => {
                writer.array("features", &machine.features)?;
                writer.array("factor", &machine.factor.lower)?;
                writer.array("coefficients", &machine.coefficients)?;
                writer.array("means", &machine.means)?;
                let (jitter, relative_jitter) = (machine.factor.jitter, machine.factor.relative_jitter);
                let (noise, log_likelihood) = (machine.noise, machine.log_likelihood);
                Content::Process { basis, repairs, noise, jitter, relative_jitter, log_likelihood }
            }
            Self::ProcessClassifier(machine) => {
                writer.array("features", &machine.features)?;
                match &machine.latent {
                    Latent::Binary(latent) => {
                        writer.array("factor", &latent.lower)?;
                        writer.array("coefficients", &latent.coefficients)?;
                        writer.array("roots", &latent.roots)?;
                    }
                    Latent::Several(latent) => {
                        writer.array("factor", &latent.lower)?;
                        writer.array("coefficients", &latent.coefficients)?;
                        for (at, own) in latent.information.iter().enumerate() {
                            writer.array(&format!("information-{at}"), own)?;
                        }
                    }
                }
                let (classes, log_likelihood) = (machine.classes.clone(), machine.log_likelihood());
                Content::ProcessClassifier { basis, repairs, classes, log_likelihood }
            }
            Self::Neighbours(machine) => {
                writer.array("features", &machine.features)?;
                writer.array("squares", &machine.squares)?;
                let (classes, labels) = (machine.classes.clone(), machine.labels.clone());
                Content::Neighbours { basis, repairs, classes, count: machine.count, by: machine.by, labels }
            }
            Self::Centres(machine) => {
                writer.array("means", &machine.means)?;
                writer.array("squares", &machine.squares)?;
                Content::Centres { basis, repairs, classes: machine.classes.clone() }
            }
        };
        Ok(writer.content(&content)?)
    }

    /// Reads a machine that is part of a folder.
    ///
    /// # Errors
    /// For files that are missing or damaged, or inconsistent.
    pub fn read(part: &Part<'_>, content: &Value) -> Result<Self> {
        let reader = Arrays(part);
        Ok(match part.content(content)? {
            Content::Linear { basis, repairs } => Self::Linear(load_linear(&reader, basis, repairs, None)?),
            Content::LinearClassifier { basis, repairs, classes, link, solved } => {
                let n_classes = check_classes(&reader, &classes)?;
                let scores = load_linear(&reader, basis, repairs, Some(n_classes))?;
                Self::LinearClassifier(LinearClassifier { scores, classes, link, solved })
            }
            Content::Process { basis, repairs, noise, jitter, relative_jitter, log_likelihood } => {
                let lower = load_square(&reader, "factor", None)?;
                let n = lower.nrows();
                let features = load_features(&reader, basis, n)?;
                let coefficients = reader.matrix("coefficients", Some(n), None)?;
                let means = reader.vector("means", Some(coefficients.ncols()))?;
                let factor = Cholesky { lower, jitter, relative_jitter };
                let process = Process { basis, features, factor, coefficients, means, noise, log_likelihood, repairs };
                Self::Process(process)
            }
            Content::ProcessClassifier { basis, repairs, classes, log_likelihood } => {
                let lower = load_square(&reader, "factor", None)?;
                let rows = lower.nrows();
                let n = Some(rows);
                let latent = match check_classes(&reader, &classes)? {
                    0 | 1 => return Err(reader.malformed("a process needs at least two classes")),
                    2 => {
                        let (coefficients, roots) = (reader.vector("coefficients", n)?, reader.vector("roots", n)?);
                        Latent::Binary(Binary { coefficients, roots, lower, log_likelihood })
                    }
                    several => {
                        let coefficients = reader.matrix("coefficients", n, Some(several))?;
                        let information = |at: usize| reader.matrix(&format!("information-{at}"), n, n);
                        let information = (0..several).map(information).collect::<Result<_>>()?;
                        Latent::Several(Multinomial { coefficients, information, lower, log_likelihood })
                    }
                };
                let features = load_features(&reader, basis, rows)?;
                Self::ProcessClassifier(ProcessClassifier { basis, features, latent, classes, repairs })
            }
            Content::Neighbours { basis, repairs, classes, count, by, labels } => {
                let n_classes = check_classes(&reader, &classes)?;
                let squares = reader.vector("squares", Some(labels.len()))?;
                let features = load_features(&reader, basis, labels.len())?;
                if count == 0 || count > labels.len() || labels.iter().any(|&label| label >= n_classes) {
                    return Err(reader.malformed("the neighbours or their labels do not match the classes"));
                }
                Self::Neighbours(Neighbours { basis, count, by, features, squares, labels, classes, repairs })
            }
            Content::Centres { basis, repairs, classes } => {
                let n_classes = check_classes(&reader, &classes)?;
                let means = reader.matrix("means", None, Some(n_classes))?;
                let squares = reader.vector("squares", Some(n_classes))?;
                Self::Centres(Centres { basis, means, squares, classes, repairs })
            }
        })
    }
}

impl Predict for Machine {
    fn predict(&self, samples: &SampleRows<'_>) -> Result<Array2<f64>> {
        self.as_predict().predict(samples)
    }

    fn numbers(&self) -> Vec<(&'static str, ArrayViewD<'_, f64>)> {
        self.as_predict().numbers()
    }

    fn repairs(&self) -> &[Repair] {
        self.as_predict().repairs()
    }
}

fn load_linear(reader: &Arrays<'_>, basis: SampleKind, repairs: Vec<Repair>, outputs: Option<usize>) -> Result<Linear> {
    let weights = reader.matrix("weights", None, outputs)?;
    let bias: Array1<f64> = reader.vector("bias", Some(weights.ncols()))?;
    Ok(Linear { basis, weights, bias, repairs })
}

/// A triangular factor: square, without zeros on its diagonal.
fn load_square(reader: &Arrays<'_>, name: &str, side: Option<usize>) -> Result<Array2<f64>> {
    let matrix = reader.matrix(name, side, side)?;
    if matrix.nrows() != matrix.ncols() || matrix.diag().iter().any(|v| *v <= 0.0) {
        return Err(reader.malformed(format!("`{name}` is not a Cholesky factor")));
    }
    Ok(matrix)
}

/// Features of training samples; `None` for a Gram matrix.
fn load_features(reader: &Arrays<'_>, basis: SampleKind, n_samples: usize) -> Result<Array2<f64>> {
    match basis {
        SampleKind::Gram => Ok(Array2::zeros((0, 0))),
        SampleKind::Features => reader.matrix("features", Some(n_samples), None),
    }
}

fn check_classes(reader: &Arrays<'_>, classes: &ClassSet) -> Result<usize> {
    if classes.is_valid() { Ok(classes.present().len()) } else { Err(reader.malformed("its classes are inconsistent")) }
}
