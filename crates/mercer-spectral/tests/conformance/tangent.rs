//! Eigenpairs of a tangent kernel: the way that takes fewer operations, and the same result by both.

use mercer_data::{Dataset, synthetic};
use mercer_kernel::{Kernel, Ntk, NtkKind, NtkOperator, Selection};
use mercer_net::Network;
use mercer_net::arch::{Activation, Cnn, CnnLayer, Mlp};
use mercer_run::Context;
use mercer_spectral::{Comparison, Solver, TangentChoice, TangentKernel, TangentMethod};
use ndarray::Array2;
use std::cell::Cell;
use std::sync::Arc;

fn choice(network: &Network, data: &[Dataset], kind: NtkKind, k: usize, solver: Solver) -> TangentChoice {
    let shapes = [data[0].sample_shape().to_vec()];
    let kernel = Ntk::<f32>::new(network, &shapes, kind).expect("a kernel");
    let operator =
        NtkOperator::<f32>::new(network, data, kind, &Selection::default(), &Context::new()).expect("an operator");
    TangentChoice::new(&kernel, &operator, k, solver, &Context::new())
}

/// A few images of a network with ten outputs: a product takes ten reverse and ten forward-mode passes over all of them, the matrix
/// ten reverse passes in all. Many points of a small network with one output: the matrix grows with their square.
#[test]
fn the_cheaper_way_is_taken() {
    let layers = [CnnLayer::conv(16, 3), CnnLayer::max_pool(2), CnnLayer::conv(32, 3)];
    let cnn = Cnn::new(&[1, 16, 16], &layers, 10).build(0).expect("builds");
    let images = [Dataset::from_array(
        "images",
        Array2::<f32>::zeros((200, 256)).into_shape_with_order((200, 1, 16, 16)).expect("a shape").into_dyn().view(),
    )
    .expect("data")];
    let few = choice(&cnn, &images, NtkKind::Trace, 10, Solver::Lanczos);
    assert_eq!((few.way, few.fits), (TangentMethod::Matrix, true), "{few:?}");
    assert!(few.products_flops > 10.0 * few.matrix_flops, "{few:?}");
    assert!(few.sentence().contains("the matrix is made"), "{}", few.sentence());
    let mlp = Mlp::new(2, &[8], 1).build(0).expect("builds");
    let points = [Dataset::from_array("points", Array2::<f32>::zeros((20_000, 2)).into_dyn().view()).expect("data")];
    let many = choice(&mlp, &points, NtkKind::Trace, 5, Solver::Randomised { seed: 0 });
    assert_eq!((many.way, many.products), (TangentMethod::Products, 5 * 15), "{many:?}");
    assert!(many.sentence().contains("not made"), "{}", many.sentence());
    // A matrix of 400 TB fits nowhere, whatever it costs.
    let endless =
        [Dataset::from_array("points", Array2::<f32>::zeros((10_000_000, 1)).into_dyn().view()).expect("data")];
    let mlp = Mlp::new(1, &[2], 1).build(0).expect("builds");
    let endless = choice(&mlp, &endless, NtkKind::Trace, 5, Solver::Lanczos);
    assert_eq!((endless.way, endless.fits), (TangentMethod::Products, false), "{endless:?}");
}

#[test]
fn both_ways_give_the_same() {
    let points = synthetic::uniform(60, 3, -1.0, 1.0, 1).expect("points");
    let data = [Dataset::from_array("points", points.view().into_dyn()).expect("data")];
    let network = Mlp::new(3, &[16], 2).activation(Activation::Tanh).build(2).expect("builds");
    for kind in [NtkKind::Trace, NtkKind::Full] {
        let kernel: Arc<dyn Kernel<f64>> = Arc::new(Ntk::<f64>::new(&network, &[vec![3]], kind).expect("a kernel"));
        let tangent = TangentKernel { network: &network, kind, selection: &Selection::default() };
        let solve = |way: Option<TangentMethod>| {
            let taken = Cell::new(None);
            let told = |choice: &TangentChoice| taken.set(Some(choice.way));
            let found = tangent
                .eigenfunctions(Arc::clone(&kernel), &data, (4, Solver::Lanczos), way, &told, &Context::new())
                .expect("solves");
            (found, taken.get().expect("told"))
        };
        let ((with, spectrum), one) = solve(Some(TangentMethod::Matrix));
        let ((without, other), two) = solve(Some(TangentMethod::Products));
        assert_eq!((one, two), (TangentMethod::Matrix, TangentMethod::Products));
        let compared = Comparison::new(other.values.view(), other.functions.view(), &spectrum).expect("same rows");
        assert!(compared.value_errors.iter().all(|e| e.abs() < 1e-9), "{compared:?}");
        assert!(compared.cosines.iter().all(|c| 1.0 - c < 1e-9), "{compared:?}");
        // What they are elsewhere follows.
        let new = synthetic::uniform(5, 3, -1.0, 1.0, 2).expect("points");
        let eval = |functions: &mercer_spectral::Eigenfunctions<f64>| {
            functions.eval(&[new.as_slice().expect("rows")], 5).expect("evaluates")
        };
        assert!((eval(&with) - eval(&without)).iter().all(|e| e.abs() < 1e-6));
        assert!([TangentMethod::Matrix, TangentMethod::Products].contains(&solve(None).1));
    }
}
