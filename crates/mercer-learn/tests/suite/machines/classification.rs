use super::sets::{labels, rbf, rows};
use mercer_data::Classes;
use mercer_learn::classification::{BinaryLogistic, By, Glm, NearestCentre, NearestNeighbours, SgdGlm, Svm};
use mercer_learn::metrics::accuracy;
use mercer_learn::{Classify, Fit, LearnError, Predict, SampleRows, softmax};
use ndarray::{Array2, Axis, array};

/// At the optimum the gradient vanishes: `Kᵀ(P − Y) + λW = 0`, `Σ(P − Y) = 0`.
#[test]
fn the_glm_is_stationary() {
    let x = rows(60, 2, "glm");
    let (k, y) = (rbf(x.view(), x.view()), labels(x.view(), 4));
    let glm = Glm::new(0.1).unwrap().until(1e-9, 5000).unwrap();
    let machine = glm.fit(&SampleRows::Gram(k.view()), &y).unwrap();
    assert!(machine.solved().converged);
    let difference =
        softmax(machine.predict(&SampleRows::Gram(k.view())).unwrap().view()) - y.one_hot::<f64>().unwrap();
    let gradient = k.dot(&difference) + machine.scores().weights() * 0.1;
    // The tolerance is of the mean over 60 samples.
    assert!(gradient.iter().all(|g| g.abs() < 1e-7));
    assert!(difference.sum_axis(Axis(0)).iter().all(|g| g.abs() < 1e-7));
}

#[test]
fn stochastic_descent_comes_near() {
    let x = rows(150, 2, "sgd");
    let (k, y) = (rbf(x.view(), x.view()), labels(x.view(), 3));
    let samples = SampleRows::Gram(k.view());
    let machine = SgdGlm::new(3).fit(&samples, &y).unwrap();
    let exact = Glm::new(1.5).unwrap().fit(&samples, &y).unwrap();
    let right = |decided: Vec<usize>| accuracy(&decided, y.indices()).unwrap();
    let (found, best) = (right(machine.decide(&samples).unwrap()), right(exact.decide(&samples).unwrap()));
    assert!(found > best - 0.05, "{found} {best}");
    assert!(machine.solved().converged && machine.probabilities(&samples).is_ok());
}

/// At the optimum `λα = χ − p`, and features give the same function.
#[test]
fn newton_finds_the_logistic_optimum() {
    let x = rows(50, 2, "newton");
    let (k, y) = (rbf(x.view(), x.view()), labels(x.view(), 2));
    for penalty in [1e-3, 0.5, 30.0] {
        let machine = BinaryLogistic::new(penalty).unwrap().fit(&SampleRows::Gram(k.view()), &y).unwrap();
        assert!(machine.solved().converged);
        let p = machine.probabilities(&SampleRows::Gram(k.view())).unwrap();
        for (i, &class) in y.indices().iter().enumerate() {
            let slope = class as f64 - p[(i, 1)];
            assert!((penalty * machine.scores().weights()[(i, 1)] - slope).abs() < 1e-6, "{penalty}");
        }
    }
    let three = BinaryLogistic::new(1.0).unwrap().fit(&SampleRows::Gram(k.view()), &labels(x.view(), 3));
    assert!(matches!(three, Err(LearnError::NotBinary { found: 3 })));
}

/// The conditions of optimality, sample by sample: `yf ≥ 1` where α = 0, `= 1` inside, `≤ 1` where α = C.
#[test]
fn support_vectors_satisfy_their_conditions() {
    let x = rows(80, 2, "svm");
    let (k, y) = (rbf(x.view(), x.view()), labels(x.view(), 3));
    let (cost, tolerance) = (2.0, 1e-6);
    let svm = Svm::new(cost).unwrap().with_tolerance(tolerance).unwrap();
    let machine = svm.fit(&SampleRows::Gram(k.view()), &y).unwrap();
    let scores = machine.predict(&SampleRows::Gram(k.view())).unwrap();
    for class in 0..3 {
        let mut balance = 0.0;
        for i in 0..80 {
            let sign = if y.indices()[i] == class { 1.0 } else { -1.0 };
            let alpha = sign * machine.scores().weights()[(i, class)];
            let margin = sign * scores[(i, class)];
            balance += sign * alpha;
            assert!((-1e-12..=cost + 1e-12).contains(&alpha));
            if alpha < cost - 1e-9 {
                assert!(margin > 1.0 - 2.0 * tolerance, "{margin}");
            }
            if alpha > 1e-9 {
                assert!(margin < 1.0 + 2.0 * tolerance, "{margin}");
            }
        }
        assert!(balance.abs() < 1e-9);
    }
    assert!(machine.probabilities(&SampleRows::Gram(k.view())).is_err());
}

