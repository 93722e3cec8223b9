//! The settings of a posterior: its form, its prior and its predictions.

use crate::Error;
use mercer_kernel::sketch;
use mercer_learn::conformal::Conformal;
use mercer_learn::laplace::{Marginals, PredictiveDraws, Structure};
use mercer_run::names::Named;
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The form of the curvature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum PosteriorMethod {
    /// The richest that fits into the memory; a job is recorded with the method that was chosen.
    Auto,
    /// All parameters, exactly.
    Full,
    /// A variance for every parameter.
    Diag,
    /// Kronecker factors of every layer.
    Kron,
    /// The last layer, exactly.
    LastLayerFull,
    /// Kronecker factors of the last layer.
    LastLayerKron,
    /// One variance per parameter of the last layer.
    LastLayerDiag,
    /// Through eigenfunctions of the tangent kernel.
    Eigen {
        /// The number of functions.
        #[serde(default = "default_components")]
        components: usize,
        /// The number of landmarks among the training samples.
        #[serde(default = "default_landmarks")]
        landmarks: usize,
        /// Add back the variance that they miss.
        #[serde(default = "default_residual")]
        residual: bool,
    },
    /// Through gradients projected at random.
    Sketch {
        /// The projection, such as `sjlt:1024`.
        #[serde(default = "default_sketch")]
        sketch: String,
        /// Add back the variance that the projection misses. This residual is noise of both signs, and adding back its
        /// positive part makes predictions worse.
        #[serde(default)]
        residual: bool,
    },
}

fn default_components() -> usize {
    64
}

fn default_landmarks() -> usize {
    128
}

fn default_residual() -> bool {
    true
}

fn default_sketch() -> String {
    "sjlt:1024".to_owned()
}

/// A method by its name, without settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PosteriorMethodName {
    /// The richest that fits into the memory.
    Auto,
    /// All parameters, exactly.
    Full,
    /// A variance for every parameter.
    Diag,
    /// Kronecker factors of every layer.
    Kron,
    /// The last layer, exactly.
    LastLayerFull,
    /// Kronecker factors of the last layer.
    LastLayerKron,
    /// One variance per parameter of the last layer.
    LastLayerDiag,
    /// Through eigenfunctions of the tangent kernel.
    Eigen,
    /// Through gradients projected at random.
    Sketch,
}

mercer_run::named! {
    PosteriorMethodName, "method":
    Auto = "auto", "The best one that fits into the memory";
    LastLayerDiag = "last-layer-diag", "One variance per parameter of the last layer";
    LastLayerKron = "last-layer-kron", "Kronecker factors of the last layer";
    LastLayerFull = "last-layer-full", "The last layer, exactly";
    Diag = "diag", "One variance per parameter";
    Kron = "kron", "Kronecker factors of every layer";
    Sketch = "sketch", "All parameters, through randomly projected gradients";
    Eigen = "eigen", "All parameters, through eigenfunctions of the tangent kernel";
    Full = "full", "All parameters, exactly";
}

impl From<PosteriorMethodName> for PosteriorMethod {
    /// The method with its default settings.
    fn from(name: PosteriorMethodName) -> Self {
        match name {
            PosteriorMethodName::Auto => Self::Auto,
            PosteriorMethodName::Full => Self::Full,
            PosteriorMethodName::Diag => Self::Diag,
            PosteriorMethodName::Kron => Self::Kron,
            PosteriorMethodName::LastLayerFull => Self::LastLayerFull,
            PosteriorMethodName::LastLayerKron => Self::LastLayerKron,
            PosteriorMethodName::LastLayerDiag => Self::LastLayerDiag,
            PosteriorMethodName::Eigen => Self::Eigen {
                components: default_components(),
                landmarks: default_landmarks(),
                residual: default_residual(),
            },
            PosteriorMethodName::Sketch => Self::Sketch { sketch: default_sketch(), residual: false },
        }
    }
}

