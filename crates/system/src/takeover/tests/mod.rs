//! Real interfaces in throw-away namespaces, compared with what `ip` says about them.

mod filter_way;
mod following;
mod namespace_way;
mod pair;
pub(super) mod room;
