//! The lab's LAN, for its own programs and tests: namespaces, witnesses, honest traffic, the real program, and the
//! clean-up that leaves nothing behind.

pub mod cleanup;
pub mod disguise;
pub mod failover;
pub mod failure;
pub mod guard;
pub mod hindrance;
pub mod net;
pub mod receivers;
pub mod rollout;
pub mod stacks;
