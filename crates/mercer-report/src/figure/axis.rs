//! Axes: mapping numbers to positions between 0 and 1, and ticks at round numbers.

/// An axis: its label and scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub(super) label: String,
    pub(super) scale: Scale,
    pub(super) range: Option<(f64, f64)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scale {
    Linear,
    /// Linear, with ticks at whole numbers alone.
    Whole,
    Log,
    /// Names for the numbers 0, 1, 2, ….
    Names(Vec<String>),
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear, range: None }
    }

    /// A linear axis whose ticks are whole numbers, for counts.
    pub fn whole(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Whole, range: None }
    }

    /// A logarithmic axis. Only positive numbers can be drawn.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Log, range: None }
    }

    /// Named positions 0, 1, 2, …, for bars.
    pub fn names<S: Into<String>>(label: impl Into<String>, names: impl IntoIterator<Item = S>) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let range = Some((-0.5, names.len().max(1) as f64 - 0.5));
        Self { label: label.into(), scale: Scale::Names(names), range }
    }

    /// Shows this range instead of that of the data, and clips what lies outside. A range that the axis cannot show is
    /// ignored.
    #[must_use]
    pub fn range(mut self, from: f64, to: f64) -> Self {
        if self.drawable(from) && self.drawable(to) && from < to {
            self.range = Some((from, to));
        }
        self
    }

    /// Whether a number can be drawn on this axis.
    pub(super) fn drawable(&self, x: f64) -> bool {
        x.abs() <= 1e300 && (self.scale != Scale::Log || x >= 1e-300)
    }

    /// The axis as drawn, for this data; `from_zero` if bars stand on it.
    pub(super) fn fit(&self, data: impl Iterator<Item = f64>, from_zero: bool) -> Ruler {
        let mapped = |x: f64| if self.scale == Scale::Log { x.log10() } else { x };
        if let Some((from, to)) = self.range {
            return self.ruler(mapped(from), mapped(to));
        }
        let within = |(low, high): (f64, f64), x: f64| (low.min(x), high.max(x));
        let (mut low, mut high) =
            data.filter(|&x| self.drawable(x)).map(mapped).fold((f64::INFINITY, f64::NEG_INFINITY), within);
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let stands = from_zero && self.scale != Scale::Log;
        if stands {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        // All numbers are equal, or so close that ticks would coincide.
        if high - low <= 1e-9 * high.abs().max(low.abs()) || high - low < 1e-290 {
            let room = if high == 0.0 { 0.5 } else { 0.1 * high.abs().max(1e-280) };
            (low, high) = (low - room, high + room);
        }
        let room = 0.04 * (high - low);
        let keep = |edge: f64| stands && edge == 0.0;
        self.ruler(if keep(low) { low } else { low - room }, if keep(high) { high } else { high + room })
    }

    /// The axis from the smallest to the largest number, without room around them.
    pub(super) fn tight(&self, data: impl Iterator<Item = f64> + Clone) -> Ruler {
        let within = |(low, high): (f64, f64), x: f64| (low.min(x), high.max(x));
        let (low, high) = data.clone().filter(|&x| self.drawable(x)).fold((f64::INFINITY, f64::NEG_INFINITY), within);
        self.clone().range(low, high).fit(data, false)
    }

    fn ruler(&self, low: f64, high: f64) -> Ruler {
        let (ticks, minor) = match &self.scale {
            Scale::Linear => (linear_ticks(low, high, 6), Vec::new()),
            Scale::Whole => (whole_ticks(low, high), Vec::new()),
            Scale::Log => log_ticks(low, high),
            Scale::Names(names) => {
                (names.iter().enumerate().map(|(at, name)| (at as f64, name.clone())).collect(), Vec::new())
            }
        };
        Ruler { low, high, log: self.scale == Scale::Log, ticks, minor }
    }
}

/// An axis with its range and ticks. Ticks are in drawing units: logarithms on a logarithmic axis.
#[derive(Clone, Debug)]
pub(super) struct Ruler {
    low: f64,
    high: f64,
    log: bool,
    pub(super) ticks: Vec<(f64, String)>,
    pub(super) minor: Vec<f64>,
}

impl Ruler {
    /// The position of a number: 0 at the beginning of the axis, 1 at its end. On a logarithmic axis, numbers that are
    /// not positive (possible only for the lower ends of error bars) are far below.
    pub(super) fn place(&self, x: f64) -> f64 {
        let x = match self.log {
            true if x > 0.0 => x.log10(),
            true => return -100.0,
            false => x,
        };
        self.fraction(x)
    }

