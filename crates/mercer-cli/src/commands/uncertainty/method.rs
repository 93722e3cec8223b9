//! What a user writes for a posterior and its prior.

use super::UncertaintyArguments;
use crate::failure::Failure;
use mercer::kernel::sketch;
use mercer::learn::laplace::{Likelihood, Settings, Structure};
use serde::Serialize;

/// The form of the curvature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Method {
    /// All parameters, exactly
    Full,
    /// A variance for every parameter
    Diag,
    /// Kronecker factors of every layer
    Kron,
    /// The last layer, exactly
    LastLayerFull,
    /// Kronecker factors of the last layer
    LastLayerKron,
    /// Through eigenfunctions of the tangent kernel
    Eigen,
    /// Through gradients projected at random
    Sketch,
}

/// How the precision of the prior is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PriorChoice {
    Given(f64),
    Evidence,
    Validation,
}

impl std::str::FromStr for PriorChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "evidence" => Ok(Self::Evidence),
            "validation" => Ok(Self::Validation),
            _ => match text.parse::<f64>() {
                Ok(number) if number.is_finite() && number > 0.0 => Ok(Self::Given(number)),
                _ => Err(format!("`{text}` is not a precision above zero, `evidence` or `validation`")),
            },
        }
    }
}

impl PriorChoice {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Given(_) => "given",
            Self::Evidence => "evidence",
            Self::Validation => "validation",
        }
    }
}

/// How the noise of a regression's observations is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NoiseChoice {
    Given(f64),
    Evidence,
}

impl std::str::FromStr for NoiseChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse::<f64>()) {
            ("evidence", _) => Ok(Self::Evidence),
            (_, Ok(number)) if number.is_finite() && number > 0.0 => Ok(Self::Given(number)),
            _ => Err(format!("`{text}` is not a standard deviation above zero, nor `evidence`")),
        }
    }
}

impl NoiseChoice {
    /// What a fit starts from.
    pub(super) fn start(self) -> f64 {
        match self {
            Self::Given(noise) => noise,
            Self::Evidence => 1.0,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Given(_) => "given",
            Self::Evidence => "evidence",
        }
    }
}

impl UncertaintyArguments {
    /// The settings that the options ask for.
    pub(super) fn settings(&self, likelihood: Likelihood) -> Result<Settings, Failure> {
        let options = &self.posterior;
        let structure = match options.method {
            Method::Full => Structure::Full,
            Method::Diag => Structure::Diagonal,
            Method::Kron => Structure::Kronecker,
            Method::LastLayerFull => Structure::LastLayerFull,
            Method::LastLayerKron => Structure::LastLayerKronecker,
            Method::Eigen => Structure::Features { residual: options.residual.unwrap_or(true) },
            Method::Sketch => {
                let parsed = sketch::parse(&options.sketch);
                let (method, k) = parsed.map_err(|error| Failure::new(format!("--sketch: {error}")))?;
                // What a sketch misses is noise of both signs: to give back the positive part of it makes things worse.
                Structure::Sketch { method, k, seed: options.seed, residual: options.residual.unwrap_or(false) }
            }
        };
        let prior_precision = match options.prior {
            PriorChoice::Given(precision) => precision,
            _ => 1.0,
        };
        Ok(Settings {
            structure,
            likelihood,
            prior_precision,
            output: self.node.clone(),
            parameters: self.params.clone(),
            train_size: self.data.train_size,
        })
    }
}
