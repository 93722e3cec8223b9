//! Kernels of networks of infinite width. The operations counted are those of the product of the inputs, for dense networks,
//! and one per pair of positions and layer for the others: what is interesting is the time.

use super::cases::{Case, numbers};
use mercer_kernel::infinite::{Limit, LimitActivation, LimitKind, LimitNet, NodeId, Patch, Scales};
use mercer_kernel::{Kernel, Real};
use mercer_net::op::Function;

/// Constructors of all cases.
pub(super) fn all() -> Vec<fn() -> Case> {
    vec![
        || dense::<f32>("limit_both_relu_3h_784_n2000_f32", &LimitActivation::relu()),
        || dense::<f64>("limit_both_relu_3h_784_n2000_f64", &LimitActivation::relu()),
        || dense::<f32>("limit_both_erf_3h_784_n2000_f32", &LimitActivation::from_function(Function::Erf)),
        || dense::<f64>("limit_both_erf_3h_784_n2000_f64", &LimitActivation::from_function(Function::Erf)),
        || dense::<f32>("limit_both_tanh_3h_784_n2000_f32", &LimitActivation::from_function(Function::Tanh)),
        || image::<f32>("limit_both_conv3-relu_x3_flatten_16x16x3_n50_f32", 3, 16, 50, LimitNet::flatten),
        || image::<f64>("limit_both_conv3-relu_x3_flatten_16x16x3_n50_f64", 3, 16, 50, LimitNet::flatten),
        || image::<f32>("limit_both_conv3-relu_x3_pool_16x16x3_n20_f32", 3, 16, 20, LimitNet::global_average_pool),
        || image::<f64>("limit_both_conv3-relu_x3_pool_16x16x3_n20_f64", 3, 16, 20, LimitNet::global_average_pool),
        || image::<f32>("limit_both_conv3-relu_x20_pool_32x32x3_n4_f32", 20, 32, 4, LimitNet::global_average_pool),
    ]
}

fn samples<T: Real>(count: usize) -> Vec<T> {
    numbers(count, 1.7).into_iter().map(|x| T::narrow(f64::from(x))).collect()
}

/// Both kernels of all pairs of two sets, so that nothing is mirrored.
fn case<T: Real>(name: &'static str, net: LimitNet, n: usize, size: usize, flops: f64) -> Case {
    let kernel = Limit::<T>::new(net, LimitKind::Ntk).expect("a kernel");
    let x = samples::<T>(n * size);
    let y: Vec<T> = x.iter().rev().copied().collect();
    let run = move || {
        let (a, b) = (kernel.prepare(&[&x], n).expect("prepares"), kernel.prepare(&[&y], n).expect("prepares"));
        let (mut nngp, mut ntk) = (vec![T::zero(); n * n], vec![T::zero(); n * n]);
        kernel.both(&a, &b, &mut nngp, &mut ntk);
        std::hint::black_box((nngp, ntk));
    };
    Case { name, flops, run: Box::new(run) }
}

fn dense<T: Real>(name: &'static str, activation: &LimitActivation) -> Case {
    const INPUTS: usize = 784;
    const SAMPLES: usize = 2000;
    let mut net = LimitNet::new();
    let mut x = net.input(INPUTS);
    for _ in 0..3 {
        x = net.dense("layer", x, Scales::ntk(1.5, 0.1)).expect("a layer");
        x = net.activation("layer", x, activation.clone()).expect("an activation");
    }
    net.dense("output", x, Scales::ntk(1.5, 0.1)).expect("a layer");
    case::<T>(name, net, SAMPLES, INPUTS, (2 * SAMPLES * SAMPLES * INPUTS) as f64)
}

type Head = fn(&mut LimitNet, &str, NodeId) -> NodeId;

fn image<T: Real>(name: &'static str, layers: usize, side: usize, n: usize, head: Head) -> Case {
    let mut net = LimitNet::new();
    let mut x = net.image([side, side], 3);
    for _ in 0..layers {
        x = net.conv("conv", x, Scales::ntk(1.4, 0.1), Patch::same([3, 3])).expect("a layer");
        x = net.activation("conv", x, LimitActivation::relu()).expect("an activation");
    }
    let x = head(&mut net, "head", x);
    net.dense("output", x, Scales::ntk(1.0, 0.0)).expect("a layer");
    case::<T>(name, net, n, 3 * side * side, (n * n * layers * side * side) as f64)
}
