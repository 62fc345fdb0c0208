//! Network stacks of this machine and of others, each as the experiments need it: Linux, smoltcp, lwIP, gVisor.
//!
//! A stack has one of two places. `standing`: it is a host on a LAN in namespaces, in real time, for scanners to look at.
//! `receiving`: it is at the end of a narrow pipe, a frame in and what it answers out, so that one case takes microseconds and
//! nothing else is heard; that is what the attacks of `receivers` are compared on. The sources of those that are written in other
//! languages are beside this crate's own, in `stacks/`.

pub mod receiving;
pub mod standing;
