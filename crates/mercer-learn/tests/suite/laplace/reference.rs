//! Structures against the formulas, written down densely from the network's Jacobian.

use super::nets::{Case, all_structures, dataset, diabetes, distance, iris, saved};
use mercer_data::{Classes, Dataset, Labels};
use mercer_kernel::empirical::{Gradients, NtkKind, Selection};
use mercer_kernel::sketch::SketchMethod;
use mercer_kernel::{Kernel, Ntk};
use mercer_learn::laplace::{Laplace, LaplaceSettings, Likelihood, PredictiveDraws, Structure};
use mercer_learn::softmax;
use mercer_linalg::{cholesky, matmul};
use mercer_net::Network;
use mercer_net::arch::{Cnn, CnnLayer};
use mercer_net::run::{Factor, Factors};
use mercer_run::Context;
use ndarray::{Array2, Array3, Array4, Axis, Ix2, s};

fn sketch(k: usize, residual: bool) -> Structure {
    Structure::Sketch { method: SketchMethod::Gaussian, k, seed: 3, residual }
}

/// `σ₀²(κ(x, x) − κ(x, X)(σ₀⁻²Λ⁻¹ + κ(X, X))⁻¹κ(X, x))`: the posterior in function space, equation 21 by Woodbury's identity.
fn function_space(network: &Network, train: &Dataset, test: &Dataset, precision: f64) -> Array3<f64> {
    let shapes = [train.sample_shape().to_vec()];
    let kernel = Ntk::<f64>::with_selection(network, &shapes, NtkKind::Full, &Selection::default()).expect("a kernel");
    let outputs = kernel.n_outputs();
    let numbers = |data: &Dataset| -> Vec<f64> { data.read().expect("data").into_iter().collect() };
    let (x, z) = (numbers(train), numbers(test));
    let (n, m) = (train.n_samples(), test.n_samples());
    let (a, b) = (kernel.prepare(&[&x], n).expect("prepares"), kernel.prepare(&[&z], m).expect("prepares"));
    let gram = |a: &mercer_kernel::Block, b: &mercer_kernel::Block| {
        let shape = (a.samples() * outputs, b.samples() * outputs);
        let mut tile = vec![0.0; shape.0 * shape.1];
        kernel.contract(a, b, &mut tile);
        Array2::from_shape_vec(shape, tile).expect("a tile")
    };
    let mut noisy = gram(&a, &a);
    noisy.diag_mut().mapv_inplace(|x| x + precision);
    let cross = gram(&a, &b);
    let explained =
        matmul(cross.t(), cholesky(noisy.view()).expect("positive").solve(cross.view()).expect("solves").view());
    let posterior = (gram(&b, &b) - explained) / precision;
    let mut blocks = Array3::zeros((m, outputs, outputs));
    for (at, mut block) in blocks.axis_iter_mut(Axis(0)).enumerate() {
        let range = at * outputs..(at + 1) * outputs;
        block.assign(&posterior.slice(s![range.clone(), range]));
    }
    blocks
}

/// Unit noise makes `Λ = I`, so that the whole posterior can be had from the kernel.
#[test]
fn the_full_posterior_is_the_one_in_function_space() {
    let case = diabetes();
    let full = case.fit(Structure::Full).predict(&case.test, &Context::new()).expect("predicts");
    let dense = function_space(&case.network, &case.train[0], &case.test[0], case.number("prior_precision"));
    // The difference of two numbers a hundred times as large.
    assert!(distance(&full.covariance, &dense) < 1e-9);
}

fn covariance(case: &Case, structure: Structure) -> Array3<f64> {
    case.fit(structure).predict(&case.test, &Context::new()).expect("predicts").covariance
}

