//! Which kernel gives the most faithful surrogate of a ResNet.

use super::cifar::{network, part};
use crate::experiment::{Experiment, Needs};
use crate::options::Options;
use crate::report::{Cell, Format, Report, Table};
use crate::work::{Done, Work};
use crate::{Fallible, row};
use mercer::job::ExplainJob;
use mercer::job::explain::{SurrogateMachine, SurrogateSpec};
use mercer::spec::DataSpec;
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "surrogate-kernels",
    group: "Explanations",
    title: "Kernels of a surrogate",
    paper: "Engel et al. 2023, arXiv 2305.14585",
    claim: "The trace-NTK gives surrogates with the highest correlation to the network (table 2), and τ of at least 0.7 (table 1).",
    published: "a ResNet-18 of 93.07 % and all 50,000 training images; τ by the softmax of the scores at the correct class.",
    setting: "A ResNet-20 of 91.7 %, because the report's networks are not public; the first 10,000 training and the first 2,000 test \
        images of CIFAR-10. The trace-NTK is exact. Sketches are sparse (SJLT), 4096 features per output for the trace and 10,240 for \
        the sum of the outputs; the report has 10,240 each. The conjugate kernel has no bias feature and the embedding is of the three \
        stages of the network; both are normalised, as in the authors' code. `sgd` is the report's machine (one class against the \
        others, penalty 1e-4), `glm` a multinomial model whose penalty is chosen by cross-validation on training samples. `--nets DIR` \
        adds a ResNet-32 and a ResNet-56 from that folder, sketched, and exact for fewer images.",
    cost: 4500,
    needs: &[Needs::Cifar10],
    options: &["samples", "test", "sketch", "nets", "exact", "only"],
    threads: 0,
    run,
};

/// A kernel, what it is called in the report, and the report's τ and TAD.
struct Row {
    name: &'static str,
    kernel: String,
    published: [f64; 2],
}

fn rows(sketch: usize) -> Vec<Row> {
    let row = |name, kernel: &str, published| Row { name, kernel: kernel.to_owned(), published };
    let stages = r#"["/layer1/layer1.2/Relu_1", "/layer2/layer2.2/Relu_1", "/layer3/layer3.2/Relu_1"]"#;
    vec![
        row("trNTK", "normalised(trace)", [0.776, -0.0030]),
        row("trNTK⁰", "trace", [0.658, -0.0052]),
        row("proj-trNTK", &format!("normalised(trace(sketch=sjlt:{sketch}))"), [0.737, -0.0020]),
        row("proj-pNTK", &format!("normalised(pseudo(sketch=sjlt:{}))", 5 * sketch / 2), [0.407, -0.0030]),
        row("Em", &format!("normalised(embedding(nodes={stages}))"), [0.768, -0.0032]),
        row("CK", "normalised(ck(bias=false))", [0.630, -0.0020]),
    ]
}

/// The larger networks, and the nodes of their names.
const LARGER: [(&str, &str); 2] = [("ResNet-32", "cifar10_resnet32.onnx"), ("ResNet-56", "cifar10_resnet56.onnx")];

/// The machine of the report, and ours.
const MACHINES: [SurrogateMachine; 2] = [SurrogateMachine::Sgd, SurrogateMachine::Glm];

