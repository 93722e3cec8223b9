//! The projections of gradients, and their names.

use crate::error::{KernelError, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A random projection of gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SketchMethod {
    /// Independent normal entries.
    Gaussian,
    /// Independent signs.
    Rademacher,
    /// A block count-sketch: a sparse Johnson–Lindenstrauss matrix with this many non-zeros in every column.
    SparseJl {
        /// Buckets that each coordinate of the gradient goes to.
        nonzeros: usize,
    },
    /// The block-subsampled randomised Hadamard transform.
    Hadamard,
    /// Per layer, the products of projected activations and projected deltas, feature by feature.
    KhatriRao,
    /// Per layer, all products of a few projected activations with a few projected deltas.
    Kronecker,
}

/// By default each coordinate goes to one bucket: the second moment of the error is the same for any number.
const NONZEROS: usize = 1;

/// The largest K: one feature per byte of a large machine's memory is surely a typo.
pub(super) const LARGEST: usize = 1 << 24;

/// The accepted forms of a sketch.
const FORMS: &str = "sjlt:K, sjlt:K:NONZEROS, srht:K, khatri-rao:K, kronecker:K, rademacher:K, gaussian:K";

impl fmt::Display for SketchMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gaussian => "gaussian",
            Self::Rademacher => "rademacher",
            Self::SparseJl { .. } => "sjlt",
            Self::Hadamard => "srht",
            Self::KhatriRao => "khatri-rao",
            Self::Kronecker => "kronecker",
        })
    }
}

/// A method and its K from their textual form: `sjlt:4096`, `sjlt:4096:4` (four non-zeros), `srht:4096`, `khatri-rao:4096`,
/// `kronecker:4096`, `rademacher:4096`, `gaussian:4096`.
///
/// ```
/// use mercer_kernel::sketch::{SketchMethod, parse};
/// assert_eq!(parse("sjlt:4096:2").unwrap(), (SketchMethod::SparseJl { nonzeros: 2 }, 4096));
/// assert!(parse("sjlt").unwrap_err().to_string().contains("khatri-rao:K"));
/// ```
pub fn parse(text: &str) -> Result<(SketchMethod, usize)> {
    let wrong = || KernelError::Setting(format!("{text:?} is not a sketch; write one of {FORMS}"));
    let mut words = text.trim().split(':');
    let name = words.next().unwrap_or_default();
    let number = |word: &str| word.parse::<usize>().map_err(|_| wrong());
    let k = number(words.next().ok_or_else(wrong)?)?;
    let more = words.next().map(number).transpose()?;
    let method = match (name, more) {
        ("sjlt", nonzeros) => SketchMethod::SparseJl { nonzeros: nonzeros.unwrap_or(NONZEROS) },
        ("gaussian", None) => SketchMethod::Gaussian,
        ("rademacher", None) => SketchMethod::Rademacher,
        ("srht", None) => SketchMethod::Hadamard,
        ("khatri-rao", None) => SketchMethod::KhatriRao,
        ("kronecker", None) => SketchMethod::Kronecker,
        _ => return Err(wrong()),
    };
    if words.next().is_some() {
        return Err(wrong());
    }
    method.check(k)?;
    Ok((method, k))
}

impl SketchMethod {
    /// Checks whether this method supports K features.
    pub(super) fn check(self, k: usize) -> Result<()> {
        if k == 0 || k > LARGEST {
            return Err(KernelError::Setting(format!("a sketch has 1 to {LARGEST} features, not {k}")));
        }
        match self {
            Self::SparseJl { nonzeros } if nonzeros == 0 || nonzeros > k => {
                Err(KernelError::Setting(format!("{nonzeros} non-zeros in a column of {k} rows: give 1 to {k}")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_found_by_its_name() {
        for (text, method) in [
            ("gaussian:8", SketchMethod::Gaussian),
            ("rademacher:8", SketchMethod::Rademacher),
            ("sjlt:8", SketchMethod::SparseJl { nonzeros: NONZEROS }),
            ("sjlt:8:3", SketchMethod::SparseJl { nonzeros: 3 }),
            ("srht:8", SketchMethod::Hadamard),
            ("khatri-rao:8", SketchMethod::KhatriRao),
            ("kronecker:8", SketchMethod::Kronecker),
        ] {
            assert_eq!(parse(text).expect(text), (method, 8));
            assert!(text.starts_with(&method.to_string()));
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_list_of_methods() {
        for text in ["", "sjlt", "sjlt:", "sjlt:-1", "sjlt:8:2:1", "gaussian:8:2", "foo:8", "8", "srht:x"] {
            let message = parse(text).expect_err(text).to_string();
            assert!(message.contains("sjlt:K") && message.contains("kronecker:K"), "{message}");
        }
        for text in ["sjlt:0", "sjlt:8:0", "sjlt:8:9", "gaussian:99999999999"] {
            parse(text).expect_err(text);
        }
    }
}
