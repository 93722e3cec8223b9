//! A kernel as data: what it takes to build it again for new samples.

use crate::activation::{Activations, Conjugate};
use crate::algebra::Normalised;
use crate::classic::{Classic, Expression};
use crate::empirical::{Choice, Kind, Ntk, Selection};
use crate::error::{KernelError, Result};
use crate::feature::{FeatureMap, Features};
use crate::infinite::{Limit, Of, Rule};
use crate::kernel::{Kernel, Real};
use crate::montecarlo::{Ensemble, MonteCarlo, RandomNetworks};
use crate::sketch::{Sketch, Spec};
use mercer_net::Network;
use mercer_net::network::{Logits, default_logits};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which kernel, of a network or of none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Recipe {
    /// A classic kernel by its formula, as `rbf(lengthscale=1.5)`.
    Classic(String),
    /// The empirical NTK of a network.
    Tangent {
        /// Of which outputs.
        kind: Kind,
        /// Of which part.
        #[serde(default)]
        selection: Selection,
        /// As one matrix per layer.
        #[serde(default)]
        by_layer: bool,
    },
    /// A sketch of the empirical NTK.
    Sketch(Spec),
    /// The features of the last hidden layer.
    Conjugate {
        /// Before this output; the first if there is none.
        output: Option<String>,
        /// With the feature of the last layer's bias, if it has one.
        bias: bool,
    },
    /// The features at these nodes.
    Embedding(Vec<String>),
    /// The limit of infinite width.
    Limit {
        /// NNGP or NTK.
        of: Of,
        /// The distribution of the weights.
        rule: Rule,
    },
    /// The mean over random networks.
    MonteCarlo {
        /// NNGP or NTK.
        of: Of,
        /// The distribution of the weights.
        rule: Rule,
        /// How many networks.
        networks: usize,
        /// Of the random numbers.
        seed: u64,
        /// With the standard errors beside the kernel.
        #[serde(default)]
        errors: bool,
    },
    /// Divided by `√(κ(x,x)·κ(x',x'))`.
    Normalised(Box<Recipe>),
}

/// A kernel, its feature map if it has one, and what was chosen for each parameter of an exact NTK.
#[derive(Clone, Debug)]
pub struct Built<T: Real> {
    /// The kernel.
    pub kernel: Arc<dyn Kernel<T>>,
    /// Its features.
    pub map: Option<Arc<dyn FeatureMap<T>>>,
    /// The form of each parameter.
    pub choices: Vec<Choice>,
}

impl<T: Real> Built<T> {
    fn of_map(map: impl FeatureMap<T> + 'static) -> Self {
        let map: Arc<dyn FeatureMap<T>> = Arc::new(map);
        Self { kernel: Arc::new(Features(Arc::clone(&map))), map: Some(map), choices: Vec::new() }
    }
}

impl Recipe {
    /// Whether it is the kernel of a network.
    pub fn needs_network(&self) -> bool {
        match self {
            Self::Classic(_) => false,
            Self::Normalised(inner) => inner.needs_network(),
            _ => true,
        }
    }

    /// The logits that the kernel is of, where it is of what lies before the network's output because nobody chose another value.
    pub fn logits(&self, network: Option<&Network>, shapes: &[Vec<usize>]) -> Option<Logits> {
        let chosen = match self {
            Self::Tangent { selection, .. } | Self::Sketch(Spec { selection, .. }) => selection.output.is_some(),
            Self::Limit { .. } | Self::MonteCarlo { .. } => false,
            Self::Normalised(inner) => return inner.logits(network, shapes),
            _ => true,
        };
        if chosen {
            return None;
        }
        let graph = network?.graph(shapes).ok()?;
        default_logits(&graph)?.1
    }

    /// Whether it is made of derivatives by the parameters of the network as it is, so that it depends on what counts as one.
    pub fn depends_on_parameters(&self) -> bool {
        match self {
            Self::Tangent { .. } | Self::Sketch(_) => true,
            Self::Normalised(inner) => inner.depends_on_parameters(),
            _ => false,
        }
    }

