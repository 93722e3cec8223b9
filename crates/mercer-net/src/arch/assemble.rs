//! The building blocks of architectures.

use super::ScaledActivation;
use super::initialise::{Draw, Scheme};
use crate::budget::Budget;
use crate::error::{NetError, Result};
use crate::graph::{Batch, GraphBuilder, ValueId, count};
use crate::network::{Network, Values};
use crate::op::{BatchNorm, Binary, Combine, Conv, Function, MatMul, Reshape, Unary, Window};
use crate::shape::numel;

/// The largest number of elements of a parameter.
const MOST_ELEMENTS: usize = 1 << 30;

/// The largest size of a layer along one axis. A product of three such sizes does not overflow.
const LARGEST: usize = 1 << 20;

/// What batch normalisation adds to a variance, as PyTorch does.
const EPSILON: f64 = 1e-5;

/// A network under construction. Samples have a leading axis of size one, as in files.
pub(super) struct Assembly {
    pub(super) builder: GraphBuilder,
    pub(super) scheme: Scheme,
    pub(super) bias: bool,
    seed: u64,
    values: Vec<Values>,
}

/// The sizes of a convolution: square kernel, stride and padding in both directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) channels: usize,
    pub(super) kernel: usize,
    pub(super) stride: usize,
    pub(super) padding: usize,
}

impl Assembly {
    pub(super) fn new(scheme: Scheme, bias: bool, seed: u64, budget: Budget) -> Self {
        Self { builder: GraphBuilder::within(budget), scheme, bias, seed, values: Vec::new() }
    }

    /// The input, for samples of this shape.
    pub(super) fn input(&mut self, sample: &[usize]) -> Result<ValueId> {
        if sample.is_empty() || sample.contains(&0) {
            let text = format!("inputs = {sample:?}; accepted: the shape of a sample, every size at least 1");
            return Err(NetError::Setting(text));
        }
        let shape: Vec<usize> = std::iter::once(1).chain(sample.iter().copied()).collect();
        if count(&shape).is_none() {
            return Err(NetError::Setting(format!("inputs = {sample:?}; samples of this shape are too large")));
        }
        Ok(self.builder.input("input", shape, Batch::axis(0)))
    }

    pub(super) fn parameter(&mut self, name: &str, shape: &[usize], draw: Draw) -> Result<ValueId> {
        if numel(shape) > MOST_ELEMENTS {
            return Err(NetError::Setting(format!("{name} of shape {shape:?} is too large")));
        }
        let bytes = numel(shape).saturating_mul(size_of::<f32>());
        self.builder.budget().spend(|| format!("{name} of shape {shape:?}"), bytes)?;
        self.values.push(draw.values(self.seed, name, numel(shape)));
        Ok(self.builder.parameter(name, shape))
    }

    pub(super) fn scaled(&mut self, name: &str, x: ValueId, scale: f64) -> Result<ValueId> {
        if scale == 1.0 {
            return Ok(x);
        }
        self.builder.node(name, Unary(Function::Affine { scale, shift: 0.0 }), &[x])
    }

    /// Flattens everything but the batch into one axis.
    pub(super) fn flatten(&mut self, x: ValueId) -> Result<ValueId> {
        let shape = self.builder.shape(x);
        if shape.len() == 2 {
            return Ok(x);
        }
        let flat = vec![1, numel(shape)];
        self.builder.node("flatten", Reshape { shape: flat }, &[x])
    }

    /// `scale · Wx (+ scale · b)`.
    pub(super) fn dense(&mut self, name: &str, x: ValueId, width: usize) -> Result<ValueId> {
        positive(name, "width", width)?;
        let fan_in = self.builder.shape(x)[1];
        let scheme = self.scheme;
        let weight = self.parameter(&format!("{name}.weight"), &[width, fan_in], scheme.weight(fan_in))?;
        let y = self.builder.node(&format!("{name}/product"), MatMul { transposed: true }, &[x, weight])?;
        let y = self.scaled(&format!("{name}/scale"), y, scheme.weight_scale(fan_in))?;
        if !self.bias {
            return Ok(y);
        }
        let bias = self.parameter(&format!("{name}.bias"), &[width], scheme.kind.bias(fan_in))?;
        let bias = self.scaled(&format!("{name}/bias-scale"), bias, scheme.bias_scale())?;
        self.builder.node(&format!("{name}/bias"), Binary(Combine::Add), &[y, bias])
    }

