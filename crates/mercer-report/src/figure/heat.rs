//! Heat maps: a matrix as colours, with a colour bar, names of rows and columns or of groups of them.

use super::axis::{Axis, Ruler};
use super::draw::{LABEL, SMALL, heading};
use super::palette::{MISSING, diverging, sequential};
use super::panel::{Kind, Panel};
use super::svg::{Anchor, FRAME, OUTLINE, Svg, number, shortened, width};
use super::{cells, data};

/// A matrix, and how it is divided into groups.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Heat {
    pub(super) columns: usize,
    pub(super) values: Vec<f64>,
    /// Names of groups of consecutive rows, with their sizes.
    rows: Vec<(String, usize)>,
    /// The same for columns.
    across: Vec<(String, usize)>,
    /// Colours on both sides of zero.
    signed: bool,
    /// Every row and column has a name, and numbers are written if they fit.
    named: bool,
}

impl Panel {
    /// A matrix, row by row, in colours from its smallest to its largest number, with a colour bar. Rows and columns are ticked
    /// by consecutive groups, such as classes, given with their sizes; without any they are not ticked. Numbers that are not
    /// finite are grey and count as [skipped](super::Figure::skipped); numbers beyond full rows are left out. A large matrix
    /// is an image, with means of neighbours beyond 512 rows or columns.
    pub fn heat_map<N: Into<String>>(
        title: impl Into<String>,
        columns: usize,
        values: impl IntoIterator<Item = f64>,
        groups: impl IntoIterator<Item = (N, usize)>,
    ) -> Self {
        let groups: Vec<(String, usize)> = groups.into_iter().map(|(name, size)| (name.into(), size)).collect();
        matrix(title.into(), columns, values.into_iter().collect(), (groups.clone(), groups), false)
    }

    /// A matrix, row by row, with a name for every row and column, such as means by class and output. If there are at
    /// most 12 of each, the numbers are written into the cells that have room. The labels of the axes are those given to
    /// [`x`](Self::x) and [`y`](Self::y). Otherwise like [`heat_map`](Self::heat_map).
    pub fn named_heat_map<R: Into<String>, C: Into<String>>(
        title: impl Into<String>,
        rows: impl IntoIterator<Item = R>,
        columns: impl IntoIterator<Item = C>,
        values: impl IntoIterator<Item = f64>,
    ) -> Self {
        let rows: Vec<(String, usize)> = rows.into_iter().map(|name| (name.into(), 1)).collect();
        let columns: Vec<(String, usize)> = columns.into_iter().map(|name| (name.into(), 1)).collect();
        matrix(title.into(), columns.len(), values.into_iter().collect(), (rows, columns), true)
    }

    /// Draws a heat map in two colours on both sides of zero, over a range of the same length on both. Other panels do
    /// not change.
    #[must_use]
    pub fn signed(mut self) -> Self {
        if let Kind::Heat(heat) = &mut self.kind {
            heat.signed = true;
        }
        self
    }
}

type Groups = Vec<(String, usize)>;

fn matrix(title: String, columns: usize, mut values: Vec<f64>, (rows, across): (Groups, Groups), named: bool) -> Panel {
    let columns = columns.max(1);
    values.truncate(values.len() / columns * columns);
    let left_out = values.iter().filter(|value| !drawable(**value)).count();
    let heat = Heat { columns, values, rows, across, signed: false, named };
    Panel { kind: Kind::Heat(heat), left_out, ..Panel::new(title) }
}

pub(super) fn drawable(value: f64) -> bool {
    Axis::linear("").drawable(value)
}

impl Heat {
    pub(super) fn n_rows(&self) -> usize {
        self.values.len() / self.columns
    }

    /// The range of the colours.
    fn ruler(&self) -> Ruler {
        let axis = Axis::linear("");
        if !self.signed {
            return axis.tight(self.values.iter().copied());
        }
        let most = self.values.iter().filter(|value| drawable(**value)).fold(0.0, |most: f64, x| most.max(x.abs()));
        let most = if most > 1e-290 { most } else { 1.0 };
        axis.range(-most, most).fit(std::iter::empty(), false)
    }

    /// The colour of a fraction of the range.
    fn ramp(&self) -> fn(f64) -> [u8; 3] {
        if self.signed { diverging } else { sequential }
    }

    /// The colour of a number.
    pub(super) fn shade(&self, ruler: &Ruler, value: f64) -> [u8; 3] {
        if drawable(value) { self.ramp()(ruler.place(value)) } else { MISSING }
    }

    /// The names of groups of rows and of columns, with their sizes.
    pub(super) fn groups(&self) -> [&[(String, usize)]; 2] {
        [&self.rows, &self.across]
    }

    /// Whether numbers are written into the cells.
    pub(super) fn written(&self) -> bool {
        self.named && self.columns <= 12 && self.n_rows() <= 12
    }
}

pub(super) const BAR: f64 = 12.0;