    /// The kernel for samples of these shapes, one per input.
    ///
    /// # Errors
    /// [`KernelError::Setting`] if it needs a network and there is none; else what the kernel's own constructor returns.
    pub fn build<T: Real>(&self, network: Option<&Network>, shapes: &[Vec<usize>]) -> Result<Built<T>> {
        let needed =
            || network.ok_or_else(|| KernelError::Setting("this kernel is of a network, which is missing".to_owned()));
        Ok(match self {
            Self::Classic(formula) => {
                let expression: Expression = formula.parse()?;
                let [shape] = shapes else {
                    return Err(KernelError::Setting(format!(
                        "{formula} is a kernel of one input, not of {}",
                        shapes.len()
                    )));
                };
                let kernel = Classic::new(&expression, shape.iter().product())?;
                Built { kernel: Arc::new(kernel), map: None, choices: Vec::new() }
            }
            Self::Tangent { kind, selection, by_layer } => {
                let ntk = Ntk::of(needed()?, shapes, *kind, selection)?;
                let ntk = if *by_layer { ntk.by_layer() } else { ntk };
                let choices = ntk.choices();
                Built { kernel: Arc::new(ntk), map: None, choices }
            }
            Self::Sketch(spec) => Built::of_map(Sketch::from_spec(needed()?, shapes, spec)?),
            Self::Conjugate { output, bias } => {
                let features = Conjugate::new(needed()?, shapes, output.as_deref())?;
                Built::of_map(if *bias { features } else { features.without_bias() })
            }
            Self::Embedding(nodes) => {
                let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
                Built::of_map(Activations::new(needed()?, shapes, &nodes)?)
            }
            Self::Limit { of, rule } => Built {
                kernel: Arc::new(Limit::of_network(needed()?, shapes, rule, *of)?),
                map: None,
                choices: Vec::new(),
            },
            Self::MonteCarlo { of, rule, networks, seed, errors } => {
                let ensemble = Arc::new(Ensemble::new(needed()?, shapes, rule, *seed)?);
                let drawn = || RandomNetworks::new(Arc::clone(&ensemble), *networks);
                let kernel = MonteCarlo::of(drawn()?, *of)?;
                let kernel = if *errors { kernel.with_errors()? } else { kernel };
                let map: Option<Arc<dyn FeatureMap<T>>> = match of {
                    Of::Nngp => Some(Arc::new(drawn()?)),
                    Of::Ntk => None,
                };
                Built { kernel: Arc::new(kernel), map, choices: Vec::new() }
            }
            Self::Normalised(inner) => {
                let built = inner.build(network, shapes)?;
                Built { kernel: Arc::new(Normalised::new(built.kernel)), map: None, ..built }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formula_is_a_recipe() {
        let recipe = Recipe::Classic("2*rbf(lengthscale=1.5)".to_owned());
        let text = serde_json::to_string(&recipe).expect("writes");
        let read: Recipe = serde_json::from_str(&text).expect("reads");
        assert!(!read.needs_network());
        let kernel = read.build::<f64>(None, &[vec![2, 3]]).expect("builds").kernel;
        let block = kernel.prepare(&[&[0.5; 6]], 1).expect("prepares");
        assert_eq!(kernel.diagonal(&block), [2.0]);
        assert!(read.build::<f64>(None, &[vec![2], vec![3]]).is_err());
        assert!(Recipe::Classic("rbf(".to_owned()).build::<f64>(None, &[vec![2]]).is_err());
    }

    #[test]
    fn a_recipe_builds_the_same_kernel_after_a_round_trip() {
        let network = mercer_net::arch::Mlp::new(2, &[5], 3).build(0).expect("builds");
        let tangent = Recipe::Tangent { kind: Kind::Trace, selection: Selection::default(), by_layer: false };
        let recipes = [
            tangent.clone(),
            Recipe::Normalised(Box::new(tangent)),
            Recipe::Conjugate { output: None, bias: true },
            Recipe::Limit { of: Of::Ntk, rule: Rule::ntk(1.4, 0.1) },
            Recipe::MonteCarlo { of: Of::Nngp, rule: Rule::ntk(1.4, 0.1), networks: 3, seed: 1, errors: false },
            Recipe::Sketch(Spec::new(crate::sketch::Method::Gaussian, 8, Kind::Pseudo)),
        ];
        for recipe in recipes {
            let text = serde_json::to_string(&recipe).expect("writes");
            let read: Recipe = serde_json::from_str(&text).expect("reads");
            let shapes = [vec![2]];
            let kernels =
                [&recipe, &read].map(|recipe| recipe.build::<f64>(Some(&network), &shapes).expect("builds").kernel);
            assert_eq!(kernels[0].identity(), kernels[1].identity(), "{text}");
            let tangent =
                !matches!(recipe, Recipe::Conjugate { .. } | Recipe::Limit { .. } | Recipe::MonteCarlo { .. });
            assert_eq!(read.depends_on_parameters(), tangent, "{text}");
            assert!(read.needs_network() && read.build::<f64>(None, &shapes).is_err(), "{text}");
        }
    }
}
