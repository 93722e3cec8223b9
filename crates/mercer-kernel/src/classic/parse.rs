//! The textual form: `rbf(lengthscale=1.5) + 0.1*linear()`.
//!
//! ```text
//! sum     = product { "+" product }
//! product = factor { "*" factor }
//! factor  = number | name [ "(" [ setting { "," setting } ] ")" ] | "(" sum ")"
//! setting = name "=" ( number | "[" number { "," number } "]" )
//! ```
//!
//! Depth and size are limited, so that no text can exhaust the stack or a planner.

use super::catalogue::{KERNELS, Kind, Setting, Spec};
use super::error::ClassicError;
use super::expression::{Expression, Node, Term};
use mercer_run::names::near;

/// Parentheses inside of parentheses.
const DEPTH: usize = 50;
/// Characters, enough for a lengthscale per pixel of an image.
const LENGTH: usize = 1 << 20;
/// Kernels and numbers of an expression.
const OPERANDS: usize = 200;

impl std::str::FromStr for Expression {
    type Err = ClassicError;

    fn from_str(text: &str) -> Result<Self, ClassicError> {
        let mut parser = Parser { text: text.chars().collect(), at: 0, operands: 0 };
        if parser.text.len() > LENGTH {
            return Err(parser.fail(LENGTH, format!("a kernel has at most {LENGTH} characters")));
        }
        let node = parser.sum(0)?;
        match parser.peek() {
            None => Ok(Self(node)),
            Some(')') => Err(parser.fail_here("this parenthesis was never opened")),
            Some('-') => Err(parser.fail_here("a difference of kernels is no kernel; there are + and *")),
            Some('^') => Err(parser.fail_here("there are no powers, but + and *")),
            Some(_) => Err(parser.fail_here("expected `+`, `*` or the end")),
        }
    }
}

struct Parser {
    text: Vec<char>,
    at: usize,
    operands: usize,
}

type Parsed<T> = Result<T, ClassicError>;

impl Parser {
    fn sum(&mut self, depth: usize) -> Parsed<Node> {
        let mut nodes = vec![self.product(depth)?];
        while self.take('+') {
            nodes.push(self.product(depth)?);
        }
        Ok(Node::sum(nodes))
    }

    fn product(&mut self, depth: usize) -> Parsed<Node> {
        let mut nodes = vec![self.factor(depth)?];
        while self.take('*') {
            nodes.push(self.factor(depth)?);
        }
        Ok(Node::product(nodes))
    }

