//! Texts and images through jobs: predictions, fine-tuning, and folders that read new ones in the same way.

use mercer::Error;
use mercer::data::Source;
use mercer::job::explain::SurrogateSpec;
use mercer::job::predict::{PredictJob, Subject};
use mercer::job::train::{TrainJob, TrainingSpec, TuningSpec};
use mercer::job::{Destination, ExplainJob, Job, Opened, replay};
use mercer::run::Context;
use mercer::spec::{DataRef, DataSpec, DecodingSpec, Inputs, Opening, ParameterSpec, Precision};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/texts").join(name)
}

fn folder_of_images() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../mercer-data/tests/fixtures/images").display().to_string()
}

const TEXTS: &str = "text,mood\n\"the cat sat on the mat\",good\n\"a dog\",bad\n";

fn many() -> String {
    let rows: String =
        (0..12).map(|row| if row % 2 == 0 { "the cat sat,good\n" } else { "a dog on mat,bad\n" }).collect();
    format!("text,mood\n{rows}")
}

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        let own = Self(tempfile::tempdir().unwrap());
        std::fs::write(own.path("t.csv"), TEXTS).unwrap();
        std::fs::write(own.path("many.csv"), many()).unwrap();
        own
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A column of texts; with the tokenizer, unless a folder knows it.
    fn data(&self, source: &str, tokenizer: bool) -> DataSpec {
        let tokenizer = tokenizer.then(|| fixture("wordpiece.json"));
        let decoding = DecodingSpec { tokenizer, ..DecodingSpec::default() };
        DataSpec { data: vec![DataRef::File(self.text(source))], decoding, ..DataSpec::default() }
    }

    /// Predictions as an array, with the notes.
    fn predict(&self, subject: Subject, data: DataSpec, out: &str) -> Result<(Vec<f64>, Vec<String>), Error> {
        let (parameters, precision) = (ParameterSpec::default(), Precision::F64);
        let job = PredictJob { subject, parameters, at: None, probabilities: false, precision, batch: None, data };
        let path = self.path(out);
        let destination = Destination { path: Some(path.clone()), ..Destination::default() };
        let (context, inputs) = (Context::new(), Inputs::none());
        job.open(&destination, Opening { inputs: &inputs, context: &context })?.run(&context)?;
        let read = Source::new(&path, None).open().unwrap().read::<f64>().unwrap();
        Ok((read.into_iter().collect(), context.notes()))
    }

    fn train(&self, job: &TrainJob, out: &str) -> Result<Vec<String>, Error> {
        let destination = Destination { path: Some(self.path(out)), ..Destination::default() };
        let (context, inputs) = (Context::new(), Inputs::none());
        job.open(&destination, Opening { inputs: &inputs, context: &context })?.run(&context)?;
        Ok(context.notes())
    }
}

fn net() -> Subject {
    Subject::Net(fixture("embedder.onnx"))
}

#[track_caller]
fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let worst = found.iter().zip(expected).map(|(l, r)| (l - r).abs()).fold(0.0, f64::max);
    assert!(worst <= tolerance, "{worst}");
}

