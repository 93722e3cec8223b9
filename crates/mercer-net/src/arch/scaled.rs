//! Activations times a factor.
//!
//! | text | activation |
//! |---|---|
//! | `tanh` | `σ(z) = tanh z` |
//! | `normalised(tanh)` | `σ(z) = c·tanh z` with `c = 1/√(E tanh² z)`, so that `E σ(z)² = 1` for a standard normal `z` |
//! | `1.5*tanh`, `tanh/0.6278` | `σ(z) = 1.5·tanh z`, `σ(z) = tanh z / 0.6278` |
//!
//! The constant of `normalised` is exact to rounding, by quadrature; that of `tanh` is 1/0.627928…, which the PNNL
//! report (section 5) gives as 1/0.6278. The factor is part of the network: it is in its graph, its limits and its ONNX
//! file.

use super::Activation;
use crate::error::{NetError, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// An activation with its factor.
///
/// ```
/// use mercer_net::arch::{Activation, ScaledActivation};
///
/// let normalised: ScaledActivation = "normalised(relu)".parse()?;
/// assert_eq!(normalised, Activation::Relu.normalised());
/// assert!((normalised.factor() - 2f64.sqrt()).abs() < 1e-14);
/// assert_eq!("tanh/0.5".parse::<ScaledActivation>()?.to_string(), "2*tanh");
/// # Ok::<(), mercer_net::NetError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScaledActivation {
    /// The function.
    pub activation: Activation,
    /// Its factor.
    pub scale: ActivationScale,
}

/// The factor of an activation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ActivationScale {
    /// This factor.
    Factor(f64),
    /// `1/√(E σ(z)²)` for a standard normal `z`.
    Normalised,
}

impl Default for ActivationScale {
    fn default() -> Self {
        Self::Factor(1.0)
    }
}

impl Activation {
    /// The activation times `1/√(E σ(z)²)`.
    pub fn normalised(self) -> ScaledActivation {
        ScaledActivation { activation: self, scale: ActivationScale::Normalised }
    }

    /// The activation times a factor.
    pub fn scaled(self, factor: f64) -> ScaledActivation {
        ScaledActivation { activation: self, scale: ActivationScale::Factor(factor) }
    }
}

impl From<Activation> for ScaledActivation {
    fn from(activation: Activation) -> Self {
        activation.scaled(1.0)
    }
}

impl ScaledActivation {
    /// The factor as a number.
    pub fn factor(self) -> f64 {
        match self.scale {
            ActivationScale::Factor(factor) => factor,
            ActivationScale::Normalised => self.activation.second_moment().sqrt().recip(),
        }
    }

    /// Refuses a factor that is not a positive number.
    pub(super) fn check(self) -> Result<()> {
        match self.scale {
            ActivationScale::Factor(factor) if !(factor > 0.0 && factor.is_finite()) => {
                Err(NetError::Setting(format!(
                    "activation = \"{self}\"; accepted as a factor: numbers above 0, or normalised({})",
                    self.activation
                )))
            }
            _ => Ok(()),
        }
    }
}

impl FromStr for ScaledActivation {
    type Err = NetError;

    fn from_str(text: &str) -> Result<Self> {
        let trimmed = text.trim();
        let inner = trimmed.strip_prefix("normalised(").and_then(|rest| rest.strip_suffix(')'));
        if let Some(name) = inner {
            return Ok(name.parse::<Activation>()?.normalised());
        }
        let number = |digits: &str| {
            digits.trim().parse::<f64>().map_err(|_| {
                let forms = "normalised(tanh), 1.5*tanh, tanh/0.6278";
                NetError::Setting(format!("activation = {text:?}: {digits:?} is not a number; accepted: {forms}"))
            })
        };
        let scaled = match (trimmed.split_once('*'), trimmed.split_once('/')) {
            (Some((factor, name)), _) => name.parse::<Activation>()?.scaled(number(factor)?),
            (None, Some((name, divisor))) => name.parse::<Activation>()?.scaled(number(divisor)?.recip()),
            (None, None) => trimmed.parse::<Activation>()?.into(),
        };
        scaled.check().map(|()| scaled)
    }
}

impl fmt::Display for ScaledActivation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scale {
            ActivationScale::Factor(1.0) => write!(f, "{}", self.activation),
            ActivationScale::Factor(factor) => write!(f, "{factor}*{}", self.activation),
            ActivationScale::Normalised => write!(f, "normalised({})", self.activation),
        }
    }
}

impl Serialize for ScaledActivation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ScaledActivation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `E σ(z)²` by a plain sum over many points, and in closed form where there is one.
    #[test]
    fn second_moments_are_right() {
        for (activation, moment) in [
            (Activation::Identity, 1.0),
            (Activation::Relu, 0.5),
            (Activation::LeakyRelu, 0.5 * (1.0 + 1e-4)),
            (Activation::Abs, 1.0),
            (Activation::Square, 3.0),
            (Activation::Sin, 0.5 * (1.0 - (-2f64).exp())),
            (Activation::Cos, 0.5 * (1.0 + (-2f64).exp())),
            (Activation::SinCos, 0.5),
            // E erf² z = (2/π) asin(2/3), from the arc-sine kernel.
            (Activation::Erf, 2.0 / std::f64::consts::PI * (2.0f64 / 3.0).asin()),
        ] {
            let found = activation.second_moment();
            assert!((found - moment).abs() < 1e-12, "{activation}: {found} against {moment}");
        }
        let step = 1e-3;
        let plain: f64 = (-12_000..=12_000)
            .map(|i| f64::from(i) * step)
            .map(|z| z.tanh().powi(2) * (-0.5 * z * z).exp() * step / (2.0 * std::f64::consts::PI).sqrt())
            .sum();
        assert!((Activation::Tanh.second_moment() - plain).abs() < 1e-12);
        assert!((Activation::Tanh.normalised().factor() * 0.6279 - 1.0).abs() < 1e-4);
    }

    #[test]
    fn texts_are_read_as_they_are_written() {
        for text in ["tanh", "normalised(silu)", "1.5*gelu", "0.25*sin-cos"] {
            assert_eq!(text.parse::<ScaledActivation>().unwrap().to_string(), text);
        }
        let divided: ScaledActivation = "Tanh / 0.6278".parse().unwrap();
        assert!((divided.factor() - 1.0 / 0.6278).abs() < 1e-15);
        assert_eq!(divided.to_string().parse::<ScaledActivation>().unwrap(), divided);
        for (text, part) in [
            ("normalised(tnah)", "accepted: relu"),
            ("x*tanh", "\"x\" is not a number"),
            ("-1*tanh", "above 0"),
            ("tanh/0", "above 0"),
            ("normalised tanh", "accepted: relu"),
        ] {
            let error = text.parse::<ScaledActivation>().unwrap_err().to_string();
            assert!(error.contains("activation") && error.contains(part), "{text}: {error}");
        }
    }
}