    /// The ends of the axis, in drawing units.
    pub(super) fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The ends of the axis, in units of the data.
    pub(super) fn values(&self) -> (f64, f64) {
        if self.log { (10f64.powf(self.low), 10f64.powf(self.high)) } else { self.ends() }
    }

    /// The same as [`place`](Self::place) for a tick.
    pub(super) fn fraction(&self, tick: f64) -> f64 {
        (tick - self.low) / (self.high - self.low)
    }
}

/// Multiples of 1, 2 or 5 times a power of ten, about as many as wanted.
pub(super) fn linear_ticks(low: f64, high: f64, wanted: usize) -> Vec<(f64, String)> {
    let rough = (high - low) / wanted as f64;
    let mut exponent = rough.log10().floor() as i32;
    let mantissa = match rough / 10f64.powi(exponent) {
        m if m < 1.5 => 1,
        m if m < 3.5 => 2,
        m if m < 7.5 => 5,
        _ => {
            exponent += 1;
            1
        }
    };
    // For powers of ten below one, divide by the reciprocal, which is exact.
    let value = |at: i64| {
        let whole = (at * mantissa) as f64;
        if exponent < 0 { whole / 10f64.powi(-exponent) } else { whole * 10f64.powi(exponent) }
    };
    let step = value(1);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|at| (value(at), decimal(at * mantissa, exponent))).collect()
}

/// Ticks at whole numbers: each of them where they are few. Axes far from whole numbers have the ordinary ones.
fn whole_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let (first, last) = (low.ceil(), high.floor());
    if high - low > 9.0 || first > last || low.abs().max(high.abs()) > 1e9 {
        return linear_ticks(low, high, 6);
    }
    (first as i64..=last as i64).map(|at| (at as f64, decimal(at, 0))).collect()
}

/// `digits · 10^exponent`, without rounding: in plain notation where that is short, otherwise with a power of ten.
fn decimal(digits: i64, exponent: i32) -> String {
    if digits == 0 {
        return "0".to_owned();
    }
    let (sign, mut text) = (if digits < 0 { "−" } else { "" }, digits.unsigned_abs().to_string());
    let mut exponent = exponent;
    // The position of the first digit decides.
    let first = text.len() as i32 - 1 + exponent;
    while text.len() > 1 && text.ends_with('0') {
        text.pop();
        exponent += 1;
    }
    if (-4..6).contains(&first) {
        if exponent >= 0 {
            text.extend(std::iter::repeat_n('0', exponent as usize));
        } else if first >= 0 {
            text.insert(first as usize + 1, '.');
        } else {
            text = format!("0.{}{text}", "0".repeat((-first - 1) as usize));
        }
        return format!("{sign}{text}");
    }
    if text.len() > 1 {
        text.insert(1, '.');
    }
    if text == "1" { format!("{sign}{}", power(first)) } else { format!("{sign}{text}·{}", power(first)) }
}

/// `10ᵏ` with superscript digits.
fn power(exponent: i32) -> String {
    let raised = |digit: char| match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '0' => '⁰',
        other => char::from_u32('⁴' as u32 + (other as u32 - '4' as u32)).unwrap_or(other),
    };
    std::iter::once("10".to_owned()).chain([exponent.to_string().chars().map(raised).collect()]).collect()
}