#[test]
fn texts_are_the_inputs_of_a_network() {
    let scratch = Scratch::new();
    let expected = Source::new(fixture("embedder.npz"), Some("embedding")).open().unwrap().read::<f64>().unwrap();
    let (found, notes) = scratch.predict(net(), scratch.data("t.csv:text", true), "a.npy").unwrap();
    close(&found, expected.as_slice().unwrap(), 1e-6);
    assert!(notes.iter().all(|note| !note.contains("cut")), "{notes:?}");
    // Longer than the network's 16 positions: cut, with a note. Asked for: refused, with the node and the limit.
    std::fs::write(scratch.path("long.csv"), format!("text\n{}\na dog\n", "cat ".repeat(40))).unwrap();
    let (_, notes) = scratch.predict(net(), scratch.data("long.csv:text", true), "b.npy").unwrap();
    assert!(notes.iter().any(|note| note.contains("1 of 2 texts had more than 16 tokens")), "{notes:?}");
    let mut data = scratch.data("t.csv:text", true);
    data.decoding.max_tokens = Some(40);
    let error = scratch.predict(net(), data.clone(), "c.npy").unwrap_err();
    assert!(error.message().contains("40 tokens") && error.message().contains("add_positions"), "{error}");
    assert!(error.hints().iter().any(|hint| hint.text.contains("‹max-tokens› 16")), "{error:?}");
    data.decoding.max_tokens = Some(4);
    let (_, notes) = scratch.predict(net(), data, "d.npy").unwrap();
    assert!(notes.iter().any(|note| note.contains("1 of 2 texts had more than 4 tokens")), "{notes:?}");
    let mut data = scratch.data("t.csv:text", false);
    data.decoding.max_tokens = Some(4);
    assert!(scratch.predict(net(), data, "e.npy").unwrap_err().message().contains("‹tokenizer›"));
    // Texts without a tokenizer are not token ids, and a table may have a header alone.
    let error = scratch.predict(net(), scratch.data("t.csv:text", false), "f.npy").unwrap_err();
    assert!(
        format!("{error:?}").contains("these are texts") && format!("{error:?}").contains("‹tokenizer›"),
        "{error:?}"
    );
    std::fs::write(scratch.path("none.csv"), "text,mood\n").unwrap();
    let error = scratch.predict(net(), scratch.data("none.csv:text", true), "g.npy").unwrap_err();
    assert!(error.message().contains("none.csv") && error.message().contains("no texts"), "{error}");
    let mut one = tuned(&scratch, &["head*"], false, 1);
    std::fs::write(scratch.path("one.csv"), "text,mood\na dog,bad\nthe cat,bad\n").unwrap();
    one.data =
        DataSpec { labels: Some(DataRef::File(scratch.text("one.csv:mood"))), ..scratch.data("one.csv:text", true) };
    assert!(scratch.train(&one, "h").unwrap_err().message().contains("one class"));
}

fn tuned(scratch: &Scratch, params: &[&str], redraw: bool, epochs: usize) -> TrainJob {
    let labels = Some(DataRef::File(scratch.text("many.csv:mood")));
    let data = DataSpec { labels, ..scratch.data("many.csv:text", true) };
    let params = params.iter().map(|&pattern| pattern.to_owned()).collect();
    let tuning = TuningSpec { net: fixture("embedder.onnx"), params, head: Some(2), node: None, redraw };
    let training = TrainingSpec {
        epochs: NonZeroUsize::new(epochs).unwrap(),
        learning_rate: Some(0.05),
        batch: NonZeroUsize::new(4),
        ..TrainingSpec::default()
    };
    TrainJob { training, ..TrainJob::tuned(tuning, data) }
}

#[test]
fn a_tuned_network_reads_new_texts_without_its_tokenizer() {
    let scratch = Scratch::new();
    scratch.train(&tuned(&scratch, &[], false, 6), "run").unwrap();
    let (from, _) =
        scratch.predict(Subject::From(scratch.path("run")), scratch.data("t.csv:text", false), "a.npy").unwrap();
    assert_eq!(from.len(), 4);
    // The classes are bad and good, in this order.
    assert!(from[1] > from[0] && from[2] > from[3], "{from:?}");
    // The file knows the column, too.
    let subject = Subject::Net(scratch.path("run/model.onnx"));
    let (file, _) = scratch.predict(subject, scratch.data("t.csv", false), "b.npy").unwrap();
    close(&from, &file, 0.0);
    let replayed = replay(&scratch.path("run"), &Context::new()).unwrap();
    assert!(replayed.is_same(), "{replayed:?}");
}

/// A run that stops after two epochs and goes on has the bits of one that did not stop.
#[test]
fn texts_are_shown_behind_their_explanations() {
    let scratch = Scratch::new();
    scratch.train(&tuned(&scratch, &["head*"], false, 3), "run").unwrap();
    let labels = Some(DataRef::File(scratch.text("many.csv:mood")));
    let train = DataSpec { labels, ..scratch.data("many.csv:text", false) };
    let test = vec![DataRef::File(scratch.text("t.csv:text"))];
    let surrogate = SurrogateSpec { penalty: vec![1.0], ..SurrogateSpec::default() };
    let kernels = vec!["normalised(ck)".to_owned()];
    let job = ExplainJob { kernels, surrogate, ..ExplainJob::new(scratch.path("run/model.onnx"), train, test) };
    let destination = Destination { path: Some(scratch.path("why")), ..Destination::default() };
    let (context, inputs) = (Context::new(), Inputs::none());
    job.open(&destination, Opening { inputs: &inputs, context: &context }).unwrap().run(&context).unwrap();
    let drawn = std::fs::read_to_string(scratch.path("why/examples.svg")).unwrap();
    // The test samples in full, and training samples beside them.
    assert!(drawn.contains("– the cat sat on the mat</title>") && drawn.contains("– a dog</title>"), "{drawn}");
    assert!(["– the cat sat</title>", "– a dog on mat</title>"].iter().any(|text| drawn.contains(text)), "{drawn}");
}

