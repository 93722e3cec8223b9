//! Initial weights.
//!
//! With `n` inputs per unit (`fan-in`; for a convolution channels × kernel):
//!
//! | name | weights | biases | layer |
//! |---|---|---|---|
//! | `standard` | uniform in `±1/√n` | uniform in `±1/√n` | `Wx + b` (PyTorch's default) |
//! | `he` | normal, variance `2/n` | 0 | `Wx + b` (He et al., arXiv 1502.01852) |
//! | `lecun` | normal, variance `1/n` | 0 | `Wx + b` |
//! | `normal` | standard normal | 0 | `Wx + b` |
//! | `ntk` | standard normal | standard normal | `σ_w/√n · Wx + σ_b b` (Jacot et al., arXiv 1806.07572) |
//!
//! With the law `cauchy` the numbers of `he`, `lecun`, `normal` and `ntk` are Cauchy in place of normal: the scale
//! (half of the distance between the quartiles) is what the table calls a standard deviation, and there are no moments.
//! Biases stay as they are.
//!
//! Every parameter draws from its own random stream, `"init/NAME"`, so adding or removing a layer does not change the
//! others.

use crate::error::{NetError, Result};
use crate::network::Values;
use mercer_data::random::stream;
use rand::RngExt;
use rand_distr::{Cauchy, Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// How weights are drawn, and how a layer uses them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Initialisation {
    /// Uniform in `±1/√fan-in`, including biases: PyTorch's default.
    #[default]
    Standard,
    /// Normal with variance `2/fan-in`, for ReLU.
    He,
    /// Normal with variance `1/fan-in`.
    LeCun,
    /// Standard normal, whatever the fan-in. Outputs grow with the width.
    Normal,
    /// Standard normal, with `1/√fan-in` in the network itself.
    Ntk,
}

mercer_run::named! {
    Initialisation, "initialisation":
    Standard = "standard", "Variance 1/(3·fan-in), biases too: PyTorch's default";
    He = "he", "Variance 2/fan-in, biases 0";
    LeCun = "lecun", "Variance 1/fan-in, biases 0";
    Normal = "normal", "Variance 1 without scales, biases 0";
    Ntk = "ntk", "Variance 1; the network itself has the scales";
}

/// The law of weights that are not uniform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightLaw {
    /// Normal.
    #[default]
    Normal,
    /// Cauchy, with heavy tails; its scale takes the place of the standard deviation.
    Cauchy,
}

mercer_run::named! {
    WeightLaw, "law":
    Normal = "normal", "Normal numbers";
    Cauchy = "cauchy", "Cauchy numbers, whose scale is what the standard deviation was";
}

impl WeightLaw {
    pub(super) fn is_normal(&self) -> bool {
        *self == Self::Normal
    }
}

/// A distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Draw {
    Uniform(f64),
    Normal(f64),
    /// With this scale.
    Cauchy(f64),
    Constant(f64),
}

impl Draw {
    /// The initial values of a parameter, in single precision, so that runs in either precision start at the same
    /// point.
    pub(super) fn values(self, seed: u64, name: &str, count: usize) -> Values {
        let mut random = stream(seed, &format!("init/{name}"));
        let cauchy = Cauchy::new(0.0, 1.0).expect("a positive scale");
        let numbers: Vec<f32> = (0..count)
            .map(|_| match self {
                Self::Uniform(bound) => (bound * (2.0 * random.random::<f64>() - 1.0)) as f32,
                Self::Normal(deviation) => (deviation * random.sample::<f64, _>(StandardNormal)) as f32,
                Self::Cauchy(scale) => finite(scale * cauchy.sample(&mut random)),
                Self::Constant(value) => value as f32,
            })
            .collect();
        Values::from_slice(&numbers)
    }

    /// The same distribution, smaller or larger by a factor.
    pub(super) fn scaled(self, factor: f64) -> Self {
        match self {
            Self::Uniform(bound) => Self::Uniform(bound * factor),
            Self::Normal(deviation) => Self::Normal(deviation * factor),
            Self::Cauchy(scale) => Self::Cauchy(scale * factor),
            Self::Constant(value) => Self::Constant(value * factor),
        }
    }
}

/// Single precision, where the largest number stands for those beyond.
fn finite(x: f64) -> f32 {
    x.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
}

impl Initialisation {
    pub(super) fn weight(self, fan_in: usize) -> Draw {
        let n = fan_in.max(1) as f64;
        match self {
            Self::Standard => Draw::Uniform(n.sqrt().recip()),
            Self::He => Draw::Normal((2.0 / n).sqrt()),
            Self::LeCun => Draw::Normal(n.sqrt().recip()),
            Self::Normal | Self::Ntk => Draw::Normal(1.0),
        }
    }

