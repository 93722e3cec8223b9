//! Activations and their names.

use crate::error::{NetError, Result};
use crate::graph::{GraphBuilder, ValueId};
use crate::op::{Concat, Function, Slice, Unary};
use mercer_linalg::quadrature::{NormalRule, normal_rule};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The activation after a layer. Constants are PyTorch's defaults.
///
/// ```
/// use mercer_net::arch::Activation;
///
/// assert_eq!("SiLU".parse::<Activation>()?, Activation::Silu);
/// assert!("rleu".parse::<Activation>().unwrap_err().to_string().contains("relu"));
/// # Ok::<(), mercer_net::NetError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the functions")]
pub enum Activation {
    #[default]
    Relu,
    LeakyRelu,
    Relu6,
    Elu,
    Selu,
    Celu,
    Gelu,
    /// The approximation of `Gelu` by `tanh`.
    GeluTanh,
    /// `x·sigmoid(x)`, also called Swish.
    Silu,
    HardSwish,
    Mish,
    Softplus,
    Softsign,
    Sigmoid,
    Tanh,
    Erf,
    Sin,
    Cos,
    /// `sin` for the first half of the units, `cos` for the second.
    SinCos,
    Square,
    Abs,
    /// No activation.
    Identity,
}

/// The accepted names. The first name of each activation is displayed; case, `-` and `_` are ignored.
const NAMES: [(&str, Activation); 26] = [
    ("relu", Activation::Relu),
    ("leaky-relu", Activation::LeakyRelu),
    ("relu6", Activation::Relu6),
    ("elu", Activation::Elu),
    ("selu", Activation::Selu),
    ("celu", Activation::Celu),
    ("gelu", Activation::Gelu),
    ("gelu-tanh", Activation::GeluTanh),
    ("silu", Activation::Silu),
    ("swish", Activation::Silu),
    ("hard-swish", Activation::HardSwish),
    ("mish", Activation::Mish),
    ("softplus", Activation::Softplus),
    ("softsign", Activation::Softsign),
    ("sigmoid", Activation::Sigmoid),
    ("logistic", Activation::Sigmoid),
    ("tanh", Activation::Tanh),
    ("erf", Activation::Erf),
    ("sin", Activation::Sin),
    ("cos", Activation::Cos),
    ("sin-cos", Activation::SinCos),
    ("square", Activation::Square),
    ("abs", Activation::Abs),
    ("identity", Activation::Identity),
    ("linear", Activation::Identity),
    ("none", Activation::Identity),
];

impl Activation {
    /// All of them, each once.
    pub fn all() -> impl Iterator<Item = Self> {
        let is_first = |at: usize| !NAMES[..at].iter().any(|(_, earlier)| *earlier == NAMES[at].1);
        (0..NAMES.len()).filter(move |&at| is_first(at)).map(|at| NAMES[at].1)
    }

    /// `E σ(z)²` for a standard normal `z`, by quadrature; of `sin-cos` the mean over both halves.
    ///
    /// ```
    /// use mercer_net::arch::Activation;
    ///
    /// assert!((Activation::Relu.second_moment() - 0.5).abs() < 1e-14);
    /// assert!((Activation::Tanh.second_moment().sqrt() - 0.6278).abs() < 2e-4);
    /// ```
    pub fn second_moment(self) -> f64 {
        let Some(function) = self.function() else {
            return if self == Self::Identity { 1.0 } else { 0.5 };
        };
        let NormalRule { points, weights } = normal_rule();
        let mut values = vec![0.0; points.len()];
        function.values(points, &mut values);
        values.iter().zip(weights).map(|(value, weight)| weight * value * value).sum()
    }
}

impl FromStr for Activation {
    type Err = NetError;

    fn from_str(text: &str) -> Result<Self> {
        let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
        let wanted = plain(text);
        NAMES.iter().find(|(name, _)| plain(name) == wanted).map(|&(_, activation)| activation).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|&(name, _)| name).collect();
            NetError::Setting(format!("activation = {text:?}; accepted: {}", names.join(", ")))
        })
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, activation)| activation == self).map_or("", |&(name, _)| name);
        f.write_str(name)
    }
}

impl Serialize for Activation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Activation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Activation {
    /// The scalar function, if it is the same for all units.
    fn function(self) -> Option<Function> {
        Some(match self {
            Self::Relu => Function::Relu,
            Self::LeakyRelu => Function::LeakyRelu(0.01),
            Self::Relu6 => Function::Clip { low: 0.0, high: 6.0 },
            Self::Elu => Function::Elu(1.0),
            Self::Selu => Function::Selu { alpha: 1.673_263_242_354_377_2, gamma: 1.050_700_987_355_480_5 },
            Self::Celu => Function::Celu(1.0),
            Self::Gelu => Function::Gelu,
            Self::GeluTanh => Function::GeluTanh,
            Self::Silu => Function::Swish(1.0),
            Self::HardSwish => Function::HardSwish,
            Self::Mish => Function::Mish,
            Self::Softplus => Function::Softplus,
            Self::Softsign => Function::Softsign,
            Self::Sigmoid => Function::Sigmoid,
            Self::Tanh => Function::Tanh,
            Self::Erf => Function::Erf,
            Self::Sin => Function::Sin,
            Self::Cos => Function::Cos,
            Self::Square => Function::Power(2.0),
            Self::Abs => Function::Abs,
            Self::SinCos | Self::Identity => return None,
        })
    }

    /// Appends the activation to a graph; units are along axis 1.
    pub(super) fn append(self, builder: &mut GraphBuilder, name: &str, x: ValueId) -> Result<ValueId> {
        if let Some(function) = self.function() {
            return builder.node(&format!("{name}/{self}"), Unary(function), &[x]);
        }
        if self == Self::Identity {
            return Ok(x);
        }
        let shape = builder.shape(x).to_vec();
        let units = shape[1];
        if units < 2 {
            return Err(NetError::Setting(format!(
                "{name}: sin-cos needs at least 2 units, but the layer has {units}"
            )));
        }
        let half = units.div_ceil(2);
        let mut part = |which: &str, start: usize, size: usize, function: Function| {
            let slice = Slice::along(&shape, 1, start, size);
            let x = builder.node(&format!("{name}/{which}/units"), slice, &[x])?;
            builder.node(&format!("{name}/{which}"), Unary(function), &[x])
        };
        let sin = part("sin", 0, half, Function::Sin)?;
        let cos = part("cos", half, units - half, Function::Cos)?;
        builder.node(&format!("{name}/sin-cos"), Concat { axis: 1 }, &[sin, cos])
    }
}
