//! A kernel as data, from which it can be built again for new samples.

use crate::activation::{Activations, Conjugate};
use crate::algebra::{Joined, Normalised, Product, Scaled, Sum, Times, UnitLength};
use crate::classic::{Classic, Formula};
use crate::direction::Directions;
use crate::empirical::{FormChoice, Ntk, NtkKind, Selection};
use crate::error::{KernelError, Result};
use crate::feature::{FeatureMap, Features};
use crate::infinite::{Limit, LimitKind, Rule};
use crate::kernel::{Kernel, Real};
use crate::montecarlo::{Ensemble, MonteCarlo, RandomNetworks};
use crate::sketch::{Sketch, Spec};
use mercer_net::Network;
use mercer_net::network::{Logits, default_logits};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// A kernel of a network, a function of the data alone, or a combination of these. It is written and read in the
/// [kernel language](crate::language).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Recipe {
    /// A classic kernel by its formula, such as `rbf(lengthscale=1.5)`.
    Classic(String),
    /// The empirical NTK of a network.
    Tangent {
        /// The kernel of the outputs.
        kind: NtkKind,
        /// The part of the network.
        #[serde(default)]
        selection: Selection,
        /// Whether to compute one matrix per layer.
        #[serde(default)]
        by_layer: bool,
    },
    /// A sketch of the empirical NTK.
    Sketch(Spec),
    /// The features of the last hidden layer.
    Conjugate {
        /// The output that follows the layer; by default the first.
        output: Option<String>,
        /// Whether to include the feature of the last layer's bias, if it has one.
        bias: bool,
    },
    /// The features at these nodes.
    Embedding(Vec<String>),
    /// The limit of infinite width.
    Limit {
        /// NNGP or NTK.
        of: LimitKind,
        /// The distribution of the weights.
        rule: Rule,
    },
    /// The mean over random networks.
    MonteCarlo {
        /// NNGP or NTK.
        of: LimitKind,
        /// The distribution of the weights.
        rule: Rule,
        /// The number of networks.
        networks: usize,
        /// The seed.
        seed: u64,
        /// Whether to compute standard errors beside the kernel.
        #[serde(default)]
        errors: bool,
    },
    /// The tangent kernel from derivatives along random directions.
    Directions {
        /// The number of directions.
        count: usize,
        /// The kernel of the outputs.
        kind: NtkKind,
        /// The part of the network.
        selection: Selection,
        /// Use random signs instead of normal numbers.
        signs: bool,
        /// The seed.
        seed: u64,
    },
    /// Divided by `√(κ(x,x)·κ(x',x'))`.
    Normalised(Box<Recipe>),
    /// A multiple.
    Scaled {
        /// The factor.
        factor: f64,
        /// The kernel.
        kernel: Box<Recipe>,
    },
    /// `Σ κᵢ`.
    Sum(Vec<Recipe>),
    /// `Π κᵢ`, element by element.
    Product(Vec<Recipe>),
}

impl Serialize for Recipe {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Recipe {
    /// Reads a text. Folders of version 1 have a map with the same content, which is still readable.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrMap;

        impl<'de> Visitor<'de> for TextOrMap {
            type Value = Recipe;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a kernel in the language of kernels")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Recipe, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Recipe, A::Error> {
                Recipe::deserialize(MapAccessDeserializer::new(map))
            }
        }

        deserializer.deserialize_any(TextOrMap)
    }
}

/// A kernel, its feature map if it has one, and the form chosen for each parameter of an exact NTK.
#[derive(Clone, Debug)]
pub struct Built<T: Real> {
    /// The kernel.
    pub kernel: Arc<dyn Kernel<T>>,
    /// Its features.
    pub map: Option<Arc<dyn FeatureMap<T>>>,
    /// The form of each parameter.
    pub choices: Vec<FormChoice>,
}

impl<T: Real> Built<T> {
    /// A kernel without a feature map.
    fn new(kernel: impl Kernel<T> + 'static) -> Self {
        Self { kernel: Arc::new(kernel), map: None, choices: Vec::new() }
    }

    fn from_map(map: impl FeatureMap<T> + 'static) -> Self {
        let map: Arc<dyn FeatureMap<T>> = Arc::new(map);
        Self { kernel: Arc::new(Features(Arc::clone(&map))), map: Some(map), choices: Vec::new() }
    }
}

impl Recipe {
    /// The operands, if it is a combination of kernels.
    fn parts(&self) -> &[Recipe] {
        match self {
            Self::Normalised(inner) | Self::Scaled { kernel: inner, .. } => std::slice::from_ref(inner),
            Self::Sum(kernels) | Self::Product(kernels) => kernels,
            _ => &[],
        }
    }

    /// Whether it, or any of its operands, has a property.
    fn any(&self, has: &dyn Fn(&Recipe) -> bool) -> bool {
        has(self) || self.parts().iter().any(|part| part.any(has))
    }

