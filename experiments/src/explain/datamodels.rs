//! Whether attributions predict retraining: the linear datamodelling score in the setting of dattri's benchmark.

use super::retrained::Retrained;
use crate::experiment::{Experiment, Needs};
use crate::images::Images;
use crate::options::Options;
use crate::record::home;
use crate::report::{Format, Report, Table};
use crate::work::{Done, Work};
use crate::{Fallible, row};
use mercer::data::random::stream;
use mercer::data::{Dataset, Source};
use mercer::job::explain::{ValidateSpec, Validation};
use mercer::job::train::{OptimiserName, TrainingSpec};
use mercer::job::{ExplainJob, TrainJob};
use mercer::spec::DataSpec;
use ndarray::Ix2;
use rand::seq::SliceRandom;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "datamodels",
    group: "Explanations",
    title: "Do attributions predict retraining?",
    paper: "Park et al. 2023, arXiv 2303.14186; the setting is that of dattri's benchmark (Deng et al. 2024, arXiv 2410.04555)",
    claim: "The best linear datamodelling score is at least 0.80 for logistic regression and above 0.45 for an MLP. These are our goals; \
        papers have other splits and networks.",
    published: "",
    setting: "The first 5000 training and 500 test images of MNIST, standardised. Logistic regression (SGD with a rate of 0.01, 20 epochs) \
        and an MLP 784-128-64-10 (the same rate, momentum 0.9, 50 epochs), in batches of 64, as in dattri 0.3.0; its dropout of 0.1 is left \
        out. 50 random halves, two networks each. dattri correlates with the loss, we with the log-odds ℓ of the correct class. The loss is \
        log(1 + exp(−ℓ)), so their ranks over the halves are the same but for the sign; with the mean of two networks that is nearly so. \
        The first fifth of the halves chooses damping, for dattri's methods as well, and is not scored. dattri gets the same networks, \
        data and halves; its TRAK ensembles have networks of ten other halves, as in its benchmark, and TracIn checkpoints of the training.",
    cost: 1800,
    needs: &[Needs::Mnist, Needs::Dattri],
    options: &["samples", "test", "halves", "only", "peers"],
    threads: 0,
    run,
};

/// A network with what its best method should reach.
struct Model {
    name: &'static str,
    arch: &'static str,
    epochs: usize,
    momentum: f64,
    goal: f64,
}

const MODELS: [Model; 2] = [
    Model {
        name: "logistic",
        arch: "[mlp]\ninputs = [1, 28, 28]\noutputs = 10\n",
        epochs: 20,
        momentum: 0.0,
        goal: 0.80,
    },
    Model {
        name: "mlp",
        arch: "[mlp]\ninputs = [1, 28, 28]\nwidths = [128, 64]\noutputs = 10\n",
        epochs: 50,
        momentum: 0.9,
        goal: 0.45,
    },
];

const RATE: f64 = 0.01;

/// Networks of the largest TRAK ensemble.
const ENSEMBLE: u64 = 10;

/// The data of a run.
struct Problem<'a> {
    work: &'a Work,
    options: &'a Options,
    train: Images,
    data: DataSpec,
    held_out: DataSpec,
}

fn run(options: &Options) -> Fallible<Report> {
    let (samples, n_test) = (options.number("samples", 5000, 200)?, options.number("test", 500, 30)?);
    let n_halves = options.number("halves", 50, 10)?;
    let (work, folder) = (Work::new(options)?, options.set(Needs::Mnist)?);
    let train = Images::idx(&folder, "train", 0..samples)?.standardised()?;
    let test = Images::idx(&folder, "t10k", 0..n_test)?.standardised()?;
    let (data, held_out) = (work.images("train", &train)?, work.images("test", &test)?);
    let problem = Problem { work: &work, options, train, data, held_out };
    let (mut report, mut holds) = (Report::default(), true);
    for model in MODELS.iter().filter(|model| options.wants(model.name)) {
        let (table, best) = problem.table(model, n_halves)?;
        report.tables.push(table);
        holds &= best >= model.goal;
    }
    report.holds = Some(holds);
    report.earlier = work.earlier();
    Ok(report)
}

