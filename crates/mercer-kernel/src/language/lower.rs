//! Lowers a parsed text to a [`Recipe`].

use super::arguments::Arguments;
use super::catalogue::{find, names, needs_network};
use super::syntax::{Call, Content, Node, Parsed, Text};
use super::{Defaults, SyntaxError};
use crate::classic::Formula;
use crate::empirical::{NtkKind, Selection};
use crate::infinite::{LimitKind, Parametrisation, Rule, Variances};
use crate::recipe::Recipe;
use crate::sketch;
use mercer_run::names::{Named, unknown};

/// The default number of random networks to average over.
const NETWORKS: usize = 100;

/// The kernel that a text describes. Settings that the text leaves open come from the defaults.
///
/// # Errors
/// The column where the text stops being a kernel, and a suggestion.
pub(super) fn parse(text: &str, defaults: &Defaults) -> Result<Recipe, SyntaxError> {
    let text = Text::new(text);
    Lowering { text: &text, defaults }.node(&text.read()?)
}

struct Lowering<'a> {
    text: &'a Text,
    defaults: &'a Defaults,
}

impl Lowering<'_> {
    fn node(&self, node: &Node) -> Parsed<Recipe> {
        match node {
            _ if is_classic(node) => Ok(Recipe::Classic(Formula::lower(node, self.text)?.to_string())),
            Node::Call(call) => self.call(call),
            Node::Sum(nodes) => Ok(Recipe::Sum(self.all(nodes.iter())?)),
            Node::Product(nodes) => {
                let is_number = |node: &&Node| matches!(node, Node::Number(_));
                let factor = nodes.iter().map(|node| if let Node::Number(value) = node { *value } else { 1.0 });
                let mut kernels = self.all(nodes.iter().filter(|node| !is_number(node)))?;
                let kernel = if kernels.len() == 1 { kernels.remove(0) } else { Recipe::Product(kernels) };
                Ok(match nodes.iter().any(|node| is_number(&node)) {
                    true => Recipe::Scaled { factor: factor.product(), kernel: Box::new(kernel) },
                    false => kernel,
                })
            }
            Node::Number(value) => Ok(Recipe::Classic(value.to_string())),
        }
    }

    fn all<'n>(&self, nodes: impl Iterator<Item = &'n Node>) -> Parsed<Vec<Recipe>> {
        nodes.map(|node| self.node(node)).collect()
    }

    fn call(&self, call: &Call) -> Parsed<Recipe> {
        let Some(entry) = find(&call.name) else {
            return Err(self.text.fail(call.at, unknown("kernel", &call.name, &names())));
        };
        let arguments = Arguments::new(entry, call, self.text)?;
        match entry.name {
            "normalised" => match arguments.positional().map(|value| &value.content) {
                Some(Content::Kernel(inner)) => Ok(Recipe::Normalised(Box::new(self.node(inner)?))),
                Some(Content::Number(value, _)) if *value > 0.0 && value.is_finite() => {
                    Ok(Recipe::Normalised(Box::new(self.node(&Node::Number(*value))?)))
                }
                _ => arguments.fail("normalised needs a kernel in parentheses, as in normalised(trace)"),
            },
            "trace" => self.tangent(NtkKind::Trace, &arguments),
            "pseudo" => self.tangent(NtkKind::Pseudo, &arguments),
            "full" => self.tangent(NtkKind::Full, &arguments),
            "logit" => self.tangent(NtkKind::Logit(arguments.whole_position("output")?), &arguments),
            "directions" => Ok(Recipe::Directions {
                count: arguments.whole_position("number of directions")?,
                kind: arguments.word("of", str::parse)?.unwrap_or(NtkKind::Trace),
                selection: selection(&arguments)?,
                signs: arguments.flag("signs")?.unwrap_or(false),
                seed: self.seed(&arguments)?,
            }),
            "ck" => {
                Ok(Recipe::Conjugate { output: arguments.text("node")?, bias: arguments.flag("bias")?.unwrap_or(true) })
            }
            "embedding" => match arguments.texts("nodes")? {
                Some(nodes) => Ok(Recipe::Embedding(nodes)),
                None => arguments.fail("which nodes? Write embedding(nodes=[\"NODE\"]); `mercer info` lists them"),
            },
            "nngp" => Ok(Recipe::Limit { of: LimitKind::Nngp, rule: self.rule(&arguments)? }),
            "ntk-limit" => Ok(Recipe::Limit { of: LimitKind::Ntk, rule: self.rule(&arguments)? }),
            "nngp-mc" => self.mean(LimitKind::Nngp, &arguments),
            _ => self.mean(LimitKind::Ntk, &arguments),
        }
    }

    fn tangent(&self, kind: NtkKind, arguments: &Arguments<'_>) -> Parsed<Recipe> {
        let selection = selection(arguments)?;
        let parse = |text: &str| sketch::parse(text).map_err(|error| error.to_string());
        let Some((method, k)) = arguments.word("sketch", parse)? else {
            for name in ["total", "seed"] {
                if arguments.has(name) {
                    return arguments.fail_at(name, format!("{name} is a setting of a sketch, as in sketch=sjlt:4096"));
                }
            }
            return Ok(Recipe::Tangent { kind, selection, by_layer: false });
        };
        if kind == NtkKind::Full && selection.combine.is_none() {
            return arguments.fail_at("sketch", "the full kernel has no sketch; use trace or pseudo");
        }
        let total = arguments.flag("total")?.unwrap_or(false);
        let seed = self.seed(arguments)?;
        Ok(Recipe::Sketch(sketch::Spec { method, k, total, seed, kind, selection }))
    }

    fn mean(&self, of: LimitKind, arguments: &Arguments<'_>) -> Parsed<Recipe> {
        let networks = arguments.whole("networks")?.unwrap_or(NETWORKS);
        if networks == 0 {
            return arguments.fail_at("networks", "networks must be at least 1");
        }
        let (rule, seed) = (self.rule(arguments)?, self.seed(arguments)?);
        Ok(Recipe::MonteCarlo { of, rule, networks, seed, errors: false })
    }

    fn seed(&self, arguments: &Arguments<'_>) -> Parsed<u64> {
        Ok(arguments.whole("seed")?.unwrap_or(self.defaults.seed))
    }

    /// The distribution of the weights.
    fn rule(&self, arguments: &Arguments<'_>) -> Parsed<Rule> {
        let initialisation = arguments.word("initialisation", Named::from_name)?;
        let (variances, usual) = match (arguments.positive("weight-std")?, arguments.positive("bias-std")?) {
            (Some(_), _) if initialisation.is_some() => {
                return arguments.fail_at("initialisation", "give either initialisation or weight-std");
            }
            (Some(weight), bias) => (Variances::Deviations { weight, bias: bias.unwrap_or(0.0) }, Parametrisation::Ntk),
            (None, Some(_)) => return arguments.fail_at("bias-std", "bias-std needs weight-std"),
            (None, None) => {
                let initialisation = initialisation.unwrap_or(self.defaults.initialisation);
                (Variances::Initialisation(initialisation), Parametrisation::AsWritten)
            }
        };
        let parametrisation = arguments.word("parametrisation", Named::from_name)?.unwrap_or(usual);
        Ok(Rule { variances, parametrisation })
    }
}

fn selection(arguments: &Arguments<'_>) -> Parsed<Selection> {
    Ok(Selection {
        output: arguments.text("node")?,
        components: arguments.wholes("outputs")?,
        combine: arguments.numbers("combine")?,
        parameters: arguments.texts("params")?.unwrap_or_default(),
    })
}

/// Whether all kernels of an expression are functions of the data alone. An unknown name is not.
fn is_classic(node: &Node) -> bool {
    match node {
        Node::Number(_) => true,
        Node::Call(call) => !needs_network(&call.name) && Formula::has(&call.name),
        Node::Sum(nodes) | Node::Product(nodes) => nodes.iter().all(is_classic),
    }
}
