//! The grammar of the kernel language, without any names.
//!
//! ```text
//! sum      = product { "+" product }
//! product  = factor { "*" factor }
//! factor   = number | call | "(" sum ")"
//! call     = name [ "(" [ argument { "," argument } ] ")" ]
//! argument = name "=" value | value | sum
//! value    = number | word | text | "[" [ value { "," value } ] "]"
//! text     = '"' … '"' | "'" … "'", in which a backslash takes the next character as it is
//! ```
//!
//! Depth and size are limited, so that no text can exhaust the stack or a planner.

use super::error::SyntaxError;

/// The maximum nesting depth of parentheses, calls and lists.
const DEPTH: usize = 50;
/// The maximum number of characters: enough for a lengthscale per pixel of an image.
const LENGTH: usize = 1 << 20;
/// The maximum number of kernels and numbers in an expression.
const OPERANDS: usize = 200;

/// An expression. A sum does not directly contain sums, nor a product products; both have at least two operands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Number(f64),
    Call(Call),
    Sum(Vec<Node>),
    Product(Vec<Node>),
}

/// A kernel by name, with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// Where the name begins.
    pub(crate) at: usize,
    pub(crate) arguments: Vec<Argument>,
}

/// `name=value`, or a value alone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Argument {
    pub(crate) name: Option<String>,
    /// Where the argument begins.
    pub(crate) at: usize,
    pub(crate) value: Value,
}

/// The value of an argument, and its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    pub(crate) at: usize,
    pub(crate) content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// A number as written, because an integer may have more digits than a float.
    Number(f64, String),
    Word(String),
    Text(String),
    List(Vec<Value>),
    Kernel(Node),
}

/// The text of an expression, for error messages.
#[derive(Clone, Debug)]
pub(crate) struct Text(Vec<char>);

pub(crate) type Parsed<T> = Result<T, SyntaxError>;

impl Text {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.chars().collect())
    }

    /// An error at a character.
    pub(crate) fn fail(&self, at: usize, reason: impl Into<String>) -> SyntaxError {
        const AROUND: usize = 50;
        let from = at.saturating_sub(AROUND).min(self.0.len());
        let line = self.0[from..(at + AROUND).min(self.0.len())].iter().map(|&next| plain(next)).collect();
        SyntaxError { column: at + 1, reason: reason.into(), line, place: at - from + 1 }
    }

    /// Reads the whole text.
    pub(crate) fn read(&self) -> Parsed<Node> {
        if self.0.len() > LENGTH {
            return Err(self.fail(LENGTH, format!("a kernel has at most {LENGTH} characters")));
        }
        let mut reader = Reader { text: self, at: 0, operands: 0 };
        let node = reader.sum(0)?;
        match reader.peek() {
            None => Ok(node),
            Some(')') => Err(reader.fail_here("this parenthesis was never opened")),
            Some('-') => Err(reader.fail_here("a difference of kernels is not a kernel; use + and *")),
            Some('^') => Err(reader.fail_here("there are no powers; use + and *")),
            Some(_) => Err(reader.fail_here("expected `+`, `*` or the end")),
        }
    }
}

struct Reader<'a> {
    text: &'a Text,
    at: usize,
    operands: usize,
}

