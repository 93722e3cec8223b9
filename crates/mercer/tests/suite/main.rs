//! Jobs and saved folders through the library, in one binary.

mod folders;
mod jobs;
mod kills;
