//! A [`Recipe`] as text, which reads back as the same recipe for any defaults.
//!
//! Matrices by layer and standard errors beside a mean are settings of a run. They are not part of the kernel or its
//! text.

use crate::empirical::{NtkKind, Selection};
use crate::infinite::{LimitKind, Parametrisation, Rule, Variances};
use crate::recipe::Recipe;
use crate::sketch::{SketchMethod, Spec};
use std::fmt;

impl fmt::Display for Recipe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Classic(formula) => formatter.write_str(formula),
            Self::Normalised(inner) => write!(formatter, "normalised({inner})"),
            Self::Sum(kernels) => formatter.write_str(&joined(kernels, " + ")),
            Self::Product(kernels) => formatter.write_str(&factors(kernels)),
            Self::Scaled { factor, kernel } => match &**kernel {
                Self::Product(kernels) => write!(formatter, "{factor:?}*{}", factors(kernels)),
                other => write!(formatter, "{factor:?}*{}", in_product(other)),
            },
            leaf => {
                let (name, arguments) = call(leaf);
                match arguments.is_empty() {
                    true => formatter.write_str(name),
                    false => write!(formatter, "{name}({})", arguments.join(", ")),
                }
            }
        }
    }
}

/// The name and the arguments of a kernel that is not a combination.
fn call(recipe: &Recipe) -> (&'static str, Vec<String>) {
    match recipe {
        Recipe::Tangent { kind, selection, .. } => tangent(*kind, selection),
        Recipe::Sketch(Spec { method, k, total, seed, kind, selection }) => {
            let (name, mut arguments) = tangent(*kind, selection);
            let more = match method {
                SketchMethod::SparseJl { nonzeros } if *nonzeros != 1 => format!(":{nonzeros}"),
                _ => String::new(),
            };
            arguments.push(format!("sketch={method}:{k}{more}"));
            push_if(&mut arguments, *total, "total=true");
            arguments.push(format!("seed={seed}"));
            (name, arguments)
        }
        Recipe::Directions { count, kind, selection, signs, seed } => {
            let mut arguments = vec![count.to_string()];
            push_if(&mut arguments, *kind != NtkKind::Trace, &format!("of={}", kind.name()));
            arguments.extend(chosen(selection));
            push_if(&mut arguments, *signs, "signs=true");
            arguments.push(format!("seed={seed}"));
            ("directions", arguments)
        }
        Recipe::Conjugate { output, bias } => {
            let mut arguments: Vec<String> = output.iter().map(|name| format!("node={}", quoted(name))).collect();
            push_if(&mut arguments, !bias, "bias=false");
            ("ck", arguments)
        }
        Recipe::Embedding(nodes) => ("embedding", vec![format!("nodes={}", texts(nodes))]),
        Recipe::Limit { of, rule } => {
            let name = if *of == LimitKind::Nngp { "nngp" } else { "ntk-limit" };
            (name, weights(rule))
        }
        Recipe::MonteCarlo { of, rule, networks, seed, .. } => {
            let name = if *of == LimitKind::Nngp { "nngp-mc" } else { "ntk-mc" };
            let mut arguments = vec![format!("networks={networks}")];
            arguments.extend(weights(rule));
            arguments.push(format!("seed={seed}"));
            (name, arguments)
        }
        Recipe::Classic(_) | Recipe::Normalised(_) | Recipe::Sum(_) | Recipe::Product(_) | Recipe::Scaled { .. } => {
            ("", Vec::new())
        }
    }
}

fn push_if(arguments: &mut Vec<String>, given: bool, text: &str) {
    arguments.extend(given.then(|| text.to_owned()));
}

fn tangent(kind: NtkKind, selection: &Selection) -> (&'static str, Vec<String>) {
    let (name, output) = match kind {
        NtkKind::Full => ("full", None),
        NtkKind::Trace => ("trace", None),
        NtkKind::Pseudo => ("pseudo", None),
        NtkKind::Logit(output) => ("logit", Some(output.to_string())),
    };
    (name, output.into_iter().chain(chosen(selection)).collect())
}

fn chosen(selection: &Selection) -> Vec<String> {
    let Selection { output, components, combine, parameters } = selection;
    let node = output.iter().map(|name| format!("node={}", quoted(name)));
    let outputs = components.iter().map(|components| format!("outputs={components:?}"));
    let combine = combine.iter().map(|numbers| format!("combine={numbers:?}"));
    let params = (!parameters.is_empty()).then(|| format!("params={}", texts(parameters)));
    node.chain(outputs).chain(combine).chain(params).collect()
}

fn weights(rule: &Rule) -> Vec<String> {
    let (mut arguments, usual) = match rule.variances {
        Variances::Initialisation(initialisation) => {
            (vec![format!("initialisation={initialisation}")], Parametrisation::AsWritten)
        }
        Variances::Deviations { weight, bias } => {
            (vec![format!("weight-std={weight:?}"), format!("bias-std={bias:?}")], Parametrisation::Ntk)
        }
    };
    let parametrisation = rule.parametrisation;
    push_if(&mut arguments, parametrisation != usual, &format!("parametrisation={parametrisation}"));
    arguments
}

fn texts(names: &[String]) -> String {
    match names {
        [name] => quoted(name),
        names => format!("[{}]", names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

fn joined(kernels: &[Recipe], between: &str) -> String {
    kernels.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

fn factors(kernels: &[Recipe]) -> String {
    kernels.iter().map(in_product).collect::<Vec<_>>().join("*")
}

/// Puts a sum within a product into parentheses. The text of a classic kernel shows whether it is a sum.
fn in_product(recipe: &Recipe) -> String {
    match recipe {
        Recipe::Sum(_) => format!("({recipe})"),
        Recipe::Classic(formula) if formula.contains(" + ") => format!("({formula})"),
        other => other.to_string(),
    }
}
