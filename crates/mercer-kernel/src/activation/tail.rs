//! The operations after the last product of a network: factors, biases and sums over positions, collected backwards
//! from the output.

use super::last::{Bias, Positions, padding};
use mercer_net::graph::{Graph, Node, ValueId};
use mercer_net::op::{Conv, MatMul};

/// A linear function of a value, the same for every position in its sum.
#[derive(Debug)]
pub(super) struct Tail {
    /// The factors of the outputs; one if they are all the same.
    factors: Vec<f64>,
    /// For each axis of the value, whether it is summed over.
    summed: Vec<bool>,
    /// The number of positions in the sum.
    count: usize,
    pub(super) biases: Vec<Bias>,
    pub(super) obstacle: Option<String>,
}

impl Default for Tail {
    fn default() -> Self {
        Self { factors: vec![1.0], summed: Vec::new(), count: 1, biases: Vec::new(), obstacle: None }
    }
}

impl Tail {
    /// The factor of all outputs, or the root mean square.
    pub(super) fn scale(&self) -> f64 {
        match self.factors[..] {
            [factor] => factor,
            _ => (self.factors.iter().map(|x| x * x).sum::<f64>() / self.factors.len() as f64).sqrt(),
        }
    }

    pub(super) fn scaled(&mut self, factor: f64) {
        self.factors.iter_mut().for_each(|own| *own *= factor);
    }

