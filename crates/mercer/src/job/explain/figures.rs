//! Figures of an explanation.

use super::attribute::Attributed;
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::surrogate::Ids;
use crate::spec::{DataSpec, Samples};
use mercer_lens::{Example, Line, Summary, log_odds};
use mercer_report::figure::{Axis, BoxSummary, Cell, Figure, Panel, Picture, Series, Strip};
use ndarray::{Array2, Axis as ArrayAxis};
use std::collections::BTreeMap;

/// Test samples that are drawn, the first if the user names none.
pub(super) const DRAWN: usize = 6;

/// Training samples that are drawn beside each.
const BESIDE: usize = 6;

/// Heat maps with more classes or groups than this cannot be read.
const READABLE: usize = 60;

/// What is drawn.
pub(super) struct Drawing<'a> {
    pub(super) folder: &'a ResultFolder,
    pub(super) classes: &'a [String],
    pub(super) groups: &'a [String],
    /// The group of every training sample.
    pub(super) group_of: &'a [usize],
    pub(super) ids: &'a Ids,
    pub(super) train: &'a Samples,
    pub(super) labels: &'a [usize],
    pub(super) test: &'a Samples,
    /// The test samples that are drawn.
    pub(super) rows: &'a [usize],
    pub(super) predicted: &'a [usize],
    pub(super) compared: &'a [usize],
}

impl Drawing<'_> {
    /// Network against surrogate, as in Figure 1 of the report.
    pub(super) fn faithfulness(
        &self,
        network: &Array2<f64>,
        surrogate: &Array2<f64>,
        line: Option<Line>,
    ) -> Result<(), Error> {
        let own = log_odds(network.view(), self.compared)?;
        let other = log_odds(surrogate.view(), self.compared)?;
        let points: Vec<(f64, f64)> = other.iter().copied().zip(own).collect();
        let (x, y) = (Axis::linear("log-odds of the surrogate"), Axis::linear("log-odds of the network"));
        let mut panel = Panel::scatter("", x, y, [("test samples", points)]).diagonal();
        if let Some(line) = line {
            let ends =
                other.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)));
            panel = panel.series(Series::line("best line", [ends.0, ends.1].map(|x| (x, line.at(x)))));
        }
        self.write("faithfulness.svg", Figure::new("").panel(panel))
    }

    /// Mean attributions per class and group, as in Figure 2B.
    pub(super) fn means(&self, means: &[Option<Vec<f64>>]) -> Result<(), Error> {
        if self.classes.len() > READABLE || self.groups.len() > READABLE {
            return Ok(());
        }
        let values = means.iter().flat_map(|own| match own {
            Some(own) => own.clone(),
            None => vec![f64::NAN; self.groups.len()],
        });
        let panel = Panel::named_heat_map("", self.classes.iter().cloned(), self.groups.iter().cloned(), values)
            .x(Axis::linear("training samples of"))
            .y(Axis::linear("score of the predicted class"))
            .signed();
        self.write("means.svg", Figure::new("").panel(panel))
    }

    fn summary<'b>(&self, found: &'b Attributed, row: usize) -> Option<&'b Summary> {
        let own = found.summaries.get(row)?.iter();
        own.clone().find(|(class, _)| *class == self.predicted[row]).map(|(_, summary)| summary)
    }

    /// The distribution of the attributions of the predicted class, as in Figure 2C.
    pub(super) fn boxes(&self, found: &Attributed) -> Result<(), Error> {
        if self.groups.len() > READABLE {
            return Ok(());
        }
        let mut figure = Figure::new("");
        for &row in self.rows {
            let Some((_, kept)) = found.kept.iter().find(|(own, _)| *own == row) else { continue };
            let title = format!("test sample {row}: {}", self.classes[self.predicted[row]]);
            let mut values = vec![Vec::new(); self.groups.len()];
            let own = kept.column(self.predicted[row]);
            own.iter().zip(self.group_of).for_each(|(&value, &group)| values[group].push(value));
            let boxes = values.iter().map(|values| BoxSummary::of(values));
            let y = Axis::linear("attribution");
            figure = figure.panel(Panel::boxes(title, self.groups.iter().cloned(), y, [("", boxes)]));
        }
        self.write("boxes.svg", figure)
    }

    /// The training samples that support the predicted class most, beside the test sample; only for images and texts.
    pub(super) fn examples(&self, found: &Attributed) -> Result<(), Error> {
        let shown: Vec<(usize, &Summary)> =
            self.rows.iter().filter_map(|&row| Some((row, self.summary(found, row)?))).collect();
        let beside = |summary: &Summary| summary.supporting.iter().take(BESIDE).copied().collect::<Vec<Example>>();
        let behind: Vec<usize> = shown.iter().flat_map(|(_, own)| beside(own)).map(|example| example.train).collect();
        let Some([own, other]) = Look::of([(self.test, self.rows), (self.train, &behind[..])]) else { return Ok(()) };
        let mut strips = Vec::new();
        for (row, summary) in shown {
            let class = &self.classes[self.predicted[row]];
            let Some(first) = own.cell(self.test, row, class.clone())? else { return Ok(()) };
            let mut cells = vec![first];
            for Example { train, attribution, .. } in beside(summary) {
                let label = &self.classes[self.labels[train]];
                let caption = format!("{label} ({}) {attribution:+.3}", self.ids.name(train));
                let Some(cell) = other.cell(self.train, train, caption)? else { return Ok(()) };
                cells.push(cell);
            }
            strips.push(Strip::new(format!("test {row}"), cells));
        }
        self.write("examples.svg", Figure::new("").panel(Panel::strips("", strips)))
    }

    fn write(&self, name: &str, figure: Figure) -> Result<(), Error> {
        self.folder.file(name, figure.to_svg().as_bytes())
    }
}

