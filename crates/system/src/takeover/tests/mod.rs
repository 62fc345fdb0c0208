//! Real interfaces in throw-away namespaces, compared with what `ip` says about them.

mod following;
mod former;
mod namespace_way;
mod pair;
pub(super) mod room;
