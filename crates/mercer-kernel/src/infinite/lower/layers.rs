//! Random layers, pools and concatenations of units.

use super::layout::Layout;
use super::walk::{Known, Random, Walk};
use crate::error::Result;
use crate::infinite::expression::Elementwise;
use crate::infinite::net::{NodeId, Scales};
use crate::infinite::patch::Patch;
use crate::infinite::refuse;
use mercer_net::graph::Node;
use mercer_net::op::{Concat, Conv, Function, Margin, MatMul, Pad, Pool, Pooling, Reduce, Reduction, Window};
use std::sync::Arc;

impl Walk<'_> {
    pub(super) fn dense(&mut self, node: &Node, product: &MatMul, operands: &[Known]) -> Result<Random> {
        let label = node.label();
        let [x, Known::Parameter { id, factor }] = operands else {
            return refuse(&label, "it multiplies values that depend on the data, or weights from the left");
        };
        let (shape, weight) = (self.shape(node.inputs[0]), self.shape(node.inputs[1]));
        if weight.iter().rev().skip(2).any(|&size| size != 1) {
            return refuse(&label, "it multiplies by a stack of weights");
        }
        let fan_in = weight[weight.len() - if product.transposed { 1 } else { 2 }];
        let last = shape.len() - 1;
        let (input, space) = match x {
            Known::Fixed => {
                let Some(layout) = Layout::with_channel(shape, last) else {
                    return refuse(
                        &label,
                        &format!("its input of shape {shape:?} has more than two axes of positions"),
                    );
                };
                (self.fixed(&label, node.inputs[0], &layout)?, layout.space)
            }
            Known::Random(x) => {
                if x.layout.channel != last && shape[last] > 1 {
                    return refuse(&label, "it sums over positions instead of units");
                }
                let input = self.materialise(&label, x)?;
                let input = if x.layout.flat { self.net.flatten(&label, input) } else { input };
                (input, x.layout.space.clone())
            }
            _ => return refuse(&label, "it does not depend on the data"),
        };
        self.take(&label, *id)?;
        let scales = self.rule.weight(fan_in).then(Scales::factor(*factor));
        let made = self.net.dense(&label, input, scales)?;
        self.fan_in.insert(made, fan_in);
        Ok(Random::bare(made, Layout { channel: last, space, flat: false }))
    }

    pub(super) fn conv(&mut self, node: &Node, conv: &Conv, operands: &[Known]) -> Result<Random> {
        let label = node.label();
        let [x, Known::Parameter { id, factor }, bias @ ..] = operands else {
            return refuse(&label, "its weight is not a parameter");
        };
        if conv.groups != 1 {
            return refuse(&label, "its units do not see all others (groups)");
        }
        let (shape, weight) = (self.shape(node.inputs[0]), self.shape(node.inputs[1]));
        let Some(layout) = Layout::image(shape) else {
            return refuse(&label, "convolutions are known over one or two axes of space");
        };
        let mut patch = patch_of(&weight[2..], &conv.window);
        let input = match x {
            Known::Fixed => self.fixed(&label, node.inputs[0], &layout)?,
            Known::Random(x) => {
                if !x.layout.is_image(shape) {
                    return refuse(&label, "it slides over units");
                }
                if let Some(pad) = &x.margin {
                    let wraps = pad.mode == Margin::Wrap;
                    if wraps && (patch.before, patch.after) != ([0; 2], [0; 2]) {
                        return refuse(&label, "it pads with zeros what was padded with the other end");
                    }
                    patch.circular = wraps;
                    for axis in 2..shape.len() {
                        let to = axis + 2 - shape.len();
                        patch.before[to] += pad.before[axis];
                        patch.after[to] += pad.after[axis];
                    }
                }
                self.materialise(&label, &Random { margin: None, ..x.clone() })?
            }
            _ => return refuse(&label, "it does not depend on the data"),
        };
        self.take(&label, *id)?;
        let fan_in: usize = weight[1..].iter().product();
        let mut scales = self.rule.weight(fan_in).then(Scales::factor(*factor));
        match bias {
            [] => {}
            [Known::Parameter { id, factor }] => {
                self.take(&label, *id)?;
                scales = scales.then(self.rule.bias(fan_in, *factor));
            }
            [Known::Constant(data)] if data.iter().all(|&x| x == 0.0) => {}
            _ => return refuse(&label, "its bias is not a parameter"),
        }
        let made = self.net.conv(&label, input, scales, patch)?;
        self.fan_in.insert(made, fan_in);
        Ok(Random::bare(made, layout))
    }

    pub(super) fn pad(&self, label: &str, x: Random, shape: &[usize], pad: &Pad) -> Result<Random> {
        let known = matches!(pad.mode, Margin::Wrap | Margin::Constant(0.0));
        let inside = x.layout.is_image(shape) && pad.before[..2] == [0; 2] && pad.after[..2] == [0; 2];
        if !known || !inside {
            return refuse(label, "it pads other axes than those of images, or with other numbers than zeros");
        }
        Ok(Random { margin: Some(pad.clone()), ..x })
    }

    pub(super) fn pool(&mut self, label: &str, x: &Random, shape: &[usize], pool: &Pool) -> Result<Random> {
        let Pooling::Average { count_padding } = pool.kind else {
            return refuse(label, "the largest of correlated numbers has no closed form (max-pool)");
        };
        if pool.round_up || !x.layout.is_image(shape) || shape.len() > 4 {
            return refuse(label, "pools are known over one or two axes of space, without windows that hang over");
        }
        let input = self.materialise(label, x)?;
        let pooled = self.net.average_pool(label, input, patch_of(&pool.kernel, &pool.window), count_padding)?;
        Ok(Random::bare(pooled, x.layout.clone()))
    }

    pub(super) fn reduce(&mut self, label: &str, x: &Random, shape: &[usize], reduce: &Reduce) -> Result<Random> {
        let wide: Vec<usize> = reduce.axes.iter().copied().filter(|&axis| shape[axis] > 1).collect();
        let over_space = !x.layout.flat && wide.iter().all(|axis| x.layout.space.contains(axis));
        if !matches!(reduce.kind, Reduction::Mean | Reduction::Sum) || !over_space {
            return refuse(label, "it reduces over units, or to something other than a mean or a sum");
        }
        let layout = x.layout.reduced(&reduce.axes, reduce.keep);
        let space = x.layout.sizes(shape);
        let mut size = [1, 1];
        for (at, axis) in x.layout.space.iter().rev().enumerate() {
            if reduce.axes.contains(axis) {
                size[1 - at] = shape[*axis];
            }
        }
        if size == [1, 1] {
            return Ok(Random { layout, ..x.clone() });
        }
        let input = self.materialise(label, x)?;
        let pooled = if size == space {
            self.net.global_average_pool(label, input)
        } else {
            self.net.average_pool(label, input, Patch::valid(size).stride(size), true)?
        };
        let mean = Random::bare(pooled, layout);
        if reduce.kind == Reduction::Mean {
            return Ok(mean);
        }
        let scale = (size[0] * size[1]) as f64;
        self.elementwise(
            label,
            &mean,
            Elementwise::Unary(Function::Affine { scale, shift: 0.0 }, Arc::new(Elementwise::Unit)),
        )
    }

    pub(super) fn concat(&mut self, node: &Node, concat: &Concat, operands: &[Known]) -> Result<Random> {
        let label = node.label();
        let (mut parts, mut layout): (Vec<NodeId>, Option<Layout>) = (Vec::new(), None);
        for operand in operands {
            let Known::Random(x) = operand else {
                return refuse(&label, "it joins values of which some do not depend on the layers before");
            };
            if x.layout.flat || x.layout.channel != concat.axis || layout.as_ref().is_some_and(|l| *l != x.layout) {
                return refuse(&label, "it joins other axes than units");
            }
            layout = Some(x.layout.clone());
            parts.push(self.materialise(&label, x)?);
        }
        let Some(layout) = layout else { return refuse(&label, "it joins nothing") };
        let units: Vec<f64> = node.inputs.iter().map(|&id| self.shape(id)[concat.axis] as f64).collect();
        let all: f64 = units.iter().sum();
        let joined = self.net.concat(&label, &parts, units.iter().map(|units| units / all).collect())?;
        Ok(Random::bare(joined, layout))
    }
}

fn patch_of(kernel: &[usize], window: &Window) -> Patch {
    let two = |sizes: &[usize], fill: usize| match *sizes {
        [row, column] => [row, column],
        [column] => [fill, column],
        _ => [fill; 2],
    };
    Patch {
        size: two(kernel, 1),
        stride: two(&window.strides, 1),
        dilation: two(&window.dilations, 1),
        before: two(&window.before, 0),
        after: two(&window.after, 0),
        circular: false,
    }
}
