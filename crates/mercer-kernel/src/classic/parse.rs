//! The textual form: `rbf(lengthscale=1.5) + 0.1*linear()`, in the grammar of [`language`](crate::language).

use super::catalogue::{KERNELS, Kind, Setting, Spec};
use super::error::ClassicError;
use super::expression::{Formula, Node, Term};
use crate::language::{self, Call, Content, Parsed, Text, Value};
use mercer_run::names::unknown;

impl std::str::FromStr for Formula {
    type Err = ClassicError;

    fn from_str(text: &str) -> Result<Self, ClassicError> {
        let text = Text::new(text);
        Ok(Self(node(&text.read()?, &text)?))
    }
}

impl Formula {
    /// Whether a kernel of this name is a function of the data alone.
    pub(crate) fn has(name: &str) -> bool {
        KERNELS.iter().any(|spec| spec.name == name)
    }

    /// The names of all classic kernels.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        KERNELS.iter().map(|spec| spec.name)
    }

    /// The kernel of a parsed expression that names only classic kernels.
    pub(crate) fn lower(read: &language::Node, text: &Text) -> Parsed<Self> {
        node(read, text).map(Self)
    }
}

fn node(read: &language::Node, text: &Text) -> Parsed<Node> {
    let all = |nodes: &[language::Node]| nodes.iter().map(|read| node(read, text)).collect::<Parsed<Vec<Node>>>();
    Ok(match read {
        language::Node::Number(value) => Node::Number(*value),
        language::Node::Call(call) => Node::Term(term(call, text)?),
        language::Node::Sum(nodes) => Node::sum(all(nodes)?),
        language::Node::Product(nodes) => Node::product(all(nodes)?),
    })
}

fn term(call: &Call, text: &Text) -> Parsed<Term> {
    let Some(spec) = KERNELS.iter().find(|spec| spec.name == call.name) else {
        if language::needs_network(&call.name) {
            let reason =
                format!("`{}` is a kernel of a network; a function of the data alone is needed here", call.name);
            return Err(text.fail(call.at, reason));
        }
        let names: Vec<&str> = Formula::names().collect();
        return Err(text.fail(call.at, unknown("kernel", &call.name, &names)));
    };
    let mut given: Vec<Option<Vec<f64>>> = vec![None; spec.settings.len()];
    for argument in &call.arguments {
        let Some(name) = &argument.name else {
            let example = match spec.settings.first() {
                Some(setting) => format!("expected a setting, as in {}={}", setting.name, setting.default),
                None => format!("{} has no settings", spec.name),
            };
            return Err(text.fail(argument.at, example));
        };
        let at = find(spec, name).ok_or_else(|| {
            text.fail(
                argument.at,
                language::unknown_setting(spec.name, name, spec.settings.iter().map(|setting| setting.name)),
            )
        })?;
        if given[at].is_some() {
            return Err(text.fail(argument.at, format!("{name} is given twice")));
        }
        given[at] = Some(numbers(&spec.settings[at], &argument.value, text)?);
    }
    let values = given.into_iter().zip(spec.settings);
    let values = values.map(|(value, setting)| value.unwrap_or_else(|| vec![setting.default])).collect();
    Ok(Term { spec, values })
}

fn find(spec: &Spec, name: &str) -> Option<usize> {
    spec.settings.iter().position(|setting| setting.name == name)
}

/// The values of a setting: one, or one per coordinate of a sample.
fn numbers(setting: &Setting, value: &Value, text: &Text) -> Parsed<Vec<f64>> {
    let one = |value: &Value| match value.content {
        Content::Number(number, _) => {
            setting.refuses(number).map_or(Ok(number), |reason| Err(text.fail(value.at, reason)))
        }
        _ => Err(text.fail(value.at, format!("expected a number for {}", setting.name))),
    };
    match &value.content {
        Content::List(_) if setting.kind != Kind::Lengths => {
            Err(text.fail(value.at, format!("{} is one number, not a list", setting.name)))
        }
        Content::List(values) if values.is_empty() => {
            Err(text.fail(value.at, format!("expected a number for {} in the list", setting.name)))
        }
        Content::List(values) => values.iter().map(one).collect(),
        _ => Ok(vec![one(value)?]),
    }
}