    /// `scale · W∗x (+ scale · b)`; the scales are one unless the scheme is `ntk`.
    pub(super) fn conv(&mut self, name: &str, x: ValueId, sizes: Sizes) -> Result<ValueId> {
        positive(name, "kernel", sizes.kernel)?;
        let fan_in = self.builder.shape(x)[1].saturating_mul(sizes.kernel * sizes.kernel);
        self.conv_drawn(name, x, sizes, self.scheme.weight(fan_in))
    }

    /// A convolution with weights from another distribution.
    pub(super) fn conv_drawn(&mut self, name: &str, x: ValueId, sizes: Sizes, draw: Draw) -> Result<ValueId> {
        let Sizes { channels, kernel, stride, padding } = sizes;
        [("channels", channels), ("kernel", kernel), ("stride", stride)]
            .iter()
            .try_for_each(|&(key, value)| positive(name, key, value))?;
        let shape = self.builder.shape(x);
        if shape.len() != 4 {
            let text = format!("{name}: a convolution needs images of shape [channels, height, width]");
            return Err(NetError::Setting(text));
        }
        let (in_channels, scheme) = (shape[1], self.scheme);
        let fan_in = in_channels.saturating_mul(kernel * kernel);
        if padding > LARGEST {
            return Err(NetError::Setting(format!("{name}: padding = {padding}; accepted: up to {LARGEST}")));
        }
        let weight = self.parameter(&format!("{name}.weight"), &[channels, in_channels, kernel, kernel], draw)?;
        let window = Window {
            strides: vec![stride; 2],
            dilations: vec![1; 2],
            before: vec![padding; 2],
            after: vec![padding; 2],
        };
        let conv = Conv { window, groups: 1 };
        let (scale, bias_scale) = (scheme.weight_scale(fan_in), scheme.bias_scale());
        let draw_bias = scheme.kind.bias(fan_in);
        let node = format!("{name}/product");
        if self.bias && scale == 1.0 && bias_scale == 1.0 {
            let bias = self.parameter(&format!("{name}.bias"), &[channels], draw_bias)?;
            return self.builder.node(&node, conv, &[x, weight, bias]);
        }
        let y = self.builder.node(&node, conv, &[x, weight])?;
        let y = self.scaled(&format!("{name}/scale"), y, scale)?;
        if !self.bias {
            return Ok(y);
        }
        let bias = self.parameter(&format!("{name}.bias"), &[channels, 1, 1], draw_bias)?;
        let bias = self.scaled(&format!("{name}/bias-scale"), bias, bias_scale)?;
        self.builder.node(&format!("{name}/bias"), Binary(Combine::Add), &[y, bias])
    }

    /// Batch normalisation of the channels along axis 1.
    pub(super) fn batch_norm(&mut self, name: &str, x: ValueId) -> Result<ValueId> {
        let channels = self.builder.shape(x)[1];
        let scale = self.parameter(&format!("{name}.scale"), &[channels], Draw::Constant(1.0))?;
        let shift = self.parameter(&format!("{name}.shift"), &[channels], Draw::Constant(0.0))?;
        let bytes = 2 * channels * size_of::<f64>();
        self.builder.budget().spend(|| format!("the statistics of {name}"), bytes)?;
        let mean = self.builder.statistic(format!("{name}.mean"), [channels], vec![0.0; channels]);
        let variance = self.builder.statistic(format!("{name}.variance"), [channels], vec![1.0; channels]);
        self.builder.node(name, BatchNorm { epsilon: EPSILON }, &[x, scale, shift, mean, variance])
    }

    pub(super) fn activate(&mut self, name: &str, x: ValueId, activation: ScaledActivation) -> Result<ValueId> {
        activation.check()?;
        let y = activation.activation.append(&mut self.builder, name, x)?;
        self.scaled(&format!("{name}/{activation}"), y, activation.factor())
    }

    /// The network whose output is `y`.
    pub(super) fn finish(mut self, y: ValueId) -> Result<Network> {
        self.builder.output("output", y);
        Network::from_graph(self.builder.finish(), self.values)
    }
}

/// Refuses a size that is zero or too large. The error names its key.
pub(super) fn positive(place: &str, key: &str, value: usize) -> Result<()> {
    if !(1..=LARGEST).contains(&value) {
        return Err(NetError::Setting(format!(
            "{place}: {key} = {value}; accepted: whole numbers from 1 to {LARGEST}"
        )));
    }
    Ok(())
}