    /// Whether it needs a network.
    pub fn needs_network(&self) -> bool {
        self.any(&|recipe| recipe.parts().is_empty() && !matches!(recipe, Self::Classic(_)))
    }

    /// Whether it depends only on the distribution of a network's weights, not on the weights themselves.
    pub fn draws_weights(&self) -> bool {
        let drawn = |recipe: &Recipe| matches!(recipe, Self::Limit { .. } | Self::MonteCarlo { .. });
        self.any(&drawn) && !self.any(&|recipe| recipe.parts().is_empty() && !drawn(recipe))
    }

    /// The logits whose kernel it is, if no value was chosen and the network ends in a softmax or sigmoid.
    pub fn logits(&self, network: Option<&Network>, shapes: &[Vec<usize>]) -> Option<Logits> {
        let by_default = |recipe: &Recipe| match recipe {
            Self::Tangent { selection, .. }
            | Self::Directions { selection, .. }
            | Self::Sketch(Spec { selection, .. }) => selection.output.is_none(),
            Self::Limit { .. } | Self::MonteCarlo { .. } => true,
            _ => false,
        };
        if !self.any(&by_default) {
            return None;
        }
        let graph = network?.graph(shapes).ok()?;
        default_logits(&graph)?.1
    }

    /// Whether it uses derivatives with respect to the network's parameters, and so depends on what counts as a
    /// parameter.
    pub fn depends_on_parameters(&self) -> bool {
        self.any(&|recipe| matches!(recipe, Self::Tangent { .. } | Self::Directions { .. } | Self::Sketch(_)))
    }

    /// The same kernel as one matrix per layer, if it is an exact tangent kernel, or a multiple or the normalisation of
    /// one.
    pub fn by_layer(self) -> Option<Self> {
        Some(match self {
            Self::Tangent { kind, selection, .. } => Self::Tangent { kind, selection, by_layer: true },
            Self::Normalised(inner) => Self::Normalised(Box::new(inner.by_layer()?)),
            Self::Scaled { factor, kernel } => Self::Scaled { factor, kernel: Box::new(kernel.by_layer()?) },
            _ => return None,
        })
    }

    /// The same kernel with standard errors beside it, if it is a mean over several random networks.
    pub fn with_errors(self, wanted: bool) -> Self {
        match self {
            Self::MonteCarlo { of, rule, networks, seed, .. } => {
                Self::MonteCarlo { of, rule, networks, seed, errors: wanted && networks > 1 }
            }
            other => other,
        }
    }

    /// The kernel for samples of these shapes, one per input.
    ///
    /// # Errors
    /// [`KernelError::Setting`] if it needs a network and there is none; otherwise the error of the kernel's
    /// constructor.
    pub fn build<T: Real>(&self, network: Option<&Network>, shapes: &[Vec<usize>]) -> Result<Built<T>> {
        T::build_recipe(self, network, shapes)
    }