#[test]
fn neighbours_and_centres_by_brute_force() {
    let (x, z) = (rows(40, 3, "nearest"), rows(25, 3, "queries"));
    let y = labels(x.view(), 3);
    let distance = |a: ndarray::ArrayView1<'_, f64>, b: ndarray::ArrayView1<'_, f64>| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
    };
    let machine = NearestNeighbours::new(5).unwrap().fit(&SampleRows::Features(x.view()), &y).unwrap();
    let nearest = machine.nearest(&SampleRows::Features(z.view())).unwrap();
    for (query, found) in z.outer_iter().zip(&nearest) {
        let mut order: Vec<usize> = (0..40).collect();
        order.sort_by(|&a, &b| distance(query, x.row(a)).total_cmp(&distance(query, x.row(b))));
        assert_eq!(found[..], order[..5]);
    }
    let centres = NearestCentre.fit(&SampleRows::Features(x.view()), &y).unwrap();
    let decided = centres.decide(&SampleRows::Features(z.view())).unwrap();
    let mean = |class: usize| {
        let rows: Vec<usize> = (0..40).filter(|&i| y.indices()[i] == class).collect();
        x.select(Axis(0), &rows).mean_axis(Axis(0)).unwrap()
    };
    let means: Vec<_> = (0..3).map(mean).collect();
    for (query, class) in z.outer_iter().zip(decided) {
        let nearest =
            (0..3).min_by(|&a, &b| distance(query, means[a].view()).total_cmp(&distance(query, means[b].view())));
        assert_eq!(Some(class), nearest);
    }
}

/// Large norms are similar to many and near to none: `κ(x, xᵢ)` and the distance disagree.
#[test]
fn neighbours_by_kernel_and_by_distance_differ() {
    let x = array![[1.0, 0.0], [0.9, 0.1], [5.0, 5.0], [-1.0, 0.2]];
    let y = Classes::new(vec![0, 0, 1, 1], 2).unwrap();
    let query = array![[1.0, 0.05]];
    for (by, expected) in [(By::Distance, [0, 1]), (By::Kernel, [2, 0])] {
        let method = NearestNeighbours::new(2).unwrap().by(by);
        let machine = method.fit(&SampleRows::Features(x.view()), &y).unwrap();
        assert_eq!(machine.nearest(&SampleRows::Features(query.view())).unwrap(), [expected]);
        assert_eq!(machine.chosen_by(), by);
        let (gram, cross) = (x.dot(&x.t()), query.dot(&x.t()));
        let dual = method.fit(&SampleRows::Gram(gram.view()), &y).unwrap();
        assert_eq!(dual.nearest(&SampleRows::Gram(cross.view())).unwrap(), [expected]);
    }
    // With a constant diagonal they agree.
    let near = &x * 0.3;
    let gram = rbf(near.view(), near.view());
    let of = |by| NearestNeighbours::new(3).unwrap().by(by).fit(&SampleRows::Gram(gram.view()), &y).unwrap();
    let samples = SampleRows::Gram(gram.view());
    assert_eq!(of(By::Kernel).nearest(&samples).unwrap(), of(By::Distance).nearest(&samples).unwrap());
}

#[test]
fn all_of_one_class() {
    let k = Array2::<f64>::eye(4);
    let one = Classes::new(vec![1; 4], 3).unwrap();
    let samples = SampleRows::Gram(k.view());
    let refused = |error: LearnError| assert!(matches!(error, LearnError::OneClass { class } if class == "1"));
    refused(Glm::new(1.0).unwrap().fit(&samples, &one).unwrap_err());
    refused(Svm::new(1.0).unwrap().fit(&samples, &one).unwrap_err());
    refused(SgdGlm::new(0).fit(&samples, &one).unwrap_err());
    refused(BinaryLogistic::new(1.0).unwrap().fit(&samples, &one).unwrap_err());
    let machine = NearestNeighbours::new(2).unwrap().fit(&samples, &one).unwrap();
    assert_eq!(machine.decide(&samples).unwrap(), [1; 4]);
    assert_eq!(machine.repairs().len(), 2);
    assert!(NearestNeighbours::new(5).unwrap().fit(&samples, &one).is_err());
}
