//! Crops and flips in training.

use super::trainer;
use mercer_data::{Classes, Dataset, Labels};
use mercer_net::NetError;
use mercer_net::arch::{Cnn, CnnLayer};
use mercer_net::train::{
    Augmentation, Epoch, Loss, Optimiser, Schedule, TrainingLoop, TrainingSamples, TrainingSettings,
};
use ndarray::Array4;
use std::path::Path;

fn images() -> (Dataset, Labels) {
    let images = Array4::from_shape_fn((60, 2, 6, 6), |(row, c, y, x)| ((row * 31 + c * 7 + y * 13 + x) as f32).sin());
    let labels = Classes::new((0..60).map(|row| row % 3).collect(), 3).unwrap();
    (Dataset::from_array("images", images.view().into_dyn()).unwrap(), Labels::Classes(labels))
}

fn settings(augmentation: Augmentation, batch_size: Option<usize>) -> TrainingSettings {
    TrainingSettings { batch_size, augmentation, ..TrainingSettings::new(4, Schedule::constant(0.01)) }
}

type Trained = (Vec<Vec<f32>>, Vec<Epoch>);

fn trained(settings: TrainingSettings, folder: Option<&Path>, threads: usize) -> Result<Trained, NetError> {
    let (inputs, labels) = images();
    let layers = [CnnLayer::conv(4, 3), CnnLayer::max_pool(2)];
    let mut trainer =
        trainer(&Cnn::new(&[2, 6, 6], &layers, 3).build(1).unwrap(), Loss::CrossEntropy, Optimiser::adam());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let history = pool.install(|| {
        let mut training = TrainingLoop::new(settings).resume(true);
        if let Some(folder) = folder {
            training = training.folder(folder);
        }
        training.run(&mut trainer, TrainingSamples::one(&inputs, &labels))
    })?;
    Ok((trainer.weights().parameters.clone(), history))
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    for batch_size in [Some(16), None] {
        let plain = trained(settings(Augmentation::default(), batch_size), None, 1).unwrap();
        for how in [Augmentation { crop_margin: 2, flip: true }, Augmentation { crop_margin: 0, flip: true }] {
            let one = trained(settings(how, batch_size), None, 1).unwrap();
            assert_ne!(one, plain, "{how}");
            assert_eq!(trained(settings(how, batch_size), None, 2).unwrap(), one, "{how}");
        }
    }
}

/// A resumed run sees the same windows; another crop is another run.
#[test]
fn a_resumed_run_sees_the_same_images() {
    let how = Augmentation { crop_margin: 1, flip: true };
    for batch_size in [Some(16), None] {
        let whole = trained(settings(how, batch_size), None, 1).unwrap();
        let folder = tempfile::tempdir().unwrap();
        trained(TrainingSettings { epochs: 2, ..settings(how, batch_size) }, Some(folder.path()), 2).unwrap();
        assert_eq!(trained(settings(how, batch_size), Some(folder.path()), 2).unwrap(), whole);
        let other = |how: Augmentation| {
            trained(TrainingSettings { epochs: 6, ..settings(how, batch_size) }, Some(folder.path()), 1)
                .unwrap_err()
                .to_string()
        };
        let text = other(Augmentation { crop_margin: 2, flip: true });
        assert!(text.contains("its augmentation was crop 1, flip, but is now crop 2, flip"), "{text}");
        assert!(other(Augmentation::default()).contains("but is now none"));
    }
}