impl FromStr for PosteriorMethod {
    type Err = String;

    /// The method of a name, with its default settings.
    fn from_str(name: &str) -> Result<Self, String> {
        name.parse::<PosteriorMethodName>().map(Self::from)
    }
}

impl PosteriorMethod {
    /// As it is written.
    pub fn name(&self) -> &'static str {
        let name = match self {
            Self::Auto => PosteriorMethodName::Auto,
            Self::Full => PosteriorMethodName::Full,
            Self::Diag => PosteriorMethodName::Diag,
            Self::Kron => PosteriorMethodName::Kron,
            Self::LastLayerFull => PosteriorMethodName::LastLayerFull,
            Self::LastLayerKron => PosteriorMethodName::LastLayerKron,
            Self::LastLayerDiag => PosteriorMethodName::LastLayerDiag,
            Self::Eigen { .. } => PosteriorMethodName::Eigen,
            Self::Sketch { .. } => PosteriorMethodName::Sketch,
        };
        name.name()
    }

    /// The structure that the library knows.
    pub(super) fn structure(&self, seed: u64) -> Result<Structure, Error> {
        Ok(match self {
            Self::Auto => return Err(Error::new("‹method› auto: it has not been decided yet")),
            Self::Full => Structure::Full,
            Self::Diag => Structure::Diagonal,
            Self::Kron => Structure::Kronecker,
            Self::LastLayerFull => Structure::LastLayerFull,
            Self::LastLayerKron => Structure::LastLayerKronecker,
            Self::LastLayerDiag => Structure::LastLayerDiagonal,
            Self::Eigen { residual, .. } => Structure::Features { residual: *residual },
            Self::Sketch { sketch, residual } => {
                let parsed = sketch::parse(sketch);
                let (method, k) = parsed.map_err(|error| Error::new(format!("‹sketch›: {error}")))?;
                Structure::Sketch { method, k, seed, residual: *residual }
            }
        })
    }

    /// Alternatives that take less memory.
    pub(super) fn smaller(&self) -> &'static str {
        match self {
            Self::Full => "‹method› kron, diag, sketch or last-layer-full",
            Self::LastLayerFull => "‹method› last-layer-kron or last-layer-diag",
            Self::LastLayerKron => "‹method› last-layer-diag",
            Self::LastLayerDiag | Self::Auto => "fewer samples to predict",
            Self::Sketch { .. } => "a smaller K with ‹sketch›",
            Self::Eigen { .. } => "a smaller ‹k› or fewer ‹landmarks›",
            Self::Diag | Self::Kron => "‹method› last-layer-kron or last-layer-diag",
        }
    }
}

/// How the precision of the prior is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PriorChoice {
    /// This precision.
    Given(f64),
    /// The value that maximises the evidence.
    #[default]
    Evidence,
    /// The value that predicts validation samples best.
    Validation,
    /// The one that training with this weight decay amounts to: precision `N·λ` for a mean loss over `N` samples.
    WeightDecay(f64),
}

impl PriorChoice {
    /// As reported in findings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Given(_) => "given",
            Self::Evidence => "evidence",
            Self::Validation => "validation",
            Self::WeightDecay(_) => "weight decay",
        }
    }

    /// The precision, or the starting value of a search, for a training set of this size.
    pub(super) fn start(self, n_samples: usize) -> f64 {
        match self {
            Self::Given(precision) => precision,
            Self::Evidence | Self::Validation => 1.0,
            Self::WeightDecay(decay) => decay * n_samples as f64,
        }
    }

    /// Whether data chooses the precision.
    pub(super) fn is_searched(self) -> bool {
        matches!(self, Self::Evidence | Self::Validation)
    }
}