impl Reader<'_> {
    fn sum(&mut self, depth: usize) -> Parsed<Node> {
        let mut nodes = vec![self.product(depth)?];
        while self.take('+') {
            nodes.push(self.product(depth)?);
        }
        Ok(flat(nodes, Node::Sum, |node| match node {
            Node::Sum(inner) => Ok(inner),
            other => Err(other),
        }))
    }

    fn product(&mut self, depth: usize) -> Parsed<Node> {
        let mut nodes = vec![self.factor(depth)?];
        while self.take('*') {
            nodes.push(self.factor(depth)?);
        }
        Ok(flat(nodes, Node::Product, |node| match node {
            Node::Product(inner) => Ok(inner),
            other => Err(other),
        }))
    }

    fn factor(&mut self, depth: usize) -> Parsed<Node> {
        let start = self.check_depth(depth)?;
        self.operands += 1;
        if self.operands > OPERANDS {
            return Err(self.text.fail(start, format!("more than {OPERANDS} kernels and numbers")));
        }
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let node = self.sum(depth + 1)?;
                if !self.take(')') {
                    return Err(self.text.fail(start, "this parenthesis is never closed"));
                }
                Ok(node)
            }
            Some(first) if is_number(first) => match self.number()?.0 {
                value if value.is_finite() && value > 0.0 => Ok(Node::Number(value)),
                value => Err(self.text.fail(start, format!("a number must be positive and finite, not {value}"))),
            },
            Some(first) if is_name(first) => self.call(depth).map(Node::Call),
            Some(other) => Err(self.text.fail(start, format!("expected a kernel or a number, not `{}`", plain(other)))),
            None => Err(self.text.fail(start, "expected a kernel or a number, as in rbf(lengthscale=1)")),
        }
    }

    fn call(&mut self, depth: usize) -> Parsed<Call> {
        let at = self.skip();
        let name = self.name();
        let mut arguments = Vec::new();
        if self.take('(') && !self.take(')') {
            loop {
                arguments.push(self.argument(depth + 1)?);
                if self.take(')') {
                    break;
                }
                if !self.take(',') {
                    return Err(self.fail_here("expected `,` or `)`"));
                }
            }
        }
        Ok(Call { name, at, arguments })
    }

    fn argument(&mut self, depth: usize) -> Parsed<Argument> {
        let at = self.skip();
        if self.peek().is_some_and(is_name) {
            let name = self.name();
            if self.take('=') {
                return Ok(Argument { value: self.value(&name, depth)?, name: Some(name), at });
            }
            // Not a setting but a kernel, which also begins with a name.
            self.at = at;
        } else if self.peek().is_some_and(|next| matches!(next, '"' | '\'' | '[')) {
            return Ok(Argument { name: None, at, value: self.value("", depth)? });
        }
        if self.peek().is_some_and(is_number) {
            let (value, text) = self.number()?;
            if matches!(self.peek(), Some(',' | ')')) {
                return Ok(Argument { name: None, at, value: Value { at, content: Content::Number(value, text) } });
            }
            // Not a number alone, but the factor of a kernel.
            self.at = at;
        }
        let content = Content::Kernel(self.sum(depth)?);
        Ok(Argument { name: None, at, value: Value { at, content } })
    }

    fn value(&mut self, name: &str, depth: usize) -> Parsed<Value> {
        let at = self.check_depth(depth)?;
        let content = match self.peek() {
            Some('[') => {
                self.at += 1;
                let mut values = Vec::new();
                if !self.take(']') {
                    loop {
                        values.push(self.value(name, depth + 1)?);
                        if self.take(']') {
                            break;
                        }
                        if !self.take(',') {
                            return Err(self.fail_here("expected `,` or `]`"));
                        }
                    }
                }
                Content::List(values)
            }
            Some(quote @ ('"' | '\'')) => Content::Text(self.quoted(quote)?),
            Some(first) if is_number(first) => {
                let (value, text) = self.number()?;
                Content::Number(value, text)
            }
            Some(first) if is_name(first) => Content::Word(self.word()),
            _ => return Err(self.text.fail(at, format!("expected a value for {name}"))),
        };
        Ok(Value { at, content })
    }

    /// A backslash escapes the next character.
    fn quoted(&mut self, quote: char) -> Parsed<String> {
        let start = self.at;
        let mut content = String::new();
        let mut rest = self.text.0[start + 1..].iter().enumerate();
        while let Some((length, &next)) = rest.next() {
            match next {
                '\\' => content.extend(rest.next().map(|(_, &escaped)| escaped)),
                _ if next == quote => {
                    self.at = start + length + 2;
                    return Ok(content);
                }
                _ => content.push(next),
            }
        }
        Err(self.text.fail(start, "this text is never closed"))
    }

    fn number(&mut self) -> Parsed<(f64, String)> {
        let start = self.skip();
        while let Some(&next) = self.text.0.get(self.at) {
            // A sign is part of a number at its beginning and after the letter of the exponent.
            let sign = matches!(next, '-' | '+');
            let exponent = self.at > start && matches!(self.text.0[self.at - 1], 'e' | 'E');
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
        let text: String = self.text.0[start..self.at].iter().collect();
        match text.parse() {
            Ok(value) => Ok((value, text)),
            Err(_) => Err(self.text.fail(start, format!("`{text}` is not a number"))),
        }
    }

    /// The name of a kernel or of a setting.
    fn name(&mut self) -> String {
        self.letters(|next| is_name(next) || next.is_ascii_digit() || next == '-')
    }

    /// A word as a value, such as `he` or `sjlt:4096`.
    fn word(&mut self) -> String {
        self.letters(|next| is_name(next) || next.is_ascii_digit() || matches!(next, '-' | ':' | '.'))
    }

    fn letters(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let start = self.skip();
        while self.text.0.get(self.at).is_some_and(|&next| belongs(next)) {
            self.at += 1;
        }
        self.text.0[start..self.at].iter().collect()
    }

    fn check_depth(&mut self, depth: usize) -> Parsed<usize> {
        let at = self.skip();
        if depth >= DEPTH {
            return Err(self.text.fail(at, format!("more than {DEPTH} parentheses inside of each other")));
        }
        Ok(at)
    }

    /// Moves to the next character that is not a space.
    fn skip(&mut self) -> usize {
        while self.text.0.get(self.at).is_some_and(|next| next.is_whitespace()) {
            self.at += 1;
        }
        self.at
    }

    fn peek(&mut self) -> Option<char> {
        let at = self.skip();
        self.text.0.get(at).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn fail_here(&mut self, reason: &str) -> SyntaxError {
        let at = self.skip();
        self.text.fail(at, reason)
    }
}

/// Nested operands are flattened; a single operand is returned unchanged.
fn flat(nodes: Vec<Node>, many: fn(Vec<Node>) -> Node, inner: fn(Node) -> Result<Vec<Node>, Node>) -> Node {
    let mut flat: Vec<Node> =
        nodes.into_iter().flat_map(|node| inner(node).unwrap_or_else(|other| vec![other])).collect();
    if flat.len() == 1 { flat.remove(0) } else { many(flat) }
}

fn is_number(next: char) -> bool {
    next.is_ascii_digit() || matches!(next, '.' | '-')
}

fn is_name(next: char) -> bool {
    next.is_ascii_alphabetic() || next == '_'
}

/// A printable form of a character.
fn plain(next: char) -> char {
    if next.is_control() { ' ' } else { next }
}
