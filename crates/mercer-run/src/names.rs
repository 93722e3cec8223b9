//! Names that a user writes: tables of choices, wildcards, and suggestions for misspelt names.

/// A choice with a name. Flags, errors, help and completions are all made from [`CHOICES`](Self::CHOICES).
///
/// Implement it with [`named!`](crate::named), which also gives the type `Display` and `FromStr`.
pub trait Named: Copy + Sized + 'static {
    /// What is chosen, such as `precision`.
    const WHAT: &'static str;

    /// Every choice with its name and one line of help.
    const CHOICES: &'static [(Self, &'static str, &'static str)];

    /// The name.
    fn name(self) -> &'static str;

    /// All names.
    fn names() -> Vec<&'static str> {
        Self::CHOICES.iter().map(|(_, name, _)| *name).collect()
    }

    /// The choice of this name.
    ///
    /// # Errors
    /// A sentence that suggests the nearest name, or lists all choices.
    fn from_name(text: &str) -> Result<Self, String> {
        match Self::CHOICES.iter().find(|(_, name, _)| *name == text) {
            Some((choice, ..)) => Ok(*choice),
            None => Err(unknown(Self::WHAT, text, &Self::names())),
        }
    }
}

/// Names the choices of an enum in one table:
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Fruit { Apple, Pear }
///
/// mercer_run::named! {
///     Fruit, "fruit":
///     Apple = "apple", "Round";
///     Pear = "pear", "Less round";
/// }
///
/// use mercer_run::names::Named;
/// assert_eq!(Fruit::Pear.to_string(), "pear");
/// assert_eq!("apple".parse(), Ok(Fruit::Apple));
/// assert_eq!("aple".parse::<Fruit>(), Err("unknown fruit `aple`; did you mean `apple`?".to_owned()));
/// assert_eq!(Fruit::CHOICES.len(), 2);
/// ```
#[macro_export]
macro_rules! named {
    ($type:ident, $what:literal: $($variant:ident = $name:literal, $help:literal;)+) => {
        impl $crate::names::Named for $type {
            const WHAT: &'static str = $what;
            const CHOICES: &'static [(Self, &'static str, &'static str)] = &[$((Self::$variant, $name, $help)),+];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.pad($crate::names::Named::name(*self))
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                $crate::names::Named::from_name(text)
            }
        }
    };
}

/// An error message for an unknown name. It suggests the nearest names, or lists all of them.
pub fn unknown(what: &str, name: &str, all: &[&str]) -> String {
    let short: String = name.chars().take(40).collect();
    let meant = match near(&short, all).first() {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("choose from {}", all.join(", ")),
    };
    format!("unknown {what} `{short}`; {meant}")
}

/// Whether a name matches a pattern in which `*` stands for any text and `?` for any character.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last star was, and how much of the name it has swallowed.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, n));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == name[n]) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((at, swallowed)) = star {
            star = Some((at, swallowed + 1));
            (p, n) = (at + 1, swallowed + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// The names closest to one that does not exist: at most five, by edit distance of their letters.
pub fn near(wanted: &str, names: &[&str]) -> Vec<String> {
    let plain: String = wanted.chars().filter(|c| !matches!(c, '*' | '?')).collect();
    let mut scored: Vec<(usize, &str)> = names
        .iter()
        .map(|name| {
            let contains = !plain.is_empty() && name.to_lowercase().contains(&plain.to_lowercase());
            // A pattern with an open end is compared with the beginning of a name.
            let length = if wanted.ends_with('*') { plain.chars().count() } else { usize::MAX };
            let beginning: String = name.chars().take(length).collect();
            (if contains { 0 } else { distance(&plain, &beginning) }, *name)
        })
        .collect();
    scored.sort();
    let limit = plain.chars().count().max(4);
    scored.into_iter().filter(|(score, _)| *score <= limit).take(5).map(|(_, name)| name.to_owned()).collect()
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match() {
        assert!(matches("layer1.*", "layer1.0.conv1.weight"));
        assert!(matches("*.weight", "layer1.0.conv1.weight"));
        assert!(matches("a*b*c", "aXbYbc"));
        assert!(matches("fc?", "fc1"));
        assert!(!matches("fc?", "fc"));
        assert!(!matches("*.bias", "layer1.weight"));
        assert!(matches("*", ""));
    }

    #[test]
    fn near_names_come_first() {
        assert_eq!(near("fc1.wieght", &["conv.weight", "fc1.weight", "zzz"])[0], "fc1.weight");
        assert_eq!(near("fc*", &["conv.weight", "fc1.weight"])[0], "fc1.weight");
        assert_eq!(near("fc3.*", &["conv.weight", "fc2.weight"])[0], "fc2.weight");
    }
}