fn run(options: &Options) -> Fallible<Report> {
    let work = Work::new(options)?;
    let (samples, test) = (options.number("samples", 10_000, 60)?, options.number("test", 2000, 40)?);
    let sketch = options.number("sketch", 4096, 64)?;
    let exact = options.number("exact", 2000, 60)?;
    let folder = options.set(Needs::Cifar10)?;
    let network = network();
    let held_out = part(&work, &folder, false, 0..test)?;
    let train = part(&work, &folder, true, 0..samples)?;
    let mut table = table("kernel");
    let mut found = Vec::new();
    for row in rows(sketch).into_iter().filter(|row| options.wants(row.name)) {
        let name = row.name.replace('⁰', "-unnormalised").to_lowercase();
        let done = explain(&work, &name, (&network, &row.kernel), (&train, &held_out))?;
        let published = [Some(row.published[0]), Some(row.published[1])];
        found.push((row.name, push(&mut table, row.name, &done, published)?));
    }
    let mut tables = vec![table];
    if let Some(nets) = options.path("nets") {
        let mut larger = self::table("network, kernel");
        let few = part(&work, &folder, true, 0..exact)?;
        for (name, file) in LARGER.into_iter().filter(|(name, _)| options.wants(name)) {
            let sketched = format!("normalised(trace(sketch=sjlt:{sketch}))");
            for (kernel, data, size) in [(&sketched[..], &train, samples), ("normalised(trace)", &few, exact)] {
                let own = format!("{}-{size}", name.to_lowercase());
                let done = explain(&work, &own, (&nets.join(file), kernel), (data, &held_out))?;
                push(&mut larger, &format!("{name}, {kernel}, {size} images"), &done, [None; 2])?;
            }
        }
        tables.push(larger);
    }
    let notes = order(&found);
    let holds = found.iter().find(|(name, _)| *name == "trNTK").map(|(_, taus)| taus[0] >= 0.7);
    Ok(Report { tables, notes, holds, earlier: work.earlier(), ..Report::default() })
}

fn table(first: &str) -> Table {
    let mut table =
        Table::new(if first == "kernel" { "The ResNet-20:" } else { "Larger networks:" }).column(first, Format::Plain);
    for machine in MACHINES {
        table = table
            .column(format!("τ softmax, {machine}"), Format::Fixed(3))
            .column(format!("τ, {machine}"), Format::Fixed(3))
            .column(format!("TAD, {machine}"), Format::SignedPercent(2));
    }
    table.published("τ", Format::Fixed(3)).published("TAD", Format::SignedPercent(2))
}

fn explain(
    work: &Work,
    name: &str,
    (network, kernel): (&Path, &str),
    (train, test): (&DataSpec, &DataSpec),
) -> Fallible<Done> {
    let surrogate = SurrogateSpec { machine: MACHINES[0], ..SurrogateSpec::default() };
    let job = ExplainJob::new(network, train.clone(), test.data.clone());
    work.run(
        name,
        &ExplainJob {
            kernels: vec![kernel.to_owned()],
            surrogate,
            other_machines: MACHINES[1..].to_vec(),
            cache: Some(work.kernels()),
            test_labels: test.labels.clone(),
            ..job
        },
    )
}

/// Adds a row; τ by the softmax and by the log-odds, of both machines.
fn push(table: &mut Table, name: &str, done: &Done, published: [Option<f64>; 2]) -> Fallible<[f64; 4]> {
    let mut cells = row![name];
    let mut taus = [0.0; 4];
    for (at, machine) in MACHINES.into_iter().enumerate() {
        let all = done.found["surrogates"].as_array().ok_or("there are no surrogates")?;
        let own = all.iter().position(|own| own["machine"] == machine.to_string());
        let own = own.ok_or_else(|| format!("there is no {machine}"))?;
        let number = |key: &str| done.number(&format!("/surrogates/{own}/faithfulness/{key}"));
        (taus[at], taus[at + 2]) = (number("softmax/tau")?, number("tau")?);
        cells.extend([taus[at], taus[at + 2], number("tad")?].map(Cell::from));
    }
    cells.extend(published.map(Cell::from));
    table.push(cells);
    Ok(taus)
}

/// The order of the kernels by each τ.
fn order(found: &[(&str, [f64; 4])]) -> Vec<String> {
    let ways = ["sgd, softmax", "glm, softmax", "sgd, log-odds", "glm, log-odds"];
    let one = |(at, way): (usize, &str)| {
        let mut sorted: Vec<&(&str, [f64; 4])> = found.iter().collect();
        sorted.sort_by(|a, b| b.1[at].total_cmp(&a.1[at]));
        let names: Vec<String> = sorted.iter().map(|(name, taus)| format!("{name} {:.3}", taus[at])).collect();
        format!("{way}: {}", names.join(", "))
    };
    let orders: Vec<String> = ways.into_iter().enumerate().map(one).collect();
    vec![format!("Most faithful first. {}.", orders.join("; "))]
}
