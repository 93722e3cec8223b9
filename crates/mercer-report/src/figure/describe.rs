//! What a figure shows, in words, for readers who cannot see it.

use super::panel::{Kind, Panel};
use super::svg::grouped;
use super::{Figure, strips};

/// The most series that are named.
const NAMED: usize = 12;

impl Figure {
    /// Says in words what the figure shows, instead of the description that is made from its panels.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The title for screen readers, which is never empty.
    pub(super) fn spoken_title(&self) -> String {
        if !self.title.is_empty() {
            return self.title.clone();
        }
        let titles: Vec<&str> =
            self.panels.iter().map(|panel| panel.title.as_str()).filter(|t| !t.is_empty()).collect();
        if titles.is_empty() { "Figure".to_owned() } else { titles.join("; ") }
    }

    /// The description: as given, or a sentence per panel.
    pub(super) fn description(&self) -> String {
        let made = || self.panels.iter().map(|panel| format!("{}.", sentence(panel))).collect::<Vec<_>>().join(" ");
        let mut text = self.description.clone().unwrap_or_else(made);
        let skipped = self.skipped();
        if skipped > 0 {
            text.push_str(&format!(" {} values cannot be drawn.", grouped(skipped)));
        }
        text.trim().to_owned()
    }
}

fn sentence(panel: &Panel) -> String {
    let content = match &panel.kind {
        Kind::Heat(heat) => format!("a matrix of {} rows and {} columns in colours", heat.n_rows(), heat.columns),
        Kind::Strips(rows) => strips::describe(rows),
        Kind::Plot => plot(panel),
    };
    let title = if panel.title.is_empty() { "Panel" } else { &panel.title };
    format!("{title}: {content}")
}

fn plot(panel: &Panel) -> String {
    let mut text = match (panel.x.label.as_str(), panel.y.label.as_str()) {
        ("", "") => "a plot".to_owned(),
        ("", y) => y.to_owned(),
        (x, "") => format!("over {x}"),
        (x, y) => format!("{y} over {x}"),
    };
    let names: Vec<&str> = panel.series.iter().map(|series| series.name.as_str()).filter(|n| !n.is_empty()).collect();
    if !names.is_empty() {
        let more = if names.len() > NAMED { " and more" } else { "" };
        text = format!("{text}, for {}{more}", names[..names.len().min(NAMED)].join(", "));
    }
    panel.notes().iter().fold(text, |text, note| format!("{text}; {note}"))
}
