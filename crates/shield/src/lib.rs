//! What stands in front of expensive work, so that forged packets cannot buy processor time (Touch and Yang).
//!
//! So far that is [`budget`]: how much of something costly strangers may cause. It trusts nobody and knows no protocol.

pub mod budget;

pub use budget::{Bucket, PerSource};