    /// [`build`](Self::build), which is compiled where it is called.
    pub(crate) fn compose<T: Real>(&self, network: Option<&Network>, shapes: &[Vec<usize>]) -> Result<Built<T>> {
        let needed = || network.ok_or_else(|| KernelError::Setting("the network of this kernel is missing".to_owned()));
        Ok(match self {
            Self::Classic(formula) => {
                let expression: Formula = formula.parse()?;
                let [shape] = shapes else {
                    return Err(KernelError::Setting(format!(
                        "{formula} is a kernel of one input, not of {}",
                        shapes.len()
                    )));
                };
                Built::new(Classic::new(&expression, shape.iter().product())?)
            }
            Self::Tangent { kind, selection, by_layer } => {
                let ntk = Ntk::with_selection(needed()?, shapes, *kind, selection)?;
                let ntk = if *by_layer { ntk.by_layer() } else { ntk };
                let choices = ntk.choices();
                Built { kernel: Arc::new(ntk), map: None, choices }
            }
            Self::Sketch(spec) => Built::from_map(Sketch::from_spec(needed()?, shapes, spec)?),
            Self::Conjugate { output, bias } => {
                let features = Conjugate::new(needed()?, shapes, output.as_deref())?;
                Built::from_map(if *bias { features } else { features.without_bias() })
            }
            Self::Embedding(nodes) => {
                let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
                Built::from_map(Activations::new(needed()?, shapes, &nodes)?)
            }
            Self::Limit { of, rule } => Built::new(Limit::of_network(needed()?, shapes, rule, *of)?),
            Self::Directions { count, kind, selection, signs, seed } => {
                let directions = Directions::new(needed()?, shapes, *kind, selection, *count, *seed)?;
                let built = Built::from_map(if *signs { directions.signs() } else { directions });
                // Rows of a matrix-valued kernel are not features of a sample.
                if built.kernel.per_sample() > 1 { Built { map: None, ..built } } else { built }
            }
            Self::MonteCarlo { of, rule, networks, seed, errors } => {
                let ensemble = Arc::new(Ensemble::new(needed()?, shapes, rule, *seed)?);
                let drawn = || RandomNetworks::new(Arc::clone(&ensemble), *networks);
                let kernel = MonteCarlo::over(drawn()?, *of)?;
                let kernel = if *errors { kernel.with_errors()? } else { kernel };
                let map: Option<Arc<dyn FeatureMap<T>>> = match of {
                    LimitKind::Nngp => Some(Arc::new(drawn()?)),
                    LimitKind::Ntk => None,
                };
                Built { kernel: Arc::new(kernel), map, choices: Vec::new() }
            }
            Self::Normalised(inner) => {
                let built: Built<T> = inner.build(network, shapes)?;
                let map = built.map.map(|map| Arc::new(UnitLength(map)) as Arc<dyn FeatureMap<T>>);
                Built { kernel: Arc::new(Normalised::new(built.kernel)), map, choices: built.choices }
            }
            Self::Scaled { factor, kernel } => {
                let built: Built<T> = kernel.build(network, shapes)?;
                let kernel = Scaled::new(built.kernel, T::narrow(*factor))?;
                let times = |map| Times { map, factor: T::narrow(factor.sqrt()) };
                let map = built.map.map(|map| Arc::new(times(map)) as Arc<dyn FeatureMap<T>>);
                Built { kernel: Arc::new(kernel), map, choices: built.choices }
            }
            Self::Sum(kernels) | Self::Product(kernels) => {
                let built = kernels.iter().map(|kernel| kernel.build(network, shapes)).collect::<Result<Vec<_>>>()?;
                let choices = built.iter().flat_map(|built| built.choices.clone()).collect();
                let maps: Option<Vec<_>> = built.iter().map(|built: &Built<T>| built.map.clone()).collect();
                let kernels = built.into_iter().map(|built: Built<T>| built.kernel).collect();
                match self {
                    Self::Sum(_) => {
                        let map = maps.map(|maps| Arc::new(Joined(maps)) as Arc<dyn FeatureMap<T>>);
                        Built { kernel: Arc::new(Sum::new(kernels)?), map, choices }
                    }
                    _ => Built { kernel: Arc::new(Product::new(kernels)?), map: None, choices },
                }
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

    /// The products of the features are the kernel, also for combinations of kernels with features.
    #[test]
    fn combinations_of_features_have_features() {
        let network = mercer_net::arch::Mlp::new(2, &[5], 3).build(0).expect("builds");
        let (samples, inputs) = (4, [0.3, -1.0, 2.0, 0.5, 0.0, 0.7, -0.4, 1.1]);
        for (text, has_map) in [
            ("normalised(ck)", true),
            ("2.5*ck", true),
            ("normalised(trace(sketch=sjlt:16))", true),
            ("0.5*normalised(ck) + pseudo(sketch=sjlt:8)", true),
            ("ck + trace", false),
            ("ck * ck", false),
            ("normalised(trace)", false),
        ] {
            let recipe: Recipe = text.parse().expect("a kernel");
            let built = recipe.build::<f64>(Some(&network), &[vec![2]]).expect("builds");
            assert_eq!(built.map.is_some(), has_map, "{text}");
            let Some(map) = built.map else { continue };
            let width = map.n_features();
            let mut features = vec![0.0; samples * width];
            map.features(&[&inputs], samples, &mut features).expect("computes");
            let block = built.kernel.prepare(&[&inputs], samples).expect("prepares");
            let mut tile = vec![0.0; samples * samples];
            built.kernel.contract(&block, &block, &mut tile);
            for (at, value) in tile.iter().enumerate() {
                let row = |sample: usize| &features[sample * width..(sample + 1) * width];
                let product: f64 = row(at / samples).iter().zip(row(at % samples)).map(|(a, b)| a * b).sum();
                assert!((product - value).abs() < 1e-12 * (1.0 + value.abs()), "{text}: {product} {value}");
            }
        }
    }

    #[test]
    fn a_recipe_builds_the_same_kernel_after_a_round_trip() {
        let network = mercer_net::arch::Mlp::new(2, &[5], 3).build(0).expect("builds");
        let tangent = Recipe::Tangent { kind: NtkKind::Trace, selection: Selection::default(), by_layer: false };
        let recipes = [
            tangent.clone(),
            Recipe::Normalised(Box::new(tangent)),
            Recipe::Conjugate { output: None, bias: true },
            Recipe::Limit { of: LimitKind::Ntk, rule: Rule::ntk(1.4, 0.1) },
            Recipe::MonteCarlo { of: LimitKind::Nngp, rule: Rule::ntk(1.4, 0.1), networks: 3, seed: 1, errors: false },
            Recipe::Sketch(Spec::new(crate::sketch::SketchMethod::Gaussian, 8, NtkKind::Pseudo)),
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
