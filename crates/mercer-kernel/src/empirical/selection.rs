//! The selection to differentiate: which outputs, in which combination, with respect to which parameters.

use super::layers::layer_names;
use crate::error::{KernelError, Result};
use mercer_net::graph::{Graph, ValueId};
use mercer_net::network::default_logits;
use mercer_net::{Element, NetError};
use mercer_run::names;
use serde::{Deserialize, Serialize};

/// The kernel of the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NtkKind {
    /// All pairs of outputs: `N·C × M·C`.
    Full,
    /// The sum of the diagonal of each `C × C` block.
    Trace,
    /// The kernel of the sum of the outputs, over `C`.
    Pseudo,
    /// The kernel of one output.
    Logit(usize),
}

impl NtkKind {
    /// The name: `full`, `trace`, `pseudo`, `logit:3`.
    pub fn name(self) -> String {
        match self {
            Self::Full => "full".to_owned(),
            Self::Trace => "trace".to_owned(),
            Self::Pseudo => "pseudo".to_owned(),
            Self::Logit(index) => format!("logit:{index}"),
        }
    }
}

impl std::str::FromStr for NtkKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let output = text.strip_prefix("logit:").map(str::parse);
        match (text, output) {
            ("full", _) => Ok(Self::Full),
            ("trace", _) => Ok(Self::Trace),
            ("pseudo", _) => Ok(Self::Pseudo),
            (_, Some(Ok(output))) => Ok(Self::Logit(output)),
            _ => Err(format!("`{text}` is not trace, pseudo, full or logit:I")),
        }
    }
}

/// The part of a network whose tangent kernel is computed. The default is all parameters and the first output or, if
/// that ends in a softmax or sigmoid, the logits before it ([`mercer_net::network::Ending`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// The output, or any other value of the network; by default the logits of the first output.
    pub output: Option<String>,
    /// These components of the output, in this order, instead of all.
    pub components: Option<Vec<usize>>,
    /// The scalar `Σ coefficient · component` instead of the components themselves, such as `[1, −1]` for f₁ − f₂.
    pub combine: Option<Vec<f64>>,
    /// Only the parameters whose name or layer matches one of these (`*` and `?` are wild); all if there are none.
    pub parameters: Vec<String>,
}

impl Selection {
    /// The value that is differentiated.
    pub(crate) fn value(&self, graph: &Graph) -> Result<ValueId> {
        let id = match &self.output {
            None => default_logits(graph).map(|(id, _)| id).ok_or_else(|| setting("the network has no output"))?,
            Some(name) => mercer_net::network::find(graph, name)?,
        };
        if graph.value(id).meta.is_batched() {
            return Ok(id);
        }
        let name = &graph.value(id).name;
        Err(KernelError::Setting(format!("{name:?} does not depend on the input: it has no kernel")))
    }

    /// The cotangents for a kind, `[seeds, size of the value]`.
    pub(crate) fn seeds<T: Element>(&self, kind: NtkKind, size: usize) -> Result<Vec<T>> {
        if size > LARGEST_SEEDS {
            return Err(setting(&format!("the output has {size} components, too many to differentiate")));
        }
        let outputs = Outputs::new(self, size)?;
        let count = outputs.len();
        let chosen = match kind {
            NtkKind::Full | NtkKind::Trace if count.saturating_mul(size) > LARGEST_SEEDS => {
                return Err(setting(&format!(
                    "the output has {count} components; choose some, combine them, or take the pseudo kernel"
                )));
            }
            NtkKind::Full | NtkKind::Trace => {
                let mut seeds = vec![0.0; count * size];
                seeds.chunks_exact_mut(size).enumerate().for_each(|(at, row)| outputs.add(at, row));
                seeds
            }
            NtkKind::Pseudo => {
                let (mut sum, scale) = (vec![0.0; size], 1.0 / (count as f64).sqrt());
                (0..count).for_each(|at| outputs.add(at, &mut sum));
                sum.iter_mut().for_each(|x| *x *= scale);
                sum
            }
            NtkKind::Logit(index) if index < count => {
                let mut row = vec![0.0; size];
                outputs.add(index, &mut row);
                row
            }
            NtkKind::Logit(index) => {
                return Err(setting(&format!("there is no output {index}: outputs are 0 to {}", count - 1)));
            }
        };
        Ok(chosen.into_iter().map(T::narrow).collect())
    }

