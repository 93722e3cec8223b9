//! Which kernel is meant: text of the kernel language, or a recipe.

use crate::Error;
use mercer_kernel::Recipe;
use mercer_kernel::classic::Expression;
use mercer_kernel::infinite::{Of, Rule};
use mercer_kernel::{Kind, Selection};
use mercer_net::arch::Initialisation;

/// What names a kernel: text such as `normalised(trace)`, or a [`Recipe`].
pub trait IntoRecipe {
    /// The kernel as data.
    ///
    /// # Errors
    /// For text that is not of the kernel language.
    fn into_recipe(self) -> Result<Recipe, Error>;
}

impl IntoRecipe for Recipe {
    fn into_recipe(self) -> Result<Recipe, Error> {
        Ok(self)
    }
}

impl IntoRecipe for &Recipe {
    fn into_recipe(self) -> Result<Recipe, Error> {
        Ok(self.clone())
    }
}

impl IntoRecipe for &str {
    fn into_recipe(self) -> Result<Recipe, Error> {
        parse(self)
    }
}

/// The one place where text becomes a recipe.
fn parse(text: &str) -> Result<Recipe, Error> {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix("normalised(").and_then(|rest| rest.strip_suffix(')')) {
        return Ok(Recipe::Normalised(Box::new(parse(inner)?)));
    }
    let tangent = |kind| Recipe::Tangent { kind, selection: Selection::default(), by_layer: false };
    let limit = |of| Recipe::Limit { of, rule: Rule::initialisation(Initialisation::default()) };
    Ok(match text {
        "trace" => tangent(Kind::Trace),
        "pseudo" => tangent(Kind::Pseudo),
        "full" => tangent(Kind::Full),
        "ck" => Recipe::Conjugate { output: None, bias: true },
        "nngp" => limit(Of::Nngp),
        "ntk-limit" => limit(Of::Ntk),
        formula => {
            let expression: Expression = formula.parse().map_err(|error| Error::new(format!("‹kernel›, {error}")))?;
            Recipe::Classic(expression.to_string())
        }
    })
}
