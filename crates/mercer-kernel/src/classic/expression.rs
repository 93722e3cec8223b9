//! Kernel expressions: sums and products of kernels and positive numbers, and their parameters.

use super::catalogue::{Kind, Spec};
use super::error::ClassicError;
use std::fmt;

/// A classic kernel as a formula. Its text parses back to the same expression. It has a flat list of positive
/// parameters that can be tuned through their logarithms.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula(pub(super) Node);

/// A sum does not directly contain sums, nor a product products; both have at least two operands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Number(f64),
    Term(Term),
    Sum(Vec<Node>),
    Product(Vec<Node>),
}

/// A kernel with the values of its settings: one number, or one per coordinate of a sample.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    pub(super) spec: &'static Spec,
    pub(super) values: Vec<Vec<f64>>,
}

/// A parameter that can be tuned.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelParameter {
    /// The name, such as `rbf.lengthscale`, `rbf.lengthscale[2]` or `factor`; the second parameter of a name is
    /// `rbf.lengthscale #2`.
    pub name: String,
    /// Its value, positive.
    pub value: f64,
}

impl Node {
    pub(super) fn sum(nodes: Vec<Node>) -> Node {
        let flat = nodes.into_iter().flat_map(|node| match node {
            Node::Sum(inner) => inner,
            other => vec![other],
        });
        Self::single(flat.collect(), Node::Sum)
    }

    pub(super) fn product(nodes: Vec<Node>) -> Node {
        let flat = nodes.into_iter().flat_map(|node| match node {
            Node::Product(inner) => inner,
            other => vec![other],
        });
        Self::single(flat.collect(), Node::Product)
    }

    fn single(mut nodes: Vec<Node>, many: impl FnOnce(Vec<Node>) -> Node) -> Node {
        match nodes.len() {
            1 => nodes.remove(0),
            _ => many(nodes),
        }
    }

    /// Calls `each` for all tunable parameters, in the order of the text.
    fn visit(&mut self, each: &mut dyn FnMut(String, &mut f64)) {
        match self {
            Self::Number(value) => each("factor".to_owned(), value),
            Self::Sum(nodes) | Self::Product(nodes) => nodes.iter_mut().for_each(|node| node.visit(each)),
            Self::Term(term) => {
                let spec = term.spec;
                for (values, setting) in term.values.iter_mut().zip(spec.settings) {
                    let many = values.len() > 1;
                    for (at, value) in values.iter_mut().enumerate() {
                        if setting.kind.is_tuned(*value) {
                            let place = if many { format!("[{at}]") } else { String::new() };
                            each(format!("{}.{}{place}", spec.name, setting.name), value);
                        }
                    }
                }
            }
        }
    }
}

impl Kind {
    /// Whether a parameter of this kind can be tuned through its logarithm.
    pub(super) fn is_tuned(self, value: f64) -> bool {
        match self {
            Self::Positive | Self::Lengths => true,
            Self::NotNegative => value > 0.0,
            Self::Whole(_) => false,
        }
    }
}

impl Formula {
    /// The tunable parameters, in the order of the text: numbers, lengthscales and other positive parameters, but not
    /// degrees, orders or a bias of zero.
    pub fn parameters(&self) -> Vec<KernelParameter> {
        let mut parameters: Vec<KernelParameter> = Vec::new();
        self.0.clone().visit(&mut |name, value| {
            let again = |other: &&KernelParameter| other.name.split(" #").next() == Some(&name);
            let name = match parameters.iter().filter(again).count() {
                0 => name,
                before => format!("{name} #{}", before + 1),
            };
            parameters.push(KernelParameter { name, value: *value });
        });
        parameters
    }

    /// The logarithms of the [parameters](Self::parameters).
    pub fn logs(&self) -> Vec<f64> {
        self.parameters().iter().map(|parameter| parameter.value.ln()).collect()
    }

    /// The same kernel with other values of the [parameters](Self::parameters), given by their logarithms. Values that
    /// round to zero or infinity are an error.
    pub fn with_logs(&self, logs: &[f64]) -> Result<Self, ClassicError> {
        let parameters = self.parameters();
        if parameters.len() != logs.len() {
            let reason = format!("{} values are given for {} parameters", logs.len(), parameters.len());
            return Err(ClassicError::Parameter { name: self.to_string(), reason });
        }
        for (parameter, log) in parameters.iter().zip(logs) {
            if !(log.exp().is_finite() && log.exp() > 0.0) {
                let reason = format!("the exponential of {log} is not a positive number");
                return Err(ClassicError::Parameter { name: parameter.name.clone(), reason });
            }
        }
        let mut node = self.0.clone();
        let mut next = logs.iter();
        node.visit(&mut |_, value| {
            if let Some(log) = next.next() {
                *value = log.exp();
            }
        });
        Ok(Self(node))
    }
}

impl std::ops::Add for Formula {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(Node::sum(vec![self.0, other.0]))
    }
}

impl std::ops::Mul for Formula {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self(Node::product(vec![self.0, other.0]))
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => formatter.write_str(&number(*value)),
            Self::Term(term) => term.fmt(formatter),
            Self::Sum(nodes) => separated(formatter, nodes, " + "),
            Self::Product(nodes) => {
                for (at, node) in nodes.iter().enumerate() {
                    formatter.write_str(if at == 0 { "" } else { "*" })?;
                    match node {
                        Self::Sum(_) => write!(formatter, "({node})")?,
                        _ => node.fmt(formatter)?,
                    }
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}(", self.spec.name)?;
        for (at, (values, setting)) in self.values.iter().zip(self.spec.settings).enumerate() {
            let numbers: Vec<String> = values.iter().map(|&value| number(value)).collect();
            let value = if numbers.len() == 1 { numbers.concat() } else { format!("[{}]", numbers.join(", ")) };
            write!(formatter, "{}{}={value}", if at == 0 { "" } else { ", " }, setting.name)?;
        }
        formatter.write_str(")")
    }
}

fn separated(formatter: &mut fmt::Formatter<'_>, nodes: &[Node], between: &str) -> fmt::Result {
    for (at, node) in nodes.iter().enumerate() {
        write!(formatter, "{}{node}", if at == 0 { "" } else { between })?;
    }
    Ok(())
}

/// The shortest text that reads back as the same number.
fn number(value: f64) -> String {
    if value == 0.0 || (1e-5..1e16).contains(&value.abs()) { value.to_string() } else { format!("{value:e}") }
}