    /// Constants, one or as many as there are elements.
    pub(super) fn multiplied(&mut self, node: &Node, constants: Vec<f64>, elements: usize) -> Result<(), &'static str> {
        match constants.first() {
            Some(&first) if constants.iter().all(|&constant| constant == first) => {
                self.scaled(first);
                return Ok(());
            }
            _ if constants.len() != elements || self.count > 1 => {
                return Err("multiplies positions with different constants");
            }
            _ => {}
        }
        if self.factors.len() == 1 {
            self.factors = vec![self.factors[0]; elements];
        }
        self.factors.iter_mut().zip(constants).for_each(|(own, constant)| *own *= constant);
        // A single scale is no longer exact for each output.
        self.obstacle.get_or_insert_with(|| node.label());
        Ok(())
    }

    /// A bias with one element per output, or one for all: a parameter with its factor, or a value computed from
    /// parameters.
    pub(super) fn add(&mut self, bias: Option<(usize, f64)>, sign: f64) {
        let (parameter, factor) = bias.map_or((None, 1.0), |(at, factor)| (Some(at), factor));
        let scale = sign * factor * self.count as f64 * self.scale();
        match self.biases.iter_mut().find(|own| parameter.is_some() && own.parameter == parameter) {
            Some(own) => own.scale += scale,
            None => self.biases.push(Bias { parameter, scale }),
        }
    }

    /// The same for a bias of this shape that is added to a value of this rank.
    pub(super) fn add_along(
        &mut self,
        bias: Option<(usize, f64)>,
        sign: f64,
        shape: &[usize],
        rank: usize,
    ) -> Result<(), &'static str> {
        let summed = self.summed.iter().rev().take(rank);
        if shape.iter().rev().zip(summed).any(|(&size, &summed)| size > 1 && summed) {
            return Err("adds a bias that is different at every position");
        }
        self.add(bias, sign);
        Ok(())
    }

    /// A nonlinear function: the operations after it are not part of the layer.
    pub(super) fn function(&mut self, node: &Node) -> Result<(), &'static str> {
        if self.count > 1 {
            return Err("is not linear, and a sum over positions follows it");
        }
        let obstacle = self.obstacle.take().unwrap_or_else(|| node.label());
        *self = Self { obstacle: Some(obstacle), ..Self::default() };
        Ok(())
    }

    /// Back through a sum or a mean.
    pub(super) fn sum(&mut self, axes: &[usize], keep: bool, mean: bool, from: &[usize]) -> Result<(), &'static str> {
        let members: usize = axes.iter().map(|&axis| from[axis]).product();
        if members > 1 && self.factors.len() > 1 {
            return Err("sums over positions that different constants multiply");
        }
        let mut after = std::mem::take(&mut self.summed).into_iter();
        let mut next = || after.next().unwrap_or(false);
        self.summed = (0..from.len())
            .map(|axis| {
                let reduced = axes.contains(&axis);
                let own = if reduced && !keep { false } else { next() };
                own || reduced
            })
            .collect();
        self.count = self.count.saturating_mul(members);
        if mean {
            self.scaled(1.0 / members.max(1) as f64);
        }
        Ok(())
    }

    pub(super) fn transpose(&mut self, perm: &[usize], from: &[usize]) -> Result<(), &'static str> {
        let turned: Vec<usize> = perm.iter().copied().filter(|&axis| from[axis] > 1).collect();
        if self.factors.len() > 1 && !turned.is_sorted() {
            return Err("turns outputs that different constants multiply");
        }
        if !self.summed.is_empty() {
            let mut summed = vec![false; from.len()];
            perm.iter().zip(&self.summed).for_each(|(&axis, &own)| summed[axis] = own);
            self.summed = summed;
        }
        Ok(())
    }

    /// Back through a reshape to the shape `to`. Axes may be split or merged as long as the summed axes stay together.
    pub(super) fn reshape(&mut self, to: &[usize], from: &[usize]) -> Result<(), &'static str> {
        if self.summed.is_empty() {
            return Ok(());
        }
        let mixed = "merges positions with outputs";
        let mut after = to.iter().zip(std::mem::take(&mut self.summed)).filter(|(size, _)| **size > 1).peekable();
        let mut summed = Vec::with_capacity(from.len());
        // The remaining part of the result's axis that covers the operand's axes.
        let mut left = 1;
        let mut role = false;
        for &size in from {
            let mut covered = 1;
            if size > 1 && left > 1 {
                if left % size != 0 {
                    return Err(mixed);
                }
                (left, covered) = (left / size, size);
            }
            while covered < size {
                let Some((&length, own)) = after.next() else { return Err(mixed) };
                if covered > 1 && own != role {
                    return Err(mixed);
                }
                role = own;
                let needed = size / covered;
                if needed % length == 0 {
                    covered *= length;
                } else if length % needed == 0 {
                    (covered, left) = (size, length / needed);
                } else {
                    return Err(mixed);
                }
            }
            summed.push(size > 1 && role);
        }
        self.summed = summed;
        Ok(())
    }

    /// The layout of the positions in the product's operand `x`, once the product is reached.
    pub(super) fn positions(&self, graph: &Graph, node: &Node, x: ValueId) -> Result<Option<Positions>, &'static str> {
        let shape = |id: ValueId| &graph.value(id).meta.shape[..];
        let (from, to, any) = (shape(x), shape(node.output), node.op.as_any());
        // All axes except the output axis must be summed over.
        let is_summed = |axis: usize| self.summed.get(axis).copied().unwrap_or(false);
        let rest_summed = |own: usize| (0..to.len()).all(|axis| to[axis] == 1 || is_summed(axis) == (axis != own));
        if let Some(conv) = any.downcast_ref::<Conv>() {
            let weight = shape(node.inputs[1]);
            let whole = weight[2..] == from[2..] && padding(&conv.window) == 0;
            let single = weight[2..].iter().all(|&size| size == 1)
                && conv.window.strides.iter().all(|&stride| stride == 1)
                && padding(&conv.window) == 0;
            return match () {
                _ if conv.groups != 1 => Err("is a convolution in groups"),
                _ if whole && self.count == 1 => Ok(None),
                _ if single && self.count > 1 && rest_summed(1) => {
                    Ok(Some(Positions { count: self.count, innermost: true }))
                }
                _ => Err(
                    "is a convolution that no sum over its positions follows, or whose window is not a single point",
                ),
            };
        }
        let left = node.inputs[0] == x;
        let inner = shape(node.inputs[0]).last().copied().unwrap_or(1);
        let elements: usize = from.iter().product();
        if self.count == 1 {
            return if elements == inner { Ok(None) } else { Err("multiplies several positions of a sample") };
        }
        let own = if left { to.len() - 1 } else { to.len() - 2 };
        let weight = shape(if left { node.inputs[1] } else { node.inputs[0] });
        let single = weight[..weight.len() - 2].iter().all(|&size| size == 1);
        let transposed = any.downcast_ref::<MatMul>().is_some_and(|product| product.transposed);
        let innermost = !left && !transposed;
        let mixed = innermost && from[..from.len() - 2].iter().any(|&size| size > 1);
        if !single || mixed || !rest_summed(own) || elements != inner * self.count {
            return Err("multiplies several positions of a sample");
        }
        Ok(Some(Positions { count: self.count, innermost }))
    }
}
