//! The ways to name a kernel: text in the kernel language, or a recipe.

use crate::Error;
use mercer_kernel::Recipe;

/// A kernel given as text such as `normalised(trace)`, or as a [`Recipe`].
pub trait IntoRecipe {
    /// The kernel as data.
    ///
    /// # Errors
    /// If the text is not valid in the kernel language.
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
        self.parse().map_err(|error| Error::new(format!("‹kernel›, {error}")))
    }
}