pub(super) fn draw(svg: &mut Svg, panel: &Panel, heat: &Heat, corner: (f64, f64), size: (f64, f64)) {
    let ruler = heat.ruler();
    let longest = |names: &mut dyn Iterator<Item = &str>| names.map(|name| width(name, SMALL)).fold(0.0, f64::max);
    let label = |text: &str| if text.is_empty() { 0.0 } else { 18.0 };
    let names = longest(&mut heat.rows.iter().map(|group| group.0.as_str())).min(0.35 * size.0);
    let left = 12.0 + names + label(&panel.y.label);
    let right = 12.0 + BAR + 8.0 + longest(&mut ruler.ticks.iter().map(|tick| tick.1.as_str())) + 8.0;
    let top = if panel.title.is_empty() { 8.0 } else { 26.0 };
    let inner = (size.0 - left - right).max(20.0);
    let below = longest(&mut heat.across.iter().map(|group| group.0.as_str()));
    let slanted = heat.named && below + 4.0 > inner / heat.columns as f64;
    let depth = match (heat.across.is_empty(), slanted) {
        (true, _) => 8.0,
        (false, true) => (14.0 + 0.6 * below).min(0.35 * size.1),
        (false, false) => 20.0,
    };
    let high = (size.1 - top - depth - label(&panel.x.label)).max(20.0);
    let cell = (inner / heat.columns as f64, high / heat.n_rows().max(1) as f64);
    // Cells are squares, or nearly so where they hold numbers.
    let stretch = if heat.named { 2.5 } else { 1.0 };
    let cell = (cell.0.min(stretch * cell.1), cell.1.min(stretch.min(1.5) * cell.0));
    let (wide, high) = (cell.0 * heat.columns as f64, cell.1 * heat.n_rows() as f64);
    let (x0, y0) = (corner.0 + left + (inner - wide) / 2.0, corner.1 + top);
    heading(svg, &panel.title, x0 + wide / 2.0, corner.1, size.0);
    svg.keep(data::heat(panel, heat, (x0, y0), (wide, high)));
    cells::draw(svg, heat, &ruler, (x0, y0), cell);
    svg.rectangle((x0, y0), (x0 + wide, y0 + high), OUTLINE);
    let frame = Frame { corner: (x0, y0), size: (wide, high), cell };
    row_names(svg, heat, &frame, names);
    column_names(svg, heat, &frame, slanted.then_some(depth));
    let middle = (x0 + wide / 2.0, y0 + high + depth + 13.0);
    svg.text(middle, &shortened(&panel.x.label, LABEL, size.0), LABEL, Anchor::Middle, "");
    let (x, y) = (x0 - names - 18.0, y0 + high / 2.0);
    let turn = format!(" transform=\"rotate(-90 {} {})\"", number(x), number(y));
    svg.text((x, y), &shortened(&panel.y.label, LABEL, size.1), LABEL, Anchor::Middle, &turn);
    bar(svg, &ruler, heat.ramp(), (x0 + wide + 12.0, y0), high);
}

/// Where the matrix is.
struct Frame {
    corner: (f64, f64),
    size: (f64, f64),
    cell: (f64, f64),
}

/// The middle of each group, in cells.
fn middles(groups: &[(String, usize)]) -> impl Iterator<Item = (&str, f64)> {
    let mut start = 0.0;
    groups.iter().map(move |(name, count)| {
        let middle = start + *count as f64 / 2.0;
        start += *count as f64;
        (name.as_str(), middle)
    })
}

/// A tick in the middle of each group of rows, as many as have room.
fn row_names(svg: &mut Svg, heat: &Heat, frame: &Frame, room: f64) {
    let (x0, y0) = frame.corner;
    let mut last = f64::NEG_INFINITY;
    for (name, middle) in middles(&heat.rows) {
        let middle = middle * frame.cell.1;
        if middle <= frame.size.1 && middle - SMALL / 2.0 > last {
            svg.line((x0 - 3.0, y0 + middle), (x0, y0 + middle), FRAME);
            let name = shortened(name, SMALL, room + 0.1);
            svg.text((x0 - 6.0, y0 + middle + 3.7), &name, SMALL, Anchor::End, "");
            last = middle + SMALL / 2.0;
        }
    }
}

/// The same for columns; slanted if there is a depth.
fn column_names(svg: &mut Svg, heat: &Heat, frame: &Frame, slanted: Option<f64>) {
    let (x0, bottom) = (frame.corner.0, frame.corner.1 + frame.size.1);
    let mut last = f64::NEG_INFINITY;
    for (name, middle) in middles(&heat.across) {
        let middle = middle * frame.cell.0;
        let half = if slanted.is_some() { 6.0 } else { width(name, SMALL) / 2.0 };
        if middle > frame.size.0 || middle - half <= last {
            continue;
        }
        let x = x0 + middle;
        svg.line((x, bottom), (x, bottom + 3.0), FRAME);
        if let Some(depth) = slanted {
            let turn = format!(" transform=\"rotate(-35 {} {})\"", number(x + 3.0), number(bottom + 13.0));
            let name = shortened(name, SMALL, (depth - 12.0) / 0.57);
            svg.text((x + 3.0, bottom + 13.0), &name, SMALL, Anchor::End, &turn);
        } else {
            svg.text((x, bottom + 15.0), name, SMALL, Anchor::Middle, "");
        }
        last = middle + half + 3.0;
    }
}

/// What the colours mean.
pub(super) fn bar(svg: &mut Svg, ruler: &Ruler, ramp: fn(f64) -> [u8; 3], (x, y): (f64, f64), high: f64) {
    const STEPS: usize = 32;
    let step = high / STEPS as f64;
    svg.put("<g shape-rendering=\"crispEdges\">");
    for at in 0..STEPS {
        let from = y + at as f64 * step;
        let fill = super::palette::hex(ramp(1.0 - (at as f64 + 0.5) / STEPS as f64));
        svg.rectangle((x, from), (x + BAR, from + step), &format!("fill=\"{fill}\""));
    }
    svg.put("</g>");
    svg.rectangle((x, y), (x + BAR, y + high), OUTLINE);
    let mut last = f64::INFINITY;
    for (tick, name) in &ruler.ticks {
        let at = y + (1.0 - ruler.fraction(*tick)) * high;
        // A low matrix has room for few numbers.
        if at > last - SMALL {
            continue;
        }
        svg.line((x + BAR, at), (x + BAR + 3.0, at), FRAME);
        svg.text((x + BAR + 6.0, at + 3.7), name, SMALL, Anchor::Start, "");
        last = at;
    }
}