/// How samples are shown.
enum Look {
    Pictures([usize; 3]),
    /// The texts of some rows.
    Texts(BTreeMap<usize, String>),
}

impl Look {
    /// Both sets as images, or these rows of both as texts.
    fn of(sets: [(&Samples, &[usize]); 2]) -> Option<[Self; 2]> {
        if let Some(shape) = image_shape(sets[0].0) {
            return Some([Self::Pictures(shape), Self::Pictures(shape)]);
        }
        let [own, other] = sets.map(|(samples, rows)| texts(samples, rows).map(Self::Texts));
        Some([own?, other?])
    }

    fn cell(&self, samples: &Samples, row: usize, caption: String) -> Result<Option<Cell>, Error> {
        Ok(match self {
            Self::Pictures(shape) => picture(samples, row, *shape)?.map(|picture| Cell::picture(picture, caption)),
            Self::Texts(texts) => texts.get(&row).map(|text| Cell::text(text.clone(), caption)),
        })
    }
}

/// The texts behind some samples, if these are texts of a table that is still there.
fn texts(samples: &Samples, rows: &[usize]) -> Option<BTreeMap<usize, String>> {
    let column = samples.texts(&DataSpec::default())?;
    column.some(&rows.iter().copied().collect(), usize::MAX).ok()
}

/// Channels, height and width, if a sample looks like an image.
fn image_shape(samples: &Samples) -> Option<[usize; 3]> {
    let [input] = &samples.inputs[..] else { return None };
    match *input.sample_shape() {
        [channels @ (1 | 3), height, width] if height > 1 && width > 1 => Some([channels, height, width]),
        [height, width] if height > 3 && width > 3 => Some([1, height, width]),
        _ => None,
    }
}

fn picture(samples: &Samples, row: usize, shape: [usize; 3]) -> Result<Option<Picture>, Error> {
    let values = samples.inputs[0].rows::<f64>(row..row + 1)?;
    let values = values.index_axis_move(ArrayAxis(0), 0);
    Ok(Picture::from_chw(values.iter().copied(), shape, None))
}