/// Features that span everything leave nothing to correct, and give the full posterior.
#[test]
fn sketches_approach_the_full_posterior() {
    let case = iris();
    let full = covariance(&case, Structure::Full);
    let error = |k: usize, residual: bool| distance(&covariance(&case, sketch(k, residual)), &full);
    let (few, many) = (error(32, false), error(1024, false));
    // The error of a Gaussian sketch falls as K^-½: by five or six between these two, with the chance of one seed.
    assert!(many < 0.4 * few, "{many} after {few}");
    assert!(many < 0.3, "{many}");
    let hadamard = Structure::Sketch { method: SketchMethod::Hadamard, k: 512, seed: 0, residual: false };
    // 387 parameters: a Hadamard sketch of 512 is exact inside of a parameter.
    assert!(distance(&covariance(&case, hadamard), &full) < 0.5);
}

/// Out of distribution a sketch with few features has too little variance, and the correction gives it back.
#[test]
fn the_residual_correction_restores_the_variance_far_from_the_data() {
    let mut case = iris();
    let far = case.test[0].read::<f64>().expect("data").mapv(|x| -4.0 * x + 3.0);
    case.test = vec![dataset("far", far)];
    let trace =
        |covariance: &Array3<f64>| -> f64 { covariance.axis_iter(Axis(0)).map(|block| block.diag().sum()).sum() };
    let full = trace(&covariance(&case, Structure::Full));
    let (plain, corrected) =
        (trace(&covariance(&case, sketch(24, false))), trace(&covariance(&case, sketch(24, true))));
    assert!(plain < 0.9 * full, "{plain} of {full}");
    assert!((corrected / full - 1.0).abs() < (plain / full - 1.0).abs(), "{plain}, {corrected}, {full}");
}

#[test]
fn the_slope_of_the_evidence_is_its_derivative() {
    let case = iris();
    for structure in all_structures().chain([sketch(100, false)]) {
        let machine = case.fit(structure);
        for precision in [0.02, 1.0, 30.0] {
            let step = 1e-4 * precision;
            let value = |at: f64| machine.log_evidence(at).expect("an evidence");
            let difference = (value(precision + step) - value(precision - step)) / (2.0 * step);
            let slope = machine.log_evidence_slope(precision).expect("a slope");
            // The third derivative times step², and rounding over step: both below 1e-7 of the terms of the slope.
            let size = machine.effective_parameters(precision).expect("a number") / precision + machine.squared_norm();
            assert!((difference - slope).abs() < 1e-6 * size, "{structure}: {difference} and {slope}");
        }
    }
}

#[test]
fn the_highest_evidence_is_found() {
    let case = iris();
    for (name, structure) in all_structures().map(|structure| (structure.to_string(), structure)) {
        let mut machine = case.fit(structure);
        let best = machine.maximise_evidence(&Context::new()).expect("a maximum");
        let value = |at: f64| machine.log_evidence(at).expect("an evidence");
        assert!(value(best) > value(best * 1.01) && value(best) > value(best / 1.01), "{name}: {best}");
        // The slope is zero up to the tolerance of the search, 1e-8 of its two terms.
        let slope = machine.log_evidence_slope(best).expect("a slope");
        assert!(slope.abs() < 1e-7 * machine.squared_norm(), "{name}: {slope}");
        assert_eq!(machine.prior_precision(), best);
    }
}

#[test]
fn validation_finds_a_precision_that_predicts_well() {
    let case = iris();
    let mut machine = case.fit(Structure::Kronecker);
    let best = machine.validate(&case.train, &case.labels, &Context::new()).expect("a precision");
    // On the training data itself certainty is rewarded: the prior should be strong, not weak.
    assert!(best.precision > 1.0 && best.loss.is_finite(), "{best:?}");
    assert_eq!(machine.prior_precision(), best.precision);
    // The best of the grid is better than its neighbours, or the first at an end that was told.
    let (least, highest) = best.tried;
    assert_eq!(best.note().is_some(), best.precision <= least || best.precision >= highest, "{best:?}");
}