impl FromStr for PriorChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rules = [Self::Evidence, Self::Validation];
        match (rules.into_iter().find(|rule| rule.name() == text), text.parse::<f64>()) {
            (Some(rule), _) => Ok(rule),
            (None, Ok(number)) if is_positive(number) => Ok(Self::Given(number)),
            _ => Err(format!(
                "`{text}` is neither a positive number nor {}",
                rules.map(|rule| format!("`{}`", rule.name())).join(" nor ")
            )),
        }
    }
}

/// How the observation noise of a regression is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseChoice {
    /// This standard deviation.
    Given(f64),
    /// The value that maximises the evidence.
    #[default]
    Evidence,
}

impl NoiseChoice {
    /// As reported in findings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Given(_) => "given",
            Self::Evidence => "evidence",
        }
    }

    /// The starting value of a fit.
    pub(super) fn start(self) -> f64 {
        match self {
            Self::Given(noise) => noise,
            Self::Evidence => 1.0,
        }
    }
}

impl FromStr for NoiseChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rule = Self::Evidence;
        match text.parse::<f64>() {
            _ if text == rule.name() => Ok(rule),
            Ok(number) if is_positive(number) => Ok(Self::Given(number)),
            _ => Err(format!("`{text}` is neither a positive number nor `{}`", rule.name())),
        }
    }
}

pub(super) fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

/// Averages outputs drawn from the posterior, instead of the closed-form probit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PosteriorDraws {
    /// PosteriorDraws per sample.
    pub count: usize,
    /// The factor on their deviation.
    #[serde(default = "unit")]
    pub noise_scale: f64,
}

fn unit() -> f64 {
    1.0
}

/// Whose probabilities are the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Predictor {
    /// The posterior's.
    #[default]
    Laplace,
    /// Those of the network alone, at a temperature.
    Temperature,
}

/// How class probabilities are computed from a posterior; saved with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Predictive {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) draws: Option<PosteriorDraws>,
    #[serde(with = "crate::job::seed")]
    pub(super) seed: u64,
    /// What validation samples chose.
    #[serde(default)]
    pub(super) predictor: Predictor,
    /// The temperature of the network alone that fits them best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    /// The sets or intervals that other validation samples calibrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) conformal: Option<Conformal>,
}

impl Predictive {
    pub(super) fn check(&self) -> Result<(), Error> {
        match self.draws {
            Some(PosteriorDraws { count: 0, .. }) => Err(Error::new("‹draws› 0: must be at least one")),
            Some(PosteriorDraws { noise_scale, .. }) if !is_positive(noise_scale) => {
                Err(Error::new(format!("‹draw-scale› {noise_scale}: must be a positive number")))
            }
            _ if self.temperature.is_some_and(|temperature| !is_positive(temperature)) => {
                Err(Error::new("the temperature must be a positive number"))
            }
            _ => Ok(()),
        }
    }

    /// The probabilities of the classes that are the result.
    pub(super) fn probabilities(&self, found: &Marginals) -> Array2<f64> {
        match (self.predictor, self.temperature) {
            (Predictor::Temperature, Some(temperature)) => found.tempered(temperature),
            _ => self.posterior(found),
        }
    }

    /// The probabilities of the posterior: of the draws, if there are any.
    pub(super) fn posterior(&self, found: &Marginals) -> Array2<f64> {
        found.drawn.clone().unwrap_or_else(|| found.probit())
    }

    /// The draws that the posterior is asked for.
    pub(super) fn draws(&self) -> Option<PredictiveDraws> {
        let PosteriorDraws { count, noise_scale } = self.draws?;
        Some(PredictiveDraws { draws: count, seed: self.seed, scale: noise_scale })
    }

    /// A description: `probit`, or the number of draws.
    pub(super) fn text(&self) -> String {
        match self.draws {
            None => "probit".to_owned(),
            Some(PosteriorDraws { count, noise_scale: 1.0 }) => format!("{count} draws"),
            Some(PosteriorDraws { count, noise_scale }) => format!("{count} draws, noise times {noise_scale}"),
        }
    }
}
