//! The front door, jobs and saved folders through the library, in one binary.

mod door;
mod folders;
mod jobs;
mod kills;