/// The same again gives the same bits, on any number of threads; another order of the samples only another rounding.
#[test]
fn fitting_again_and_in_another_order_changes_nothing() {
    let mut case = iris();
    let structures = || all_structures().chain([sketch(40, true)]);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let before: Vec<Array3<f64>> = structures().map(|structure| covariance(&case, structure)).collect();
    for (structure, before) in structures().zip(&before) {
        assert_eq!(&one.install(|| covariance(&case, structure)), before, "{structure}");
    }
    let order: Vec<usize> = (0..case.train[0].n_samples()).rev().collect();
    case.train = vec![dataset("reversed", case.train[0].select::<f64>(&order).expect("rows"))];
    case.labels = case.labels.select(&order).expect("labels");
    for (structure, before) in structures().zip(&before) {
        // Sums of a hundred terms in another order, through a condition number of 10⁴.
        assert!(distance(&covariance(&case, structure), before) < 1e-9, "{structure}");
    }
}

/// Two convolutional positions and more, an average pool and two dense layers.
fn convolutions() -> (Network, Vec<Dataset>, Labels) {
    let layers = [CnnLayer::conv(3, 3), CnnLayer::average_pool(4), CnnLayer::dense(4)];
    let network = Cnn::new(&[1, 8, 8], &layers, 3).build(5).expect("a network");
    let digits = mercer_data::digits::load().expect("digits");
    let pixels = digits.pixels().expect("pixels").slice(s![..24, .., ..]).mapv(f64::from);
    let images = pixels.into_shape_with_order((24, 1, 8, 8)).expect("images").into_dyn();
    let classes = Classes::new((0..24).map(|at| at % 3).collect(), 3).expect("classes");
    (network, vec![dataset("images", images)], Labels::Classes(classes))
}

fn fit(network: &Network, data: &[Dataset], labels: &Labels, structure: Structure) -> Laplace<f64> {
    let settings = LaplaceSettings::new(structure, Likelihood::Categorical);
    Laplace::fit(network, data, labels, &settings, &Context::new()).expect("fits")
}

/// The diagonal structure is the diagonal of the full one, also where a weight has many positions.
#[test]
fn the_diagonal_of_convolutions_is_that_of_the_full_curvature() {
    let (network, data, labels) = convolutions();
    let numbers = |structure: Structure| -> Vec<f64> {
        let folder = saved(&fit(&network, &data, &labels, structure));
        let mut numbers = Vec::new();
        for name in folder.object_names() {
            let array = folder.array(name).and_then(|data| data.read::<f64>()).expect("an array");
            let matrix = array.into_dimensionality::<Ix2>().expect("a matrix");
            match structure {
                Structure::Full => numbers.extend(matrix.diag()),
                _ => numbers.extend(&matrix),
            }
        }
        numbers.sort_by(f64::total_cmp);
        numbers
    };
    assert!(distance(&numbers(Structure::Diagonal), &numbers(Structure::Full)) < 1e-12);
}

