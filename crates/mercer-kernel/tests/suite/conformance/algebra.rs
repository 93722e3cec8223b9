//! Kernels made of kernels, where the suite does not look.

use super::networks::{built, golden};
use mercer_kernel::{Cost, Kernel, KernelError, Normalised, Ntk, NtkKind, Product, Scaled, Sum};
use mercer_net::arch::Mlp;
use std::sync::Arc;

fn ntk(case: &super::networks::Case, kind: NtkKind) -> Ntk<f64> {
    Ntk::new(&case.network, &case.shapes(), kind).expect("a kernel")
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let case = built("mlp");
    let trace = || Arc::new(ntk(&case, NtkKind::Trace)) as Arc<dyn Kernel<f64>>;
    let full = Arc::new(ntk(&case, NtkKind::Full));
    let layers = Arc::new(ntk(&case, NtkKind::Trace).by_layer());
    let text = |error: KernelError| error.to_string();
    assert!(text(Sum::<f64>::new(vec![]).unwrap_err()).contains("no kernels"));
    assert!(text(Sum::new(vec![trace(), full]).unwrap_err()).contains("kernel 1 of a sum has 3 rows per sample"));
    assert!(text(Product::new(vec![layers, trace()]).unwrap_err()).contains("kernel 0 of a product has 3 parts"));
    for factor in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(Scaled::new(trace(), factor).is_err());
    }
}

#[test]
fn a_sample_without_direction_is_zero() {
    // Without biases, a network's gradient at zero is zero in every layer but none: all activations are zero.
    let network = Mlp::new(3, &[4], 2).bias(false).build(1).unwrap();
    let ntk = Ntk::<f64>::new(&network, &[vec![3]], NtkKind::Trace).unwrap();
    let kernel = Normalised::new(Arc::new(ntk));
    let data = [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, -1.0, 0.5, 2.0];
    let block = kernel.prepare(&[&data], 3).unwrap();
    let mut gram = [f64::NAN; 9];
    kernel.contract(&block, &block, &mut gram);
    assert_eq!(kernel.diagonal(&block), [1.0, 0.0, 1.0]);
    assert_eq!([gram[0], gram[4], gram[8]], [1.0, 0.0, 1.0]);
    assert_eq!([gram[1], gram[3], gram[5], gram[7]], [0.0; 4]);
    assert!(gram[2].abs() < 1.0);
}

#[test]
fn normalised_diagonals_are_one_and_layers_sum_to_them() {
    let case = golden("conv_zoo_legacy");
    for kind in [NtkKind::Trace, NtkKind::Full] {
        let kernel = Normalised::new(Arc::new(ntk(&case, kind)));
        let block = kernel.prepare(&[&case.data], case.samples).unwrap();
        let n = case.samples * kernel.per_sample();
        let mut gram = vec![0.0; n * n];
        kernel.contract(&block, &block, &mut gram);
        assert!((0..n).all(|at| gram[at * n + at] == 1.0));
        let layers = Normalised::new(Arc::new(ntk(&case, kind).by_layer()));
        let block = layers.prepare(&[&case.data], case.samples).unwrap();
        let mut parts = vec![0.0; layers.parts().len() * n * n];
        layers.contract(&block, &block, &mut parts);
        for (at, &expected) in gram.iter().enumerate() {
            let sum: f64 = parts.iter().skip(at).step_by(n * n).sum();
            assert!((sum - expected).abs() < 1e-12, "{kind:?} {at}: {sum} {expected}");
        }
    }
}

#[test]
fn costs_add_up() {
    let case = built("mlp");
    let trace = || Arc::new(ntk(&case, NtkKind::Trace)) as Arc<dyn Kernel<f64>>;
    let one = trace().cost();
    let sum = Sum::new(vec![trace(), trace()]).unwrap();
    let nested = Sum::new(vec![Arc::new(sum.clone()), Arc::new(sum.clone())]).unwrap();
    let Cost { sample_bytes, contract_tiles, prepare_flops, .. } = sum.cost();
    assert_eq!((sample_bytes, contract_tiles, prepare_flops), (2 * one.sample_bytes, 1, 2.0 * one.prepare_flops));
    // While the second sum contracts, its own second tile is there beside that of the outer one.
    assert_eq!((nested.cost().sample_bytes, nested.cost().contract_tiles), (4 * one.sample_bytes, 2));
    assert_eq!(Normalised::new(trace()).cost().sample_bytes, one.sample_bytes + size_of::<f64>());
}
