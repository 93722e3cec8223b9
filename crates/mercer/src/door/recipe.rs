//! Which kernel is meant: text of the kernel language, or a recipe.

use crate::Error;
use mercer_kernel::Recipe;

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
        self.parse().map_err(|error| Error::new(format!("‹kernel›, {error}")))
    }
}