/// KFAC-expand, written down: `A ⊗ B` of every parameter from the factors of the reverse pass, as a matrix that is inverted.
#[test]
fn kronecker_factors_of_convolutions_are_those_of_the_formula() {
    let (network, data, labels) = convolutions();
    let (samples, n_outputs) = (data[0].n_samples(), 3);
    let found = fit(&network, &data, &labels, Structure::Kronecker).predict(&data, &Context::new()).expect("predicts");
    let x: Vec<f64> = data[0].read().expect("data").into_iter().collect();
    let shapes = [data[0].sample_shape().to_vec()];
    let gradients = Gradients::<f64>::new(&network, &shapes, NtkKind::Trace, &Selection::default()).expect("gradients");
    let outer: Vec<bool> = gradients.outer_shapes().iter().map(Option::is_some).collect();
    let mut shards = vec![None; gradients.shards(samples).count()];
    let places = shards.iter_mut().collect();
    let keep = |place: &mut Option<Factors<f64>>, factors: &Factors<f64>| {
        *place = Some(factors.clone());
        Ok(())
    };
    gradients.sweep(&[&x], samples, &outer, places, keep).expect("runs");
    let p = softmax(found.mean.view());
    let lambda = |n: usize, c: usize, d: usize| p[(n, c)] * (f64::from(u8::from(c == d)) - p[(n, d)]);
    let mut covariance = Array3::<f64>::zeros((samples, n_outputs, n_outputs));
    for parameter in 0..outer.len() {
        let size = gradients.numel(parameter);
        let (mut jacobians, mut curvature) = (Array3::zeros((samples, n_outputs, size)), Array2::zeros((size, size)));
        let shape = gradients.outer_shapes()[parameter];
        let (right_size, left_size) = shape.map_or((size, 1), |shape| (shape.right, shape.left));
        let (mut a, mut b) =
            (Array2::<f64>::zeros((left_size, left_size)), Array2::<f64>::zeros((right_size, right_size)));
        let mut first = 0;
        for shard in shards.iter().flatten() {
            let factor = shard.parameters[parameter].as_ref().expect("chosen");
            let explicit = factor.explicit(shard.samples, n_outputs);
            let explicit = Array3::from_shape_vec((shard.samples, n_outputs, size), explicit).expect("gradients");
            jacobians.slice_mut(s![first..first + shard.samples, .., ..]).assign(&explicit);
            let (positions, left, right) = match factor {
                Factor::Outer { shape, left, right } => (shape.positions, left.clone(), right),
                Factor::Explicit(gradient) => (1, vec![1.0; shard.samples], gradient),
            };
            let left = Array3::from_shape_vec((shard.samples, positions, left_size), left).expect("left");
            let shape = (shard.samples, n_outputs, positions, right_size);
            let right = Array4::from_shape_vec(shape, right.clone()).expect("right");
            for (n, q) in (0..shard.samples).flat_map(|n| (0..positions).map(move |q| (n, q))) {
                let own = left.slice(s![n, q, ..]).insert_axis(Axis(1));
                a = a + own.dot(&own.t()) / (samples * positions) as f64;
                for (c, d) in (0..n_outputs).flat_map(|c| (0..n_outputs).map(move |d| (c, d))) {
                    let (c_side, d_side) = (right.slice(s![n, c, q, ..]), right.slice(s![n, d, q, ..]));
                    let product = c_side.insert_axis(Axis(1)).dot(&d_side.insert_axis(Axis(0)));
                    b = b + lambda(first + n, c, d) * product;
                }
            }
            first += shard.samples;
        }
        // Weights are stored right side first.
        for ((row, column), value) in curvature.indexed_iter_mut() {
            let own = a[(row % left_size, column % left_size)] * b[(row / left_size, column / left_size)];
            *value = own + f64::from(u8::from(row == column));
        }
        assert!(shape.is_none_or(|shape| shape.right_major));
        let factor = cholesky(curvature.view()).expect("positive");
        for (n, jacobian) in jacobians.axis_iter(Axis(0)).enumerate() {
            let solved = factor.solve(jacobian.t()).expect("solves");
            let mut own = covariance.index_axis_mut(Axis(0), n);
            own += &jacobian.dot(&solved);
        }
    }
    assert!(distance(&found.covariance, &covariance) < 1e-10);
}

/// In f32 the same up to its rounding.
#[test]
fn single_precision_is_close() {
    let case = iris();
    for structure in all_structures() {
        let settings = case.settings(structure);
        let single = Laplace::<f32>::fit(&case.network, &case.train, &case.labels, &settings, &Context::new());
        let single = single.expect("fits").predict(&case.test, &Context::new()).expect("predicts").covariance;
        // Rounding of 6e-8, amplified by the condition of the curvature.
        assert!(distance(&single, &covariance(&case, structure)) < 1e-4, "{structure}");
    }
}