#[test]
fn tuning_is_resumed() {
    let scratch = Scratch::new();
    scratch.train(&tuned(&scratch, &[], false, 4), "whole").unwrap();
    scratch.train(&tuned(&scratch, &[], false, 2), "part").unwrap();
    let destination = Destination { path: Some(scratch.path("part")), resume: true, ..Destination::default() };
    let (context, inputs) = (Context::new(), Inputs::none());
    let job = tuned(&scratch, &[], false, 4);
    job.open(&destination, Opening { inputs: &inputs, context: &context }).unwrap().run(&context).unwrap();
    let [whole, part] = ["whole", "part"].map(|name| std::fs::read(scratch.path(name).join("model.onnx")).unwrap());
    assert!(whole == part, "the files differ");
}

#[test]
fn probes_and_random_features_keep_the_body() {
    use mercer::net::Network;
    let scratch = Scratch::new();
    scratch.train(&tuned(&scratch, &["head*"], false, 2), "probe").unwrap();
    scratch.train(&tuned(&scratch, &["head"], true, 2), "random").unwrap();
    let numbers = |path: PathBuf, name: &str| -> Vec<f32> {
        let network = Network::from_onnx(path).unwrap();
        let found = network.parameters().iter().find(|own| own.name() == name).unwrap();
        found.values().to_vec()
    };
    let name = "dense.weight";
    let given = numbers(fixture("embedder.onnx"), name);
    assert_eq!(numbers(scratch.path("probe/model.onnx"), name), given);
    let redrawn = numbers(scratch.path("random/model.onnx"), name);
    let deviation = (redrawn.iter().map(|x| x * x).sum::<f32>() / redrawn.len() as f32).sqrt();
    assert!((0.012..0.028).contains(&deviation), "{deviation}");
    let error = scratch.train(&tuned(&scratch, &["tail*"], false, 2), "none").unwrap_err();
    assert!(error.message().contains("‹params› tail*"), "{error}");
}

#[test]
fn a_folder_of_images_trains_and_predicts() {
    let scratch = Scratch::new();
    let arch = "[cnn]\ninputs = [3, 8, 8]\noutputs = 2\nlayers = [{ conv = { channels = 4, kernel = 3 } }]\n";
    std::fs::write(scratch.path("cnn.toml"), arch).unwrap();
    let decoding = DecodingSpec { resize: Some([8, 8]), ..DecodingSpec::default() };
    let data = DataSpec { data: vec![folder_of_images().into()], decoding, ..DataSpec::default() };
    let data = data.labelled_by_folders();
    assert_eq!(data.labels, Some(folder_of_images().into()));
    let training = TrainingSpec { epochs: NonZeroUsize::new(2).unwrap(), ..TrainingSpec::default() };
    let job = TrainJob { training, ..TrainJob::new(scratch.path("cnn.toml"), data.clone()) };
    scratch.train(&job, "run").unwrap();
    // New images get the size of the training's.
    let plain = DataSpec { data: data.data.clone(), ..DataSpec::default() };
    let (found, _) = scratch.predict(Subject::From(scratch.path("run")), plain, "a.npy").unwrap();
    let (same, _) = scratch.predict(Subject::From(scratch.path("run")), data.clone(), "b.npy").unwrap();
    assert_eq!((found.len(), &found), (18, &same));
    // Without the size, the network does not take them.
    let error = TrainJob::new(scratch.path("cnn.toml"), DataSpec { decoding: DecodingSpec::default(), ..data });
    let error = scratch.train(&error, "other").unwrap_err();
    assert!(error.message().contains("[3, 24, 20]"), "{error}");
}
