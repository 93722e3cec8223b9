//! The conformance suite on random shapes and settings, for every primitive.

use super::conformance::{Operand, batched, check, shared};
use super::{
    ArgExtreme, Binary, Combine, Concat, Conv, CumSum, Expand, Function, Gather, GatherElements, Margin, MatMul,
    Normalise, Pad, Pool, Pooling, Reduce, Reduction, Reshape, Slice, Softmax, Transpose, Unary, Where, Window,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Cases per primitive: all of them together take a few seconds.
fn few() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() }
}

fn shapes(rank: std::ops::RangeInclusive<usize>, size: usize) -> impl Strategy<Value = Vec<usize>> {
    vec(1..=size, rank)
}

/// A shape of at least one axis, and one of its axes.
fn shape_and_axis() -> impl Strategy<Value = (Vec<usize>, usize)> {
    shapes(1..=4, 5).prop_flat_map(|shape| {
        let rank = shape.len();
        (Just(shape), 0..rank)
    })
}

/// A shape and any of its axes.
fn shape_and_axes() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    shapes(0..=4, 5).prop_flat_map(|shape| {
        let chosen = vec(any::<bool>(), shape.len());
        (Just(shape), chosen.prop_map(|chosen| (0..chosen.len()).filter(|&axis| chosen[axis]).collect()))
    })
}

/// A shape with a number below `limit` for each of its axes.
fn with_numbers(limit: usize) -> impl Strategy<Value = (Vec<usize>, Vec<usize>, Vec<usize>)> {
    shapes(0..=4, 4).prop_flat_map(move |shape| {
        let rank = shape.len();
        (Just(shape), vec(0..limit, rank), vec(0..limit, rank))
    })
}

/// A shape, and one that broadcasts with it: axes dropped in front, others of size one.
fn thinned(shape: &[usize], dropped: usize, ones: &[bool]) -> Vec<usize> {
    let kept = &shape[dropped.min(shape.len())..];
    kept.iter().zip(ones).map(|(&size, &one)| if one { 1 } else { size }).collect()
}

fn operand(shape: &[usize], own: bool) -> Operand {
    if own { batched(shape) } else { shared(shape) }
}

fn indices(shape: &[usize], own: bool) -> Operand {
    operand(shape, own).within(|x| (6.0 * x).floor())
}

fn window(axes: usize) -> impl Strategy<Value = (Vec<usize>, Window, Vec<usize>)> {
    // Kernel, stride, dilation and padding per axis, and how much larger than the window the image is.
    vec((1..=3usize, 1..=3usize, 1..=2usize, 0..=2usize, 0..=2usize, 0..=5usize), axes).prop_map(|axes| {
        let extent = |&(kernel, _, dilation, ..): &(usize, usize, usize, usize, usize, usize)| (kernel - 1) * dilation;
        let window = Window {
            strides: axes.iter().map(|a| a.1).collect(),
            dilations: axes.iter().map(|a| a.2).collect(),
            before: axes.iter().map(|a| a.3.min(extent(a))).collect(),
            after: axes.iter().map(|a| a.4.min(extent(a))).collect(),
        };
        let image = axes.iter().map(|a| extent(a) + 1 + a.5).collect();
        (axes.iter().map(|a| a.0).collect(), window, image)
    })
}