    /// For each parameter whether it is chosen.
    pub(crate) fn parameters(&self, graph: &Graph) -> Result<Vec<bool>> {
        let own: Vec<&str> = graph.parameters().iter().map(|&id| graph.value(id).name.as_str()).collect();
        if self.parameters.is_empty() {
            return Ok(vec![true; own.len()]);
        }
        let layers = layer_names(graph);
        let mut chosen = vec![false; own.len()];
        for pattern in &self.parameters {
            let mut found = false;
            for (at, name) in own.iter().enumerate() {
                if names::matches(pattern, name) || names::matches(pattern, &layers[at]) {
                    (chosen[at], found) = (true, true);
                }
            }
            if !found {
                let mut all: Vec<&str> = own.iter().copied().chain(layers.iter().map(String::as_str)).collect();
                all.sort_unstable();
                all.dedup();
                let near = names::near(pattern, &all);
                return Err(NetError::Unknown { what: "parameter or layer", name: pattern.clone(), near }.into());
            }
        }
        Ok(chosen)
    }
}

/// The outputs of a selection: components of a value, or one combination of them. A pseudo kernel needs only their
/// sum, so they are never a matrix here.
struct Outputs<'a> {
    components: std::borrow::Cow<'a, [usize]>,
    combine: Option<&'a [f64]>,
}

impl<'a> Outputs<'a> {
    fn new(selection: &'a Selection, size: usize) -> Result<Self> {
        if size == 0 {
            return Err(setting("the output is empty"));
        }
        let components: std::borrow::Cow<'a, [usize]> = match &selection.components {
            Some(chosen) if chosen.is_empty() => return Err(setting("no component of the output is chosen")),
            Some(chosen) => chosen.into(),
            None => (0..size).collect(),
        };
        if let Some(bad) = components.iter().find(|&&component| component >= size) {
            return Err(setting(&format!("the output has no component {bad}: components are 0 to {}", size - 1)));
        }
        match &selection.combine {
            Some(coefficients) if coefficients.len() != components.len() => Err(setting(&format!(
                "{} coefficients for {} outputs: give one for each",
                coefficients.len(),
                components.len()
            ))),
            Some(coefficients) if coefficients.iter().any(|x| !x.is_finite()) => {
                Err(setting("a coefficient of the combination is not finite"))
            }
            combine => Ok(Self { components, combine: combine.as_deref() }),
        }
    }

    fn len(&self) -> usize {
        if self.combine.is_some() { 1 } else { self.components.len() }
    }

    /// Adds an output, as weights of the value's elements.
    fn add(&self, index: usize, row: &mut [f64]) {
        match self.combine {
            None => row[self.components[index]] += 1.0,
            Some(coefficients) => {
                for (&component, coefficient) in self.components.iter().zip(coefficients) {
                    row[component] += coefficient;
                }
            }
        }
    }
}

/// Seeds are a dense matrix; more numbers than this are probably a mistake.
const LARGEST_SEEDS: usize = 1 << 26;

fn setting(text: &str) -> KernelError {
    KernelError::Setting(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pseudo or logit kernel has a single seed, and needs no matrix of all components.
    #[test]
    fn a_single_seed_of_many_components() {
        let (whole, size) = (Selection::default(), 100_000);
        let pseudo: Vec<f64> = whole.seeds(NtkKind::Pseudo, size).unwrap();
        assert_eq!(pseudo, vec![1.0 / (size as f64).sqrt(); size]);
        let logit: Vec<f64> = whole.seeds(NtkKind::Logit(7), size).unwrap();
        assert!(logit.iter().enumerate().all(|(at, &x)| x == if at == 7 { 1.0 } else { 0.0 }));
        assert!(whole.seeds::<f64>(NtkKind::Logit(size), size).unwrap_err().to_string().contains("0 to 99999"));
        // All components at once are rejected, with advice that works.
        for kind in [NtkKind::Trace, NtkKind::Full] {
            assert!(whole.seeds::<f64>(kind, size).unwrap_err().to_string().contains("pseudo"));
        }
        let some = Selection { components: Some(vec![5, 5, 1]), ..Selection::default() };
        let third = 1.0 / 3.0_f64.sqrt();
        assert_eq!(some.seeds::<f64>(NtkKind::Pseudo, 6).unwrap(), [0.0, third, 0.0, 0.0, 0.0, 2.0 * third]);
        let combined = Selection { combine: Some(vec![1.0, -1.0, 3.0]), ..some };
        for kind in [NtkKind::Pseudo, NtkKind::Trace, NtkKind::Logit(0)] {
            assert_eq!(combined.seeds::<f64>(kind, 6).unwrap(), [0.0, 3.0, 0.0, 0.0, 0.0, 0.0]);
        }
    }
}