/// `2(b − Wz)`: the layer has its signs and factors, as the passes over all parameters find them.
#[test]
fn the_last_layer_behind_a_difference_and_a_factor() {
    use mercer_net::graph::{Batch, GraphBuilder};
    use mercer_net::network::Values;
    use mercer_net::op::{Binary, Combine, Function, MatMul, Unary};
    let mut builder = GraphBuilder::new();
    let x = builder.input("x", vec![1, 3], Batch::Untracked);
    let hidden = builder.parameter("hidden.weight", vec![3, 4]);
    let (weight, bias) = (builder.parameter("last.weight", vec![2, 4]), builder.parameter("last.bias", vec![2]));
    let z = builder.node("", MatMul { transposed: false }, &[x, hidden]).expect("a node");
    let z = builder.node("", Unary(Function::Tanh), &[z]).expect("a node");
    let product = builder.node("", MatMul { transposed: true }, &[z, weight]).expect("a node");
    let difference = builder.node("", Binary(Combine::Sub), &[bias, product]).expect("a node");
    let y = builder.node("", Unary(Function::Affine { scale: 2.0, shift: 0.0 }), &[difference]).expect("a node");
    builder.output("y", y);
    let numbers = |count: usize| (0..count).map(|at| (1.7 * at as f64 + 0.3).sin()).collect::<Vec<_>>();
    let values = [12, 8, 2].map(|count| Values::from_slice(&numbers(count))).to_vec();
    let network = Network::from_graph(builder.finish(), values).expect("a network");
    let data = [dataset("x", Array2::from_shape_vec((6, 3), numbers(18)).expect("six rows").into_dyn())];
    let targets = Labels::Targets(Array2::from_shape_vec((6, 2), numbers(12)).expect("six rows"));
    let covariance = |structure, parameters: &[&str]| {
        let mut settings = LaplaceSettings::new(structure, Likelihood::Gaussian { noise: 0.5 });
        settings.parameters = parameters.iter().map(|&name| name.to_owned()).collect();
        let machine = Laplace::<f64>::fit(&network, &data, &targets, &settings, &Context::new()).expect("fits");
        machine.predict(&data, &Context::new()).expect("predicts").covariance
    };
    let expected = covariance(Structure::Full, &["last.*"]);
    assert!(distance(&covariance(Structure::LastLayerFull, &[]), &expected) < 1e-10);
    // The other forms of the last layer are those of the passes over all parameters, restricted to it.
    for (own, all) in
        [(Structure::LastLayerDiagonal, Structure::Diagonal), (Structure::LastLayerKronecker, Structure::Kronecker)]
    {
        assert!(distance(&covariance(own, &[]), &covariance(all, &["last.*"])) < 1e-10, "{own}");
    }
}