proptest! {
    #![proptest_config(few())]

    #[test]
    fn unary(shape in shapes(0..=4, 4), own: bool, function in select(vec![
        Function::Relu, Function::Tanh, Function::Gelu, Function::Swish(0.7), Function::Softplus, Function::Exp,
        Function::Sigmoid, Function::Erf, Function::Mish, Function::Elu(1.3), Function::Clip { low: -0.4, high: 0.9 },
    ])) {
        check(Unary(function), &[operand(&shape, own)]);
    }

    #[test]
    fn binary(
        shape in shapes(0..=4, 4),
        a in (0..=4usize, vec(any::<bool>(), 4), any::<bool>()),
        b in (0..=4usize, vec(any::<bool>(), 4), any::<bool>()),
        combine in select(vec![
            Combine::Add, Combine::Sub, Combine::Mul, Combine::Div, Combine::Pow, Combine::Min, Combine::Max,
            Combine::PRelu, Combine::Less, Combine::Mod,
        ]),
    ) {
        let positive = matches!(combine, Combine::Div | Combine::Pow | Combine::Mod);
        let [a, b] = [a, b].map(|(dropped, ones, own)| {
            let operand = operand(&thinned(&shape, dropped, &ones), own);
            if positive { operand.within(|x| 1.5 + x) } else { operand }
        });
        check(Binary(combine), &[a, b]);
    }

    #[test]
    fn matmul(
        lead in shapes(0..=2, 3), [m, n, k] in [1..=4usize, 1..=4, 1..=4], transposed: bool,
        a in (0..=2usize, vec(any::<bool>(), 2), any::<bool>()),
        b in (0..=2usize, vec(any::<bool>(), 2), any::<bool>()),
    ) {
        let shape = |dropped, ones: &[bool], matrix: [usize; 2]| {
            let mut shape = thinned(&lead, dropped, ones);
            shape.extend(matrix);
            shape
        };
        let a = operand(&shape(a.0, &a.1, [m, k]), a.2);
        let b = operand(&shape(b.0, &b.1, if transposed { [n, k] } else { [k, n] }), b.2);
        check(MatMul { transposed }, &[a, b]);
    }

    #[test]
    fn conv(
        (kernel, window, image) in (1..=3usize).prop_flat_map(window),
        [images, groups, inner, outer] in [1..=2usize, 1..=3, 1..=2, 1..=2], bias: bool, own: bool,
    ) {
        let mut x = vec![images, groups * inner];
        x.extend(image);
        let mut w = vec![groups * outer, inner];
        w.extend(kernel);
        let mut operands = vec![operand(&x, own), shared(&w)];
        if bias {
            operands.push(shared(&[groups * outer]));
        }
        check(Conv { window, groups }, &operands);
    }

    #[test]
    fn pool(
        (kernel, window, image) in (1..=3usize).prop_flat_map(window),
        [images, channels] in [1..=2usize, 1..=2], round_up: bool, own: bool,
        kind in select(vec![
            Pooling::Max, Pooling::Average { count_padding: true }, Pooling::Average { count_padding: false },
        ]),
    ) {
        // A dilated window can miss a small image entirely, which leaves −∞.
        let sees = |axis: usize| image[axis] >= window.dilations[axis];
        prop_assume!((0..image.len()).all(sees));
        let mut x = vec![images, channels];
        x.extend(image);
        check(Pool { kind, kernel, window, round_up }, &[operand(&x, own)]);
    }

    #[test]
    fn halving_pool([height, width] in [2..=9usize, 2..=9], own: bool, round_up: bool) {
        let window = Window { strides: vec![2, 2], ..Window::plain(2) };
        check(Pool { kind: Pooling::Max, kernel: vec![2, 2], window, round_up }, &[operand(&[1, 2, height, width], own)]);
    }

    #[test]
    fn transpose(perm in (0..=5usize).prop_flat_map(|rank| Just((0..rank).collect::<Vec<_>>()).prop_shuffle()),
        sizes in vec(select(vec![1usize, 2, 3, 9]), 5), own: bool) {
        let shape = &sizes[..perm.len()];
        prop_assume!(shape.iter().product::<usize>() < 2000);
        check(Transpose { perm }, &[operand(shape, own)]);
    }

    #[test]
    fn slice(axes in vec((1..=5usize, 0..5usize, 0..5usize, 1..=3usize), 0..=4), own: bool) {
        // Two points of each axis and a distance: forwards or backwards between them.
        let shape: Vec<usize> = axes.iter().map(|a| a.0).collect();
        let slice = Slice {
            starts: axes.iter().map(|a| a.1 % a.0).collect(),
            steps: axes.iter().map(|a| if a.2 % a.0 < a.1 % a.0 { -(a.3 as isize) } else { a.3 as isize }).collect(),
            sizes: axes.iter().map(|a| (a.2 % a.0).abs_diff(a.1 % a.0) / a.3 + 1).collect(),
        };
        check(slice, &[operand(&shape, own)]);
    }

    #[test]
    fn concat((shape, axis) in shape_and_axis(), parts in vec((1..=3usize, any::<bool>()), 1..=4)) {
        let operands: Vec<Operand> = parts
            .into_iter()
            .map(|(size, own)| {
                let mut shape = shape.clone();
                shape[axis] = size;
                operand(&shape, own)
            })
            .collect();
        check(Concat { axis }, &operands);
    }

    #[test]
    fn pad(
        (shape, before, after) in with_numbers(4), own: bool,
        mode in select(vec![Margin::Constant(0.5), Margin::Reflect, Margin::Edge, Margin::Wrap]),
    ) {
        check(Pad { before, after, mode }, &[operand(&shape, own)]);
    }

    #[test]
    fn expand(shape in shapes(0..=4, 4), dropped in 0..=4usize, ones in vec(any::<bool>(), 4), own: bool) {
        check(Expand { shape: shape.clone() }, &[operand(&thinned(&shape, dropped, &ones), own)]);
    }

    #[test]
    fn reduce(
        (shape, axes) in shape_and_axes(), keep: bool, own: bool,
        kind in select(vec![Reduction::Sum, Reduction::Mean, Reduction::Max, Reduction::Min, Reduction::Prod]),
    ) {
        // Products of hundreds of numbers are too large or too small for finite differences.
        let members: usize = axes.iter().map(|&axis| shape[axis]).product();
        prop_assume!(kind != Reduction::Prod || members <= 30);
        check(Reduce { kind, axes, keep }, &[operand(&shape, own)]);
    }

    #[test]
    fn softmax((shape, axis) in shape_and_axis(), long in select(vec![1usize, 8, 37]), log: bool, own: bool) {
        let mut shape = shape;
        shape[axis] *= long;
        check(Softmax { axis, log }, &[operand(&shape, own)]);
    }

    #[test]
    fn normalise((shape, axes) in shape_and_axes(), centred: bool, own: bool) {
        check(Normalise { axes, epsilon: 0.1, centred }, &[operand(&shape, own)]);
    }

    #[test]
    fn gather((shape, axis) in shape_and_axis(), index in shapes(0..=2, 3), data: bool, own: bool) {
        check(Gather { axis }, &[operand(&shape, data), indices(&index, own)]);
    }

    #[test]
    fn gather_elements((shape, axis) in shape_and_axis(), length in 1..=5usize, less: bool, data: bool, own: bool) {
        let mut index: Vec<usize> = shape.iter().map(|&size| if less { size.div_ceil(2) } else { size }).collect();
        index[axis] = length;
        check(GatherElements { axis }, &[operand(&shape, data), indices(&index, own)]);
    }

    #[test]
    fn choice(
        shape in shapes(0..=3, 4),
        ways in vec((0..=3usize, vec(any::<bool>(), 3), any::<bool>()), 3),
    ) {
        let mut operands: Vec<Operand> =
            ways.iter().map(|(dropped, ones, own)| operand(&thinned(&shape, *dropped, ones), *own)).collect();
        operands[0] = operands[0].clone().within(|x| if x > 0.0 { 1.0 } else { 0.0 });
        check(Where, &operands);
    }

    #[test]
    fn cumsum((shape, axis) in shape_and_axis(), exclusive: bool, reverse: bool, own: bool) {
        check(CumSum { axis, exclusive, reverse }, &[operand(&shape, own)]);
    }

    #[test]
    fn arg_extreme((shape, axis) in shape_and_axis(), keep: bool, max: bool, last: bool, own: bool) {
        check(ArgExtreme { axis, keep, max, last }, &[operand(&shape, own)]);
    }

    #[test]
    fn reshape(shape in shapes(0..=4, 4), own: bool) {
        let flat = vec![1, shape.iter().product()];
        check(Reshape { shape: flat }, &[operand(&shape, own)]);
    }
}
