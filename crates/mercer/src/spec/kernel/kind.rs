//! Which kernel of a network, by name.

use mercer_kernel::Kind;
use mercer_kernel::infinite::Of;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The kernels of a network that have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum KernelKind {
    /// The empirical NTK.
    Tangent(Kind),
    /// Features of the last hidden layer.
    Conjugate,
    /// Features at chosen nodes.
    Embedding,
    /// The limit of infinite width.
    Limit(Of),
    /// The mean over random networks.
    MonteCarlo(Of),
    /// A function of the data, which a formula gives.
    Classic,
}

impl KernelKind {
    /// Whether the kernel is of the distribution of weights, not of the weights that a network has.
    pub fn draws_weights(self) -> bool {
        matches!(self, Self::Limit(_) | Self::MonteCarlo(_))
    }
}

impl From<KernelKind> for String {
    fn from(kind: KernelKind) -> Self {
        kind.to_string()
    }
}

impl TryFrom<String> for KernelKind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for KernelKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "full" => Self::Tangent(Kind::Full),
            "trace" => Self::Tangent(Kind::Trace),
            "pseudo" => Self::Tangent(Kind::Pseudo),
            "ck" => Self::Conjugate,
            "embedding" => Self::Embedding,
            "nngp" => Self::Limit(Of::Nngp),
            "ntk-limit" => Self::Limit(Of::Ntk),
            "nngp-mc" => Self::MonteCarlo(Of::Nngp),
            "ntk-mc" => Self::MonteCarlo(Of::Ntk),
            "logit" => return Err("say which output, as in logit:0".to_owned()),
            other => match other.strip_prefix("logit:").map(str::parse) {
                Some(Ok(index)) => Self::Tangent(Kind::Logit(index)),
                Some(Err(_)) => return Err("the output of logit:I is a number, counted from 0".to_owned()),
                None => {
                    return Err("kinds are full, trace, pseudo, logit:I, ck, embedding, nngp, ntk-limit, nngp-mc and \
                                ntk-mc"
                        .to_owned());
                }
            },
        })
    }
}

impl fmt::Display for KernelKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tangent(Kind::Full) => formatter.write_str("full"),
            Self::Tangent(Kind::Trace) => formatter.write_str("trace"),
            Self::Tangent(Kind::Pseudo) => formatter.write_str("pseudo"),
            Self::Tangent(Kind::Logit(index)) => write!(formatter, "logit:{index}"),
            Self::Conjugate => formatter.write_str("ck"),
            Self::Embedding => formatter.write_str("embedding"),
            Self::Limit(Of::Nngp) => formatter.write_str("nngp"),
            Self::Limit(Of::Ntk) => formatter.write_str("ntk-limit"),
            Self::MonteCarlo(Of::Nngp) => formatter.write_str("nngp-mc"),
            Self::MonteCarlo(Of::Ntk) => formatter.write_str("ntk-mc"),
            Self::Classic => formatter.write_str("classic"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_they_are_written() {
        for text in ["full", "trace", "pseudo", "logit:7", "ck", "embedding", "nngp", "ntk-limit", "nngp-mc", "ntk-mc"]
        {
            assert_eq!(text.parse::<KernelKind>().unwrap().to_string(), text);
        }
        for text in ["", "Full", "logit", "logit:", "logit:-1", "logit:x", "ntk"] {
            assert!(text.parse::<KernelKind>().is_err(), "{text}");
        }
    }
}
