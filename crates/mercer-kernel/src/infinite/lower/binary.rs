//! Primitives of two and three operands: biases, scales, sums of branches, and pieces of activations.

use super::layout::Layout;
use super::walk::{Known, Random, Walk, uniform};
use crate::error::Result;
use crate::infinite::expression::Elementwise;
use crate::infinite::net::Scales;
use crate::infinite::refuse;
use mercer_net::graph::{Node, ValueId};
use mercer_net::op::{Combine, Function};
use std::sync::Arc;

impl Walk<'_> {
    pub(super) fn binary(&mut self, node: &Node, combine: Combine, operands: &[Known]) -> Result<Random> {
        let label = node.label();
        let [a, b] = operands else { return refuse(&label, "it needs two operands") };
        match (a, b) {
            (Known::Random(x), Known::Random(y)) if x.node == y.node && x.layout == y.layout => {
                self.check_shortcut(&label, combine, x, y)?;
                let function = Elementwise::Binary(combine, Arc::clone(&x.function), Arc::clone(&y.function));
                let sole = x.sole && y.sole;
                self.elementwise(&label, &Random { sole, ..x.clone() }, function)
            }
            (Known::Random(x), Known::Random(y)) => self.sum(node, combine, x, y),
            (Known::Random(x), Known::Constant(data)) | (Known::Constant(data), Known::Random(x)) => {
                let Some(value) = uniform(data) else {
                    return refuse(&label, "it combines units with constants that differ from unit to unit");
                };
                let (own, constant) = (Arc::clone(&x.function), Arc::new(Elementwise::Constant(value)));
                let first = matches!(a, Known::Random(_));
                let ordered = |own, constant| if first { (own, constant) } else { (constant, own) };
                let (a, b) = ordered(Arc::new(Elementwise::Unit), Arc::clone(&constant));
                if let Some(layer) = self.own_scale(&label, x, simplified(combine, a, b))? {
                    return Ok(layer);
                }
                let (a, b) = ordered(own, constant);
                self.elementwise(&label, x, simplified(combine, a, b))
            }
            (Known::Random(x), Known::Parameter { id, factor }) => {
                self.with_parameter(&label, combine, (x, node.inputs[0]), (*id, *factor, node.inputs[1]))
            }
            (Known::Parameter { id, factor }, Known::Random(x)) if matches!(combine, Combine::Add | Combine::Mul) => {
                self.with_parameter(&label, combine, (x, node.inputs[1]), (*id, *factor, node.inputs[0]))
            }
            (Known::Random(x), Known::Fixed) if matches!(combine, Combine::Add | Combine::Sub) => {
                self.with_input(&label, x, node.inputs[0], node.inputs[1])
            }
            (Known::Fixed, Known::Random(x)) if combine == Combine::Add => {
                self.with_input(&label, x, node.inputs[1], node.inputs[0])
            }
            _ => refuse(&label, "it combines values that depend on the data with parameters or with each other"),
        }
    }

    /// A shortcut around an activation, without its own layer.
    fn check_shortcut(&self, label: &str, combine: Combine, x: &Random, y: &Random) -> Result<()> {
        let passes = |x: &Random| x.function.affine().is_some();
        let bends = |x: &Random| !x.function.is_polynomial();
        let around = passes(x) && bends(y) || passes(y) && bends(x);
        if matches!(combine, Combine::Add | Combine::Sub) && around {
            let layer = &self.net.nodes()[x.node].name;
            let reason = format!("it joins branches that are not independent: {layer} and an activation of it");
            return refuse(label, &reason);
        }
        Ok(())
    }

    fn sum(&mut self, node: &Node, combine: Combine, x: &Random, y: &Random) -> Result<Random> {
        let label = node.label();
        if !matches!(combine, Combine::Add | Combine::Sub) {
            return refuse(&label, "it multiplies or compares branches");
        }
        let (xs, ys) = (self.shape(node.inputs[0]), self.shape(node.inputs[1]));
        if xs != ys || x.layout != y.layout {
            return refuse(&label, &format!("it joins branches of different shapes, {xs:?} and {ys:?}"));
        }
        // The sign of a branch does not affect a covariance without cross terms.
        let branches = [self.materialise(&label, x)?, self.materialise(&label, y)?];
        let sum = self.net.sum(&label, &branches)?;
        Ok(Random::bare(sum, x.layout.clone()))
    }

    fn with_input(&mut self, label: &str, x: &Random, own: ValueId, fixed: ValueId) -> Result<Random> {
        let (shape, other) = (self.shape(own), self.shape(fixed));
        if shape != other || x.layout.flat {
            return refuse(label, &format!("it joins branches of different shapes, {shape:?} and {other:?}"));
        }
        let input = self.fixed(label, fixed, &x.layout)?;
        let branch = self.materialise(label, x)?;
        let sum = self.net.sum(label, &[branch, input])?;
        Ok(Random::bare(sum, x.layout.clone()))
    }

    /// A bias or a scale per unit.
    fn with_parameter(
        &mut self,
        label: &str,
        combine: Combine,
        (x, own): (&Random, ValueId),
        (parameter, factor, as_used): (ValueId, f64, ValueId),
    ) -> Result<Random> {
        let (shape, used) = (self.shape(own), self.shape(as_used));
        let name = &self.graph.value(parameter).name;
        if !per_unit(&x.layout, shape, used) {
            return refuse(label, &format!("the parameter {name:?} does not have one number for each unit"));
        }
        let scales = match combine {
            Combine::Add | Combine::Sub => {
                let node = self.layer_behind(label, x)?;
                match self.fan_in.get(&node.node).copied() {
                    Some(fan_in) => (node, self.rule.bias(fan_in, factor)),
                    // Shifts of normalisations are initially zero.
                    None => (node, Scales { bias: 0.0, bias_rate: factor * factor, ..self.rule.bias(1, factor) }),
                }
            }
            Combine::Mul => {
                // Scales of normalisations are initially one.
                let rate = factor * factor;
                let node = self.layer_behind(label, x)?;
                (node, Scales { weight: rate, bias: 0.0, weight_rate: rate, bias_rate: 0.0, mixes: false })
            }
            _ => {
                return refuse(
                    label,
                    &format!("it combines units with the parameter {name:?} in another way than + and ×"),
                );
            }
        };
        self.take(label, parameter)?;
        let (behind, scales) = scales;
        let made = if combine == Combine::Mul {
            self.net.dense(label, behind.node, scales)?
        } else {
            self.scaled(label, &behind, scales)?
        };
        Ok(Random::bare(made, x.layout.clone()))
    }

    /// The value as its own layer.
    fn layer_behind(&mut self, label: &str, x: &Random) -> Result<Random> {
        let node = self.materialise(label, x)?;
        Ok(Random { sole: x.sole, ..Random::bare(node, x.layout.clone()) })
    }

    /// A choice between functions of the same units.
    pub(super) fn choice(&mut self, node: &Node, operands: &[Known]) -> Result<Random> {
        let label = node.label();
        let mut base: Option<Random> = None;
        let mut functions = Vec::new();
        for operand in operands {
            match operand {
                Known::Random(x) => {
                    if base.as_ref().is_some_and(|base| base.node != x.node || base.layout != x.layout) {
                        return refuse(&label, "it chooses between branches");
                    }
                    functions.push(Arc::clone(&x.function));
                    let sole = x.sole && base.as_ref().is_none_or(|base| base.sole);
                    base = Some(Random { sole, ..x.clone() });
                }
                Known::Constant(data) => match uniform(data) {
                    Some(value) => functions.push(Arc::new(Elementwise::Constant(value))),
                    None => return refuse(&label, "it chooses between constants that differ from unit to unit"),
                },
                _ => return refuse(&label, "it chooses between branches"),
            }
        }
        let (Some(base), [condition, a, b]) = (base, &functions[..]) else {
            return refuse(&label, "it needs three operands");
        };
        let function = Elementwise::Where(Arc::clone(condition), Arc::clone(a), Arc::clone(b));
        self.elementwise(&label, &base, function)
    }
}

/// Constants that are scales and powers become functions of one number.
fn simplified(combine: Combine, a: Arc<Elementwise>, b: Arc<Elementwise>) -> Elementwise {
    match (combine, &*a, &*b) {
        (Combine::Pow, _, Elementwise::Constant(power)) => Elementwise::Unary(Function::Power(*power), a),
        _ => Elementwise::Binary(combine, a, b),
    }
}

/// Whether a broadcast parameter of this shape has one number per unit; fewer would make units dependent.
fn per_unit(layout: &Layout, shape: &[usize], used: &[usize]) -> bool {
    let Some(missing) = shape.len().checked_sub(used.len()) else { return false };
    let size = |axis: usize| axis.checked_sub(missing).map_or(1, |axis| used[axis]);
    let others = (0..shape.len()).filter(|&axis| axis != layout.channel).all(|axis| size(axis) == 1);
    !layout.flat && others && size(layout.channel) == shape[layout.channel]
}