impl Problem<'_> {
    fn training(&self, model: &Model, seed: u64) -> Fallible<TrainingSpec> {
        Ok(TrainingSpec {
            epochs: NonZeroUsize::new(model.epochs).ok_or("no epochs")?,
            batch: NonZeroUsize::new(64),
            optimiser: OptimiserName::Sgd,
            learning_rate: Some(RATE),
            momentum: Some(model.momentum),
            seed,
            ..TrainingSpec::default()
        })
    }

    /// The methods of a network, best first, and the best score of ours.
    fn table(&self, model: &Model, n_halves: usize) -> Fallible<(Table, f64)> {
        let arch = self.work.architecture(model.name, model.arch)?;
        let every = NonZeroUsize::new(model.epochs / 5);
        let training = TrainingSpec { checkpoint_every: every, ..self.training(model, self.options.seed)? };
        let job = TrainJob { training, ..TrainJob::new(&arch, self.data.clone()) };
        let trained = self.work.run(model.name, &job)?;
        let validate = ValidateSpec { kind: Validation::Lds, subsets: n_halves, fraction: 0.5, repeats: 2 };
        let job = ExplainJob {
            test_labels: self.held_out.labels.clone(),
            validate: Some(validate),
            seed: self.options.seed,
            ..ExplainJob::new(trained.model(), self.data.clone(), self.held_out.data.clone())
        };
        let explained = self.work.run(&format!("{}-why", model.name), &job)?;
        let mut table = Table::new(format!(
            "{}: {:.1} % of the test images are right. The noise of training allows at most {:.3}. Retraining and our methods took {:.0} s.",
            model.name,
            100.0 * explained.number("/network_accuracy")?,
            explained.number("/validation/ceiling")?,
            explained.seconds,
        ))
        .column("method", Format::Plain)
        .column("by", Format::Plain)
        .column("setting", Format::Plain)
        .column("LDS", Format::Fixed(3))
        .column("95 %", Format::Fixed(3))
        .column("significant", Format::Percent(0))
        .column("s", Format::Fixed(0));
        let ours = explained.found.pointer("/validation/methods").and_then(Value::as_array).ok_or("no methods")?;
        let mut rows = Vec::new();
        for found in ours {
            let interval = found["score"]["interval"].as_array().map_or(&[][..], Vec::as_slice);
            let interval: Vec<f64> = interval.iter().filter_map(Value::as_f64).collect();
            let setting = found["damping"].as_f64().map_or(String::new(), |damping| format!("damping {damping}"));
            let score = found["score"]["mean"].as_f64().ok_or("no score")?;
            let name = found["method"].as_str().unwrap_or_default();
            let significant = found["significant"].as_f64();
            rows.push((score, row![name, "Mercer", setting, score, interval, significant, None::<f64>]));
        }
        let best = rows.iter().map(|(score, _)| *score).fold(f64::NEG_INFINITY, f64::max);
        if let Some(python) = self.options.peers() {
            rows.extend(self.peers(python, model, (&trained, &explained))?);
        }
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
        rows.into_iter().for_each(|(_, row)| table.push(row));
        Ok((table, best))
    }

    /// Networks of other halves than those that are scored, by their weights.
    fn ensemble(&self, model: &Model) -> Fallible<Vec<String>> {
        let mut found = Vec::new();
        for member in 0..ENSEMBLE {
            let mut rows: Vec<usize> = (0..self.train.samples()).collect();
            rows.shuffle(&mut stream(self.options.seed, &format!("datamodels/half {member}")));
            rows.truncate(rows.len() / 2);
            let pixels = self.train.data[0].select::<f32>(&rows)?;
            let classes = rows.iter().map(|&row| self.train.classes[row]).collect();
            let half = Images { data: [Dataset::from_array("images", pixels.view())?], classes };
            let data = self.work.images(&format!("half-{member}"), &half)?;
            let training = self.training(model, self.options.seed + 1 + member)?;
            let job = TrainJob { training, ..TrainJob::new(self.work.architecture(model.name, model.arch)?, data) };
            let done = self.work.run(&format!("{}-half-{member}", model.name), &job)?;
            found.push(done.folder.join("weights.safetensors").display().to_string());
        }
        Ok(found)
    }

    /// dattri's methods on the same retrained networks.
    fn peers(
        &self,
        python: &Path,
        model: &Model,
        (trained, explained): (&Done, &Done),
    ) -> Fallible<Vec<(f64, Vec<crate::report::Cell>)>> {
        let retrained = Retrained::read(explained, self.options.seed)?;
        let checkpoints: Vec<String> = (1..=5)
            .map(|part| format!("epoch-{:05}.safetensors", part * (model.epochs / 5)))
            .map(|name| trained.folder.join(name).display().to_string())
            .collect();
        let file = |data: &DataSpec| data.data[0].to_string();
        let labels = |data: &DataSpec| data.labels.as_ref().map(ToString::to_string);
        let plan = json!({
            "x": file(&self.data), "y": labels(&self.data), "t": file(&self.held_out), "l": labels(&self.held_out),
            "weights": trained.folder.join("weights.safetensors"), "checkpoints": checkpoints,
            "halves": self.ensemble(model)?, "rate": RATE,
        });
        let out = explained.folder.with_extension("dattri");
        std::fs::create_dir_all(&out)?;
        let (asked, listed) = (out.join("plan.json"), out.join("scores.json"));
        let plan = serde_json::to_string_pretty(&plan)?;
        if !listed.exists() || std::fs::read_to_string(&asked)? != plan {
            std::fs::write(&asked, &plan)?;
            let script = home().join("../xtask/src/scripts/datamodels.py");
            let mut command = Command::new(python);
            command.env("TQDM_DISABLE", "1").arg(script).arg(&asked).arg(&out);
            let status = command.status()?;
            if !status.success() {
                return Err(format!("dattri's scores: {status}").into());
            }
        }
        let listed: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&listed)?)?;
        let mut rows = Vec::new();
        for group in listed.chunk_by(|a, b| a["method"] == b["method"]) {
            let read = |own: &Value| -> Fallible<_> {
                let path = out.join(own["file"].as_str().unwrap_or_default());
                Ok(Source::new(path, None).open()?.read::<f64>()?.into_dimensionality::<Ix2>()?)
            };
            let candidates = group.iter().map(read).collect::<Fallible<Vec<_>>>()?;
            let (chosen, found) = retrained.score(&candidates)?;
            let setting = match &group[chosen]["setting"] {
                Value::String(text) => text.clone(),
                damping => format!("damping {damping}"),
            };
            let score = found.score.ok_or("no score")?;
            let interval = score.interval.map_or(Vec::new(), |interval| interval.to_vec());
            let name = group[chosen]["method"].as_str().unwrap_or_default();
            let seconds = group[chosen]["seconds"].as_f64();
            let by = "dattri, measured here";
            rows.push((score.mean, row![name, by, setting, score.mean, interval, found.significant, seconds]));
        }
        Ok(rows)
    }
}
