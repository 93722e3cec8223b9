//! How networks of finite width approach their limit.

pub(crate) mod circle;
pub(crate) mod rates;