/// Powers of ten, with 2 and 5 between them where there are few, and the positions of minor ticks.
fn log_ticks(low: f64, high: f64) -> (Vec<(f64, String)>, Vec<f64>) {
    let (first, last) = (low.floor() as i32, high.ceil() as i32);
    let inside = |x: &f64| (low - 1e-9..=high + 1e-9).contains(x);
    let multiples = |of: &'static [u8]| {
        (first..=last).flat_map(move |k| of.iter().map(move |&m| (m, k, f64::from(k) + f64::from(m).log10())))
    };
    let span = high - low;
    if span < 1.0 {
        // Within a decade, only linear ticks are dense enough.
        let ticks = linear_ticks(10f64.powf(low), 10f64.powf(high), 5);
        let ticks: Vec<_> = ticks.into_iter().filter(|tick| tick.0 > 0.0).map(|(x, name)| (x.log10(), name)).collect();
        return (ticks, Vec::new());
    }
    let between: &[u8] = if span < 2.5 { &[1, 2, 5] } else { &[1] };
    let stride = ((span / 7.0).ceil() as i32).max(1);
    let name = |m: u8, k: i32| if m == 1 && span >= 2.5 { power(k) } else { decimal(i64::from(m), k) };
    let ticks = multiples(between).filter(|(m, k, at)| inside(at) && (*m > 1 || k.rem_euclid(stride) == 0));
    let minor = multiples(&[2, 3, 4, 5, 6, 7, 8, 9]).map(|(_, _, at)| at).filter(inside);
    let minor = if stride == 1 { minor.collect() } else { Vec::new() };
    (ticks.map(|(m, k, at)| (at, name(m, k))).collect(), minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(ticks: &[(f64, String)]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.1.as_str()).collect()
    }

    #[test]
    fn ticks_are_nice_numbers() {
        assert_eq!(names(&linear_ticks(0.0, 1.0, 5)), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(names(&linear_ticks(-3.1, 12.0, 6)), ["−2", "0", "2", "4", "6", "8", "10", "12"]);
        assert_eq!(names(&linear_ticks(1e6, 3e6, 4)), ["10⁶", "1.5·10⁶", "2·10⁶", "2.5·10⁶", "3·10⁶"]);
        assert_eq!(names(&linear_ticks(-2e-6, 0.0, 4)), ["−2·10⁻⁶", "−1.5·10⁻⁶", "−10⁻⁶", "−5·10⁻⁷", "0"]);
        assert_eq!(names(&linear_ticks(0.0991, 0.1009, 4)), ["0.0995", "0.1", "0.1005"]);
        assert_eq!(names(&linear_ticks(0.0, 50000.0, 5)), ["0", "10000", "20000", "30000", "40000", "50000"]);
        let tick = linear_ticks(0.0, 1.0, 5)[3].0;
        assert_eq!(tick, 0.6, "to the last bit");
    }

    /// Indices have no halves, however few there are.
    #[test]
    fn whole_ticks_are_whole() {
        assert_eq!(names(&whole_ticks(0.92, 3.08)), ["1", "2", "3"]);
        assert_eq!(names(&whole_ticks(0.64, 10.36)), ["2", "4", "6", "8", "10"]);
        assert_eq!(names(&whole_ticks(0.9, 1.1)), ["1"]);
        assert_eq!(names(&whole_ticks(0.0, 100.0)), ["0", "20", "40", "60", "80", "100"]);
        assert!(!whole_ticks(0.2, 0.8).is_empty());
    }

    #[test]
    fn logarithmic_ticks_are_powers() {
        assert_eq!(names(&log_ticks(-3.0, 2.0).0), ["10⁻³", "10⁻²", "10⁻¹", "10⁰", "10¹", "10²"]);
        assert_eq!(names(&log_ticks(0.0, 2.0).0), ["1", "2", "5", "10", "20", "50", "100"]);
        assert_eq!(names(&log_ticks(-12.0, 2.0).0), ["10⁻¹²", "10⁻¹⁰", "10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "10⁰", "10²"]);
        assert_eq!(names(&log_ticks(0.0, 0.5).0), ["1", "1.5", "2", "2.5", "3"]);
        assert_eq!(log_ticks(0.0, 1.0).1.len(), 8);
    }

    #[test]
    fn any_data_give_a_range() {
        let hard: [&[f64]; 7] =
            [&[], &[0.0], &[5.0, 5.0], &[1e300, -1e300], &[1e-310, 2e-310], &[f64::NAN], &[1.0, 1.0 + 1e-15]];
        for axis in [Axis::linear("x"), Axis::log("x"), Axis::whole("x")] {
            for data in hard {
                let ruler = axis.fit(data.iter().copied(), false);
                assert!(ruler.high > ruler.low && (ruler.high - ruler.low).is_finite(), "{data:?} {ruler:?}");
                assert!((1..40).contains(&ruler.ticks.len()), "{data:?} {ruler:?}");
                assert!(data.iter().filter(|x| axis.drawable(**x)).all(|&x| (0.0..=1.0).contains(&ruler.place(x))));
            }
        }
        assert_eq!(Axis::linear("x").fit([3.0, 10.0].into_iter(), true).place(0.0), 0.0);
        assert!(Axis::log("x").range(-1.0, 5.0).range.is_none());
    }
}