    pub(super) fn bias(self, fan_in: usize) -> Draw {
        match self {
            Self::Standard => Draw::Uniform((fan_in.max(1) as f64).sqrt().recip()),
            Self::He | Self::LeCun | Self::Normal => Draw::Constant(0.0),
            Self::Ntk => Draw::Normal(1.0),
        }
    }
}

/// An initialisation with its law and the standard deviations of `ntk`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scheme {
    pub(super) kind: Initialisation,
    pub(super) law: WeightLaw,
    pub(super) weight_std: f64,
    pub(super) bias_std: f64,
}

impl Scheme {
    pub(super) fn new(
        kind: Initialisation,
        law: WeightLaw,
        weight_std: Option<f64>,
        bias_std: Option<f64>,
    ) -> Result<Self> {
        if law != WeightLaw::Normal && kind == Initialisation::Standard {
            return Err(NetError::Setting(format!(
                "law = \"{law}\": the weights of initialisation = \"standard\" are uniform; accepted with he, lecun, \
                 normal and ntk"
            )));
        }
        for (name, value) in [("weight_std", weight_std), ("bias_std", bias_std)] {
            let Some(value) = value else { continue };
            if kind != Initialisation::Ntk {
                return Err(NetError::Setting(format!("{name} is accepted with initialisation = \"ntk\" only")));
            }
            if !(value > 0.0 && value.is_finite()) {
                return Err(NetError::Setting(format!("{name} = {value}; accepted: numbers above 0")));
            }
        }
        Ok(Self { kind, law, weight_std: weight_std.unwrap_or(1.0), bias_std: bias_std.unwrap_or(1.0) })
    }

    /// The distribution of a weight.
    pub(super) fn weight(&self, fan_in: usize) -> Draw {
        match (self.kind.weight(fan_in), self.law) {
            (Draw::Normal(deviation), WeightLaw::Cauchy) => Draw::Cauchy(deviation),
            (draw, _) => draw,
        }
    }

    /// The factor on the product with the weights.
    pub(super) fn weight_scale(&self, fan_in: usize) -> f64 {
        match self.kind {
            Initialisation::Ntk => self.weight_std / (fan_in.max(1) as f64).sqrt(),
            _ => 1.0,
        }
    }

    /// The factor on the bias.
    pub(super) fn bias_scale(&self) -> f64 {
        if self.kind == Initialisation::Ntk { self.bias_std } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_their_moments() {
        let moments = |draw: Draw| {
            let numbers = draw.values(3, "weight", 20_000).to_vec::<f64>();
            let mean = numbers.iter().sum::<f64>() / 20_000.0;
            (mean, numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0)
        };
        for (kind, variance) in [
            (Initialisation::Standard, 1.0_f64 / 300.0),
            (Initialisation::He, 0.02),
            (Initialisation::LeCun, 0.01),
            (Initialisation::Normal, 1.0),
            (Initialisation::Ntk, 1.0),
        ] {
            let (mean, found) = moments(kind.weight(100));
            assert!(mean.abs() < 4.0 * (variance / 20_000.0).sqrt(), "{kind:?}");
            assert!((found / variance - 1.0).abs() < 0.05, "{kind:?}: {found}");
        }
    }

    /// Half of the numbers are within one scale, a quarter beyond `1 + √2` scales; no number is infinite.
    #[test]
    fn cauchy_weights_have_their_quantiles() {
        let scheme = Scheme::new(Initialisation::LeCun, WeightLaw::Cauchy, None, None).unwrap();
        let numbers = scheme.weight(25).values(3, "weight", 40_000).to_vec::<f64>();
        let share = |bound: f64| numbers.iter().filter(|x| x.abs() < 0.2 * bound).count() as f64 / 40_000.0;
        // Four standard errors of a share.
        assert!((share(1.0) - 0.5).abs() < 0.01, "{}", share(1.0));
        assert!((share(1.0 + 2f64.sqrt()) - 0.75).abs() < 0.009);
        assert!((share(100.0) - 0.9936).abs() < 0.0016);
        assert_eq!([finite(1e300), finite(-1e300), finite(0.5)], [f32::MAX, f32::MIN, 0.5]);
    }

    #[test]
    fn parameters_have_streams_of_their_own() {
        let draw = Draw::Normal(1.0);
        assert_eq!(draw.values(1, "a", 5), draw.values(1, "a", 5));
        assert_ne!(draw.values(1, "a", 5), draw.values(1, "b", 5));
        assert_ne!(draw.values(1, "a", 5), draw.values(2, "a", 5));
    }
}
