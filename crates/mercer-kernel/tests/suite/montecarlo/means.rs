//! Means are what they say: sums over networks, in any number of calls, kept or made again.

use super::{mean, normal, shapes};
use mercer_data::Dataset;
use mercer_kernel::gram::Gram;
use mercer_kernel::infinite::{LimitKind, Rule};
use mercer_kernel::montecarlo::Ensemble;
use mercer_kernel::{Features, Kernel, MonteCarlo, Ntk, NtkKind, RandomNetworks, Scaled, Selection, Sum};
use mercer_net::Network;
use mercer_net::arch::{Cnn, CnnLayer, Initialisation, Mlp};
use mercer_net::graph::{Batch, GraphBuilder};
use mercer_net::op::{Function, Unary};
use mercer_run::Context;
use std::sync::Arc;

fn relu(x: f64) -> f64 {
    x.max(0.0)
}

/// Outputs by hand: `W₂ relu(W₁ x + b₁) + b₂`.
#[test]
fn the_mean_over_networks_one_by_one() {
    let network = Mlp::new(3, &[5], 2).build(0).unwrap();
    let (x, rule) = (normal::<f64>("x", 4 * 3), Rule::initialisation(Initialisation::Standard));
    let ensemble = Ensemble::new(&network, &[vec![3]], &rule, 3).unwrap();
    let (mut nngp, mut ntk) = (vec![0.0; 16], vec![0.0; 16]);
    for index in 0..7 {
        let weights = ensemble.weights::<f64>(index);
        let [w1, b1, w2, b2] = &weights.parameters[..] else { panic!("four parameters") };
        let outputs: Vec<Vec<f64>> = (x.chunks_exact(3))
            .map(|x| {
                let dot = |row: &[f64], x: &[f64]| row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
                let hidden: Vec<f64> = (0..5).map(|at| relu(dot(&w1[at * 3..at * 3 + 3], x) + b1[at])).collect();
                (0..2).map(|at| dot(&w2[at * 5..at * 5 + 5], &hidden) + b2[at]).collect()
            })
            .collect();
        let tangent = Ntk::at(Arc::clone(ensemble.graph()), weights, NtkKind::Trace, &Selection::default()).unwrap();
        let tangent = tangent.gram(&[&x], 4).unwrap();
        for at in 0..16 {
            let (a, b) = (&outputs[at / 4], &outputs[at % 4]);
            nngp[at] += (a[0] * b[0] + a[1] * b[1]) / 14.0;
            ntk[at] += tangent[at] / 14.0;
        }
    }
    // Rounding of a few dozen terms.
    let close = |found: &[f64], expected: &[f64]| found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-13);
    assert!(close(mean(&network, &rule, LimitKind::Nngp, 7, (&x, 4)).mean(), &nngp));
    assert!(close(mean(&network, &rule, LimitKind::Ntk, 7, (&x, 4)).mean(), &ntk));
}

#[test]
fn any_number_of_calls_and_both_ways_of_keeping_give_the_same_bits() {
    let layers = [CnnLayer::conv(4, 3), CnnLayer::max_pool(2), CnnLayer::dense(6)];
    let network = Cnn::new(&[1, 6, 6], &layers, 3).build(0).unwrap();
    let x = normal::<f32>("x", 5 * 36);
    for of in [LimitKind::Nngp, LimitKind::Ntk] {
        let kernel = || MonteCarlo::new(&network, &shapes(&network), &Rule::ntk(1.3, 0.2), of, 40, 1).unwrap();
        let (mut once, mut twice) = (kernel().start(5), kernel().start(5));
        kernel().extend(&mut once, 0..40, &[&x], 5).unwrap();
        kernel().extend(&mut twice, 0..23, &[&x], 5).unwrap();
        kernel().extend(&mut twice, 23..40, &[&x], 5).unwrap();
        assert_eq!((once.count(), &once), (40, &twice));
        let tile = |kernel: MonteCarlo<f32>| {
            let kernel = kernel.with_errors().unwrap();
            let block = kernel.prepare(&[&x], 5).unwrap();
            let mut tile = vec![0.0; 50];
            kernel.contract(&block, &block, &mut tile);
            (tile, kernel.diagonal(&block), kernel.cost())
        };
        let (kept, streamed) = (tile(kernel()), tile(kernel().streaming()));
        assert_eq!((&kept.0, &kept.1), (&streamed.0, &streamed.1));
        assert_eq!(kept.0, [once.mean(), &once.standard_errors()].concat());
        assert!(kept.2.sample_bytes > streamed.2.sample_bytes && streamed.2.contract_alone);
        assert_eq!(kernel().identity(), kernel().streaming().identity(), "the same numbers");
    }
}

