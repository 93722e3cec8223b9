//! What it costs to attribute predictions to all training images of CIFAR-10.

use super::cifar::{network, part};
use crate::experiment::{Experiment, Needs};
use crate::options::Options;
use crate::report::{Cell, Format, Report, Table};
use crate::work::Work;
use crate::{Fallible, row};
use mercer::job::ExplainJob;
use mercer::job::explain::SurrogateSpec;
use mercer::learn::surrogate::PenaltyNorm;
use mercer::spec::DataSpec;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "attribution-index",
    group: "Explanations",
    title: "Attribution to 50,000 training images",
    paper: "",
    claim: "1,000 test images are attributed to all training images of CIFAR-10 within 15 minutes and 4 GiB on two cores, surrogate \
        included; 100 new images take less than 5 s with the saved index, from a cold file cache.",
    published: "",
    setting: "The ResNet-20 and the sketch of its normalised trace-NTK, SJLT, 4096 features in all; a multinomial surrogate, penalised \
        in the norm of the function, the penalty chosen by cross-validation. For comparison 4096 features per output and 10,000 \
        images. The index is the folder of the explanation. Before the new images, all pages are dropped from the file cache where \
        the system allows it.",
    cost: 1500,
    needs: &[Needs::Cifar10],
    options: &["samples", "fewer", "test", "new", "sketch"],
    threads: 0,
    run,
};

const MEMORY: usize = 4 << 30;

/// Seconds that the claim allows.
const LIMITS: [f64; 2] = [900.0, 5.0];

fn run(options: &Options) -> Fallible<Report> {
    let work = Work::new(options)?;
    let (samples, fewer) = (options.number("samples", 50_000, 300)?, options.number("fewer", 10_000, 200)?);
    let (test, new) = (options.number("test", 1000, 40)?, options.number("new", 100, 10)?);
    let sketch = options.number("sketch", 4096, 64)?;
    let folder = options.set(Needs::Cifar10)?;
    let mut table = Table::new("")
        .column("features", Format::Plain)
        .column("training images", Format::Plain)
        .column("seconds", Format::Fixed(0))
        .column("features, s", Format::Fixed(0))
        .column("fit, s", Format::Fixed(0))
        .column("attribution, s", Format::Fixed(0))
        .column("peak GiB", Format::Fixed(2))
        .column("index, GB", Format::Fixed(2))
        .column("new images, s", Format::Fixed(2))
        .column("τ", Format::Fixed(3))
        .column("agreement", Format::Percent(1));
    let mut holds = true;
    let mut notes = Vec::new();
    for (label, text, count) in [("in all", ", total=true", samples), ("per output", "", fewer)]
        .map(|(label, total, count)| (label, format!("normalised(trace(sketch=sjlt:{sketch}{total}))"), count))
    {
        let train = part(&work, &folder, true, 0..count)?;
        let queries = part(&work, &folder, false, 0..test)?;
        let latest = part(&work, &folder, false, test..test + new)?;
        let memory = (label == "in all").then_some(MEMORY);
        let done = work.run_within(&format!("{count}-images"), &explain(&text, &train, &queries), memory)?;
        let dropped = drop_file_cache();
        let again = ExplainJob { test_labels: latest.labels.clone(), ..ExplainJob::again(&done.folder, latest.data) };
        let again = work.fresh(&format!("{count}-images-new"), &again)?;
        if !dropped {
            notes.push("The file cache could not be emptied: the times of new images are from a warm one.".to_owned());
        }
        if label == "in all" {
            holds = done.seconds <= LIMITS[0] && again.seconds <= LIMITS[1] && done.peak() <= MEMORY as f64;
        }
        let phase = |name: &str| done.phase(name);
        let number = |name: &str| done.number(&format!("/surrogates/0/faithfulness/{name}"));
        let mut cells = row![format!("{sketch} {label}"), count, done.seconds];
        cells.extend([phase("kernel"), phase("fitting"), phase("attribution")].map(Cell::from));
        cells.extend([done.peak() / (1 << 30) as f64, done.bytes()? as f64 / 1e9, again.seconds].map(Cell::from));
        cells.extend([number("tau")?, number("agreement")?].map(Cell::from));
        table.push(cells);
    }
    notes.dedup();
    Ok(Report { tables: vec![table], notes, holds: Some(holds), earlier: work.earlier(), ..Report::default() })
}

fn explain(kernel: &str, train: &DataSpec, test: &DataSpec) -> ExplainJob {
    let surrogate = SurrogateSpec { norm: PenaltyNorm::Function, ..SurrogateSpec::default() };
    let job = ExplainJob::new(network(), train.clone(), test.data.clone());
    ExplainJob { kernels: vec![kernel.to_owned()], surrogate, test_labels: test.labels.clone(), ..job }
}

/// Whether the system let us forget all file contents.
fn drop_file_cache() -> bool {
    std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}