    fn factor(&mut self, depth: usize) -> Parsed<Node> {
        let start = self.skip();
        if depth >= DEPTH {
            return Err(self.fail(start, format!("more than {DEPTH} parentheses inside of each other")));
        }
        self.operands += 1;
        if self.operands > OPERANDS {
            return Err(self.fail(start, format!("more than {OPERANDS} kernels and numbers")));
        }
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let node = self.sum(depth + 1)?;
                if !self.take(')') {
                    return Err(self.fail(start, "this parenthesis is never closed"));
                }
                Ok(node)
            }
            Some(first) if is_number(first) => match self.number()? {
                value if value.is_finite() && value > 0.0 => Ok(Node::Number(value)),
                value => Err(self.fail(start, format!("a number must be positive and finite, not {value}"))),
            },
            Some(first) if is_name(first) => self.term(),
            Some(other) => Err(self.fail(start, format!("expected a kernel or a number, not `{}`", plain(other)))),
            None => Err(self.fail(start, "expected a kernel or a number, as in rbf(lengthscale=1)")),
        }
    }

    fn term(&mut self) -> Parsed<Node> {
        let start = self.skip();
        let name = self.name();
        let Some(spec) = KERNELS.iter().find(|spec| spec.name == name) else {
            let names: Vec<&str> = KERNELS.iter().map(|spec| spec.name).collect();
            return Err(
                self.fail(start, format!("unknown kernel `{name}`; {}", suggestion(&name, &names, "kernels are")))
            );
        };
        let mut given: Vec<Option<Vec<f64>>> = vec![None; spec.settings.len()];
        if self.take('(') && !self.take(')') {
            loop {
                self.setting(spec, &mut given)?;
                if self.take(')') {
                    break;
                }
                if !self.take(',') {
                    return Err(self.fail_here("expected `,` or `)`"));
                }
            }
        }
        let values = given.into_iter().zip(spec.settings);
        let values = values.map(|(value, setting)| value.unwrap_or_else(|| vec![setting.default])).collect();
        Ok(Node::Term(Term { spec, values }))
    }

    fn setting(&mut self, spec: &Spec, given: &mut [Option<Vec<f64>>]) -> Parsed<()> {
        let start = self.skip();
        let names: Vec<&str> = spec.settings.iter().map(|setting| setting.name).collect();
        if !self.peek().is_some_and(is_name) {
            let example = names.first().map_or("`)`".to_owned(), |name| format!("a name, as in {name}=1"));
            return Err(self.fail(start, format!("expected {example}")));
        }
        let name = self.name();
        let Some(at) = names.iter().position(|own| *own == name) else {
            let kernel = spec.name;
            let has = format!("{kernel} has");
            let meant = if names.is_empty() { format!("{has} none") } else { suggestion(&name, &names, &has) };
            return Err(self.fail(start, format!("unknown parameter `{name}`; {meant}")));
        };
        if given[at].is_some() {
            return Err(self.fail(start, format!("{name} is given twice")));
        }
        if !self.take('=') {
            return Err(self.fail_here(&format!("expected `=` after {name}")));
        }
        given[at] = Some(self.value(&spec.settings[at])?);
        Ok(())
    }

    fn value(&mut self, setting: &Setting) -> Parsed<Vec<f64>> {
        let start = self.skip();
        if !self.take('[') {
            return Ok(vec![self.checked(setting)?]);
        }
        if setting.kind != Kind::Lengths {
            return Err(self.fail(start, format!("{} is one number, not a list", setting.name)));
        }
        let mut values = vec![self.checked(setting)?];
        while self.take(',') {
            values.push(self.checked(setting)?);
        }
        if self.take(']') { Ok(values) } else { Err(self.fail_here("expected `,` or `]`")) }
    }

    fn checked(&mut self, setting: &Setting) -> Parsed<f64> {
        let start = self.skip();
        if !self.peek().is_some_and(is_number) {
            return Err(self.fail(start, format!("expected a number for {}", setting.name)));
        }
        let value = self.number()?;
        setting.refuses(value).map_or(Ok(value), |reason| Err(self.fail(start, reason)))
    }

    fn number(&mut self) -> Parsed<f64> {
        let start = self.skip();
        while let Some(&next) = self.text.get(self.at) {
            // A sign belongs to a number at its beginning and after the exponent's letter.
            let sign = matches!(next, '-' | '+');
            let exponent = self.at > start && matches!(self.text[self.at - 1], 'e' | 'E');
            let part = if sign {
                exponent || (self.at == start && next == '-')
            } else {
                is_number(next) || matches!(next, 'e' | 'E')
            };
            if !part {
                break;
            }
            self.at += 1;
        }
        let text: String = self.text[start..self.at].iter().collect();
        text.parse().map_err(|_| self.fail(start, format!("`{text}` is not a number")))
    }

    fn name(&mut self) -> String {
        let start = self.skip();
        while self.text.get(self.at).is_some_and(|&next| is_name(next) || next.is_ascii_digit()) {
            self.at += 1;
        }
        self.text[start..self.at].iter().collect()
    }

    /// Moves to the next character that is not a space.
    fn skip(&mut self) -> usize {
        while self.text.get(self.at).is_some_and(|next| next.is_whitespace()) {
            self.at += 1;
        }
        self.at
    }

    fn peek(&mut self) -> Option<char> {
        let at = self.skip();
        self.text.get(at).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn fail_here(&mut self, reason: &str) -> ClassicError {
        let at = self.skip();
        self.fail(at, reason)
    }

    fn fail(&self, at: usize, reason: impl Into<String>) -> ClassicError {
        const AROUND: usize = 50;
        let from = at.saturating_sub(AROUND).min(self.text.len());
        let line = self.text[from..(at + AROUND).min(self.text.len())].iter().map(|&next| plain(next)).collect();
        ClassicError::Text { column: at + 1, reason: reason.into(), line, place: at - from + 1 }
    }
}

fn suggestion(name: &str, all: &[&str], otherwise: &str) -> String {
    let short: String = name.chars().take(40).collect();
    match near(&short, all).first() {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("{otherwise} {}", all.join(", ")),
    }
}

fn is_number(next: char) -> bool {
    next.is_ascii_digit() || matches!(next, '.' | '-')
}

fn is_name(next: char) -> bool {
    next.is_ascii_alphabetic() || next == '_'
}

/// A character as it can be shown in a line.
fn plain(next: char) -> char {
    if next.is_control() { ' ' } else { next }
}