#[test]
fn memory_does_not_grow_with_the_number_of_networks() {
    let network = Mlp::new(8, &[64], 2).build(0).unwrap();
    for of in [LimitKind::Nngp, LimitKind::Ntk] {
        let cost = |networks| {
            MonteCarlo::<f32>::new(&network, &[vec![8]], &Rule::ntk(1.0, 0.1), of, networks, 0).unwrap().cost()
        };
        let bytes = |networks| {
            let cost = cost(networks);
            (cost.sample_bytes, cost.prepare_bytes, cost.contract_bytes, cost.contract_tiles)
        };
        assert_eq!(bytes(1_000_000), bytes(100_000_000));
        assert!(cost(1_000_000).pair_flops > 1e6);
    }
}

#[test]
fn features_have_the_same_kernel() {
    let network = Mlp::new(3, &[9], 4).build(0).unwrap();
    let x = normal::<f64>("x", 6 * 3);
    let rule = Rule::standard(1.1, 0.3);
    let ensemble = Arc::new(Ensemble::new(&network, &[vec![3]], &rule, 3).unwrap());
    let kernel = Features(RandomNetworks::new(ensemble, 20).unwrap());
    let block = kernel.prepare(&[&x], 6).unwrap();
    let mut gram = vec![0.0; 36];
    kernel.contract(&block, &block, &mut gram);
    let expected = mean(&network, &rule, LimitKind::Nngp, 20, (&x, 6));
    assert!(gram.iter().zip(expected.mean()).all(|(a, b)| (a - b).abs() < 1e-13));
}

/// Networks of a range are the same whatever else is drawn.
#[test]
fn networks_have_numbers() {
    let network = Mlp::new(3, &[9], 1).build(0).unwrap();
    let x = normal::<f64>("x", 6);
    let ensemble = Arc::new(Ensemble::new(&network, &[vec![3]], &Rule::ntk(1.0, 0.5), 9).unwrap());
    let of = |networks: RandomNetworks<f64>| {
        let kernel = MonteCarlo::over(networks, LimitKind::Nngp).unwrap();
        let block = kernel.prepare(&[&x], 2).unwrap();
        kernel.diagonal(&block)
    };
    let networks = |count| RandomNetworks::new(Arc::clone(&ensemble), count).unwrap();
    let (all, last) = (of(networks(3)), of(networks(1).starting_at(2)));
    let first = of(networks(2));
    assert!((all[1] - (2.0 * first[1] + last[1]) / 3.0).abs() < 1e-14);
    assert_ne!(first, last);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let network = Mlp::new(3, &[9], 1).build(0).unwrap();
    let new = |network: &Network, rule: &Rule, count| {
        let kernel = MonteCarlo::<f64>::new(network, &shapes(network), rule, LimitKind::Ntk, count, 0);
        kernel.map_err(|error| error.to_string())
    };
    assert!(new(&network, &Rule::ntk(1.0, 0.0), 0).unwrap_err().contains("no networks"));
    assert!(new(&network, &Rule::ntk(-1.0, 0.0), 2).unwrap_err().contains("deviation"));
    let single = new(&network, &Rule::ntk(1.0, 0.0), 1).unwrap();
    assert!(single.with_errors().unwrap_err().to_string().contains("single"));
    let mut builder = GraphBuilder::new();
    let x = builder.input("x", [1, 2], Batch::axis(0));
    let y = builder.node("abs", Unary(Function::Abs), &[x]).unwrap();
    builder.output("y", y);
    let fixed = Network::from_graph(builder.finish(), Vec::new()).unwrap();
    assert!(new(&fixed, &Rule::ntk(1.0, 0.0), 2).unwrap_err().contains("no weights"));
}

/// Three blocks and six tiles, kept and made again, with one thread and two; the second matrix comes along.
#[test]
fn the_engine_gives_the_same_bits_either_way() {
    let network = Mlp::new(2, &[6], 2).build(0).unwrap();
    let x = ndarray::Array2::from_shape_vec((600, 2), normal::<f32>("many", 1200)).unwrap().into_dyn();
    let data = [Dataset::from_array("x", x.view()).unwrap()];
    for of in [LimitKind::Nngp, LimitKind::Ntk] {
        let kernel = || MonteCarlo::<f32>::new(&network, &[vec![2]], &Rule::ntk(1.3, 0.2), of, 5, 1).unwrap();
        let arrays = |kernel: MonteCarlo<f32>, threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let kernel = kernel.with_errors().unwrap();
            pool.install(|| Gram::new(&kernel, &data).to_arrays(&Context::new()).unwrap())
        };
        let kept = arrays(kernel(), 2);
        assert_eq!((kept.len(), kept[0].shape()), (2, &[600, 600][..]));
        assert_eq!(kept, arrays(kernel().streaming(), 2));
        assert_eq!(kept, arrays(kernel().streaming(), 1));
        assert_eq!(kept[1].t(), kept[1], "errors are mirrored too");
        let scaled = Scaled::new(Arc::new(kernel().with_errors().unwrap()), 2.0).unwrap();
        let twice = Gram::new(&scaled, &data).to_arrays(&Context::new()).unwrap();
        assert_eq!(twice[1], 2.0 * &kept[1]);
        assert!(Sum::new(vec![Arc::new(kernel().with_errors().unwrap()) as Arc<dyn Kernel<f32>>]).is_err());
    }
}