/// The diagonal of the last layer, written down from the explicit Jacobian: `h = Σ diag(JᵀΛJ)`, `J diag(1/(h + δ)) Jᵀ`.
#[test]
fn the_diagonal_of_the_last_layer_is_that_of_the_jacobian() {
    for case in [iris(), diabetes()] {
        let names = case.network.parameters().iter().map(|own| own.name().to_owned()).collect::<Vec<_>>();
        let selection = Selection { parameters: names[names.len() - 2..].to_vec(), ..Selection::default() };
        let shapes = [case.train[0].sample_shape().to_vec()];
        let gradients = Gradients::<f64>::new(&case.network, &shapes, NtkKind::Trace, &selection).expect("gradients");
        let n_outputs = gradients.n_seeds();
        let jacobian = |data: &Dataset| -> Array3<f64> {
            let (x, samples) = (data.read::<f64>().expect("data"), data.n_samples());
            let explicit = vec![false; gradients.chosen().len()];
            let mut shards = vec![Vec::new(); gradients.shards(samples).count()];
            let each = |place: &mut Vec<Array2<f64>>, factors: &Factors<f64>| {
                for factor in factors.parameters.iter().flatten() {
                    let numbers = factor.explicit(factors.samples, n_outputs);
                    let rows = factors.samples * n_outputs;
                    place.push(Array2::from_shape_vec((rows, numbers.len() / rows), numbers).expect("rows"));
                }
                Ok(())
            };
            let x = x.into_iter().collect::<Vec<_>>();
            gradients.sweep(&[&x], samples, &explicit, shards.iter_mut().collect(), each).expect("runs");
            let whole = |shard: &Vec<Array2<f64>>| {
                ndarray::concatenate(Axis(1), &shard.iter().map(|own| own.view()).collect::<Vec<_>>()).expect("columns")
            };
            let rows: Vec<Array2<f64>> = shards.iter().map(whole).collect();
            let views: Vec<_> = rows.iter().map(|own| own.view()).collect();
            let rows = ndarray::concatenate(Axis(0), &views).expect("rows");
            let width = rows.ncols();
            rows.as_standard_layout().into_owned().into_shape_with_order((samples, n_outputs, width)).expect("rows")
        };
        let machine = case.fit(Structure::LastLayerDiagonal);
        let outputs = machine.predict(&case.train, &Context::new()).expect("predicts").mean;
        let p = softmax(outputs.view());
        let lambda = |n: usize, c: usize, d: usize| {
            let unit = f64::from(u8::from(c == d));
            if machine.noise().is_some() { unit } else { p[(n, c)] * (unit - p[(n, d)]) }
        };
        let train = jacobian(&case.train[0]);
        let mut curvature = ndarray::Array1::<f64>::zeros(train.dim().2);
        for (n, own) in train.axis_iter(Axis(0)).enumerate() {
            for (c, d) in (0..n_outputs).flat_map(|c| (0..n_outputs).map(move |d| (c, d))) {
                curvature += &(lambda(n, c, d) * &own.row(c) * own.row(d));
            }
        }
        let inverse = curvature.mapv(|h| 1.0 / (h + case.number("prior_precision")));
        let found = machine.predict(&case.test, &Context::new()).expect("predicts").covariance;
        let test = jacobian(&case.test[0]);
        let expected: Vec<f64> =
            test.axis_iter(Axis(0)).flat_map(|own| (&own * &inverse).dot(&own.t()).into_iter()).collect();
        assert!(distance(&found, &expected) < 1e-12);
        let evidence = machine.effective_parameters(2.0).expect("a number");
        assert!((evidence - curvature.mapv(|h| h / (h + 2.0)).sum()).abs() < 1e-10);
    }
}

/// Variances without covariances are those on their diagonals, and draws a block at a time those of all samples at once.
#[test]
fn marginals_are_those_of_the_joint_posterior() {
    let draws = PredictiveDraws { draws: 30, seed: 4, scale: 2.0 };
    for case in [iris(), diabetes()] {
        for structure in all_structures().chain([sketch(40, true)]) {
            let machine = case.fit(structure);
            let joint = machine.predict(&case.test, &Context::new()).expect("predicts");
            let found = machine.marginals(&case.test, Some(&draws), &Context::new()).expect("predicts");
            let plain = machine.marginals(&case.test, None, &Context::new()).expect("predicts");
            assert_eq!(found.mean, joint.mean, "{structure}");
            assert!(distance(&found.variance, &joint.variances()) < 1e-13, "{structure}");
            assert_eq!(found.clipped, joint.clipped, "{structure}");
            // Another order of the same sums.
            assert!(distance(&plain.variance, &joint.variances()) < 1e-13, "{structure}");
            assert!(plain.drawn.is_none() && plain.map() == joint.map(), "{structure}");
            if joint.noise().is_none() {
                let drawn = joint.monte_carlo(&draws, &Context::new()).expect("draws");
                assert!(distance(found.drawn.as_ref().expect("drawn"), &drawn) < 1e-12, "{structure}");
                assert!(distance(&plain.probit(), &joint.probit()) < 1e-13, "{structure}");
            } else {
                assert!(found.drawn.is_none() && found.noise() == joint.noise());
            }
        }
    }
}
