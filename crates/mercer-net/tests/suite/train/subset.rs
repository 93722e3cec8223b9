//! Training on some rows of a data set.

use super::trainer;
use mercer_data::{Classes, Dataset, Labels, Preprocess, shuffled, synthetic};
use mercer_net::Network;
use mercer_net::arch::{Cnn, CnnLayer, Mlp};
use mercer_net::train::{
    Augmentation, Epoch, Loss, Optimiser, Schedule, TrainingLoop, TrainingSamples, TrainingSettings,
};
use ndarray::{Array4, Axis};

type Trained = (Vec<Vec<f32>>, Vec<Epoch>);

fn trained(network: &Network, inputs: &Dataset, labels: &Labels, settings: &TrainingSettings) -> Trained {
    let mut trainer = trainer(network, Loss::CrossEntropy, Optimiser::adam());
    let samples = TrainingSamples::one(inputs, labels);
    let history = TrainingLoop::new(settings.clone()).evaluation(samples).run(&mut trainer, samples).unwrap();
    (trainer.weights().parameters.clone(), history)
}

/// A random half of the rows gives the same bits as an array of these rows: in batches and as a whole.
#[test]
fn a_subset_trains_as_a_copy_of_its_rows() {
    let (points, classes) = synthetic::two_moons(90, 0.1, 0).unwrap();
    let half = &shuffled(90, 5, 0)[..45];
    let all = Dataset::from_array("moons", points.view().into_dyn()).unwrap();
    let labels = Labels::Classes(classes.clone());
    let (mut inputs, chosen) = TrainingSamples::one(&all, &labels).subset(half).unwrap();
    let inputs = inputs.remove(0);
    let copy = Dataset::from_array("copy", points.select(Axis(0), half).view().into_dyn()).unwrap();
    let copied = Classes::new(half.iter().map(|&row| classes.indices()[row]).collect(), 2).unwrap();
    let network = Mlp::new(2, &[12], 2).build(4).unwrap();
    for batch_size in [Some(8), None] {
        let settings = TrainingSettings { batch_size, ..TrainingSettings::new(4, Schedule::constant(0.02)) };
        let own = trained(&network, &inputs, &chosen, &settings);
        assert_eq!(own, trained(&network, &copy, &Labels::Classes(copied.clone()), &settings));
        assert_ne!(own, trained(&network, &all, &labels, &settings));
    }
}

/// Also through preprocessing, crops and flips, and from a file's integers.
#[test]
fn a_subset_of_images_too() {
    let images = Array4::from_shape_fn((20, 6, 6, 1), |(row, y, x, _)| ((row * 37 + y * 11 + x * 5) % 251) as u8);
    let rows = [3, 17, 4, 4, 11, 0, 9];
    let classes: Vec<usize> = (0..20).map(|row| row % 3).collect();
    let steps = Preprocess::new().scale(1.0 / 255.0).channels_first();
    let all = Dataset::from_array("images", images.view().into_dyn()).unwrap().with_preprocess(steps.clone()).unwrap();
    let copy = images.select(Axis(0), &rows);
    let copy = Dataset::from_array("copy", copy.view().into_dyn()).unwrap().with_preprocess(steps).unwrap();
    let labels = Labels::Classes(Classes::new(classes, 3).unwrap());
    let (mut inputs, chosen) = TrainingSamples::one(&all, &labels).subset(&rows).unwrap();
    let inputs = inputs.remove(0);
    let network = Cnn::new(&[1, 6, 6], &[CnnLayer::conv(3, 3), CnnLayer::max_pool(2)], 3).build(0).unwrap();
    let settings = TrainingSettings {
        batch_size: Some(3),
        augmentation: Augmentation { crop_margin: 1, flip: true },
        ..TrainingSettings::new(3, Schedule::constant(0.01))
    };
    let same = trained(&network, &copy, &labels.select(&rows).unwrap(), &settings);
    assert_eq!(trained(&network, &inputs, &chosen, &settings), same);
    assert!(TrainingSamples::one(&all, &labels).subset(&[20]).is_err());
}
