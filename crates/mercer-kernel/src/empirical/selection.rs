//! What is differentiated: which outputs, in which combination, with respect to which parameters.

use super::layers::layer_names;
use crate::error::{KernelError, Result};
use mercer_net::graph::{Graph, ValueId};
use mercer_net::{Element, NetError, names};
use serde::{Deserialize, Serialize};

/// Which kernel of the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// All pairs of outputs: `N·C × M·C`.
    Full,
    /// The sum of the diagonal of each `C × C` block.
    Trace,
    /// The kernel of the sum of the outputs, over `C`.
    Pseudo,
    /// The kernel of one output.
    Logit(usize),
}

impl Kind {
    /// The name that a user writes: `full`, `trace`, `pseudo`, `logit:3`.
    pub fn name(self) -> String {
        match self {
            Self::Full => "full".to_owned(),
            Self::Trace => "trace".to_owned(),
            Self::Pseudo => "pseudo".to_owned(),
            Self::Logit(index) => format!("logit:{index}"),
        }
    }
}

/// Which part of a network a tangent kernel is of. The default is the first output and all parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// The output, or any other value of the network.
    pub output: Option<String>,
    /// These components of the output, in this order, instead of all.
    pub components: Option<Vec<usize>>,
    /// The scalar `Σ coefficient · component` instead of the components themselves, as `[1, −1]` for f₁ − f₂.
    pub combine: Option<Vec<f64>>,
    /// Only the parameters whose name or layer matches one of these (`*` and `?` are wild); all if there are none.
    pub parameters: Vec<String>,
}

impl Selection {
    /// The value that is differentiated.
    pub(crate) fn value(&self, graph: &Graph) -> Result<ValueId> {
        let id = match &self.output {
            None => graph.outputs().first().map(|&(_, id)| id).ok_or_else(|| setting("the network has no output"))?,
            Some(name) => mercer_net::network::find(graph, name)?,
        };
        if graph.value(id).meta.is_batched() {
            return Ok(id);
        }
        let name = &graph.value(id).name;
        Err(KernelError::Setting(format!("{name:?} does not depend on the input: it has no kernel")))
    }

    /// The cotangents that a kind asks for, `[seeds, size of the value]`.
    pub(crate) fn seeds<T: Element>(&self, kind: Kind, size: usize) -> Result<Vec<T>> {
        if size > LARGEST_SEEDS {
            return Err(setting(&format!("the output has {size} components, too many to differentiate")));
        }
        let rows = self.outputs(size)?;
        let chosen = match kind {
            Kind::Full | Kind::Trace => rows,
            Kind::Pseudo => {
                let scale = 1.0 / (rows.len() as f64).sqrt();
                vec![(0..size).map(|at| scale * rows.iter().map(|row| row[at]).sum::<f64>()).collect()]
            }
            Kind::Logit(index) => {
                let count = rows.len();
                let row = rows.into_iter().nth(index);
                vec![
                    row.ok_or_else(|| setting(&format!("there is no output {index}: outputs are 0 to {}", count - 1)))?,
                ]
            }
        };
        Ok(chosen.into_iter().flatten().map(T::of).collect())
    }

    /// The outputs as rows of weights of the value's elements.
    fn outputs(&self, size: usize) -> Result<Vec<Vec<f64>>> {
        if size == 0 {
            return Err(setting("the output is empty"));
        }
        let components = match &self.components {
            Some(chosen) if chosen.is_empty() => return Err(setting("no component of the output is chosen")),
            Some(chosen) => chosen.clone(),
            None => (0..size).collect(),
        };
        if let Some(bad) = components.iter().find(|&&component| component >= size) {
            return Err(setting(&format!("the output has no component {bad}: components are 0 to {}", size - 1)));
        }
        match &self.combine {
            None if components.len().saturating_mul(size) > LARGEST_SEEDS => Err(setting(&format!(
                "the output has {} components; choose some, combine them, or take the pseudo kernel",
                components.len()
            ))),
            None => Ok(components
                .iter()
                .map(|&component| {
                    let mut row = vec![0.0; size];
                    row[component] = 1.0;
                    row
                })
                .collect()),
            Some(coefficients) if coefficients.len() != components.len() => Err(setting(&format!(
                "{} coefficients for {} outputs: give one for each",
                coefficients.len(),
                components.len()
            ))),
            Some(coefficients) if coefficients.iter().any(|x| !x.is_finite()) => {
                Err(setting("a coefficient of the combination is not finite"))
            }
            Some(coefficients) => {
                let mut row = vec![0.0; size];
                for (&component, coefficient) in components.iter().zip(coefficients) {
                    row[component] += coefficient;
                }
                Ok(vec![row])
            }
        }
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

/// Seeds are a dense matrix; more numbers than this are a mistake rather than a wish.
const LARGEST_SEEDS: usize = 1 << 26;

fn setting(text: &str) -> KernelError {
    KernelError::Setting(text.to_owned())
}
