//! The real program on real kernel stacks: what an operator does and what a network does to it, seen from outside.
//!
//! `cargo build --release -p ringwall && cargo test -p ringwall-lab --test guarded`. Needs root; skips by name without.
//! `RINGWALL_LONG=1` watches and floods for as long as a release asks for. `RINGWALL_PROGRAM` names another program.

// A program has no outside; `pub` marks what a module offers to its neighbours.
#![allow(unreachable_pub)]
// Helpers of tests fail as tests do.
#![allow(clippy::expect_used, clippy::panic)]

mod admin;
mod attacks;
mod bad_input;
mod bridged;
mod broadcast;
mod cll_dhcp;
mod compression;
mod console;
mod console_site;
mod console_tls;
mod dhcp;
mod dhcp_relay;
mod dhcp_shared;
mod distributors;
mod doctor;
mod enrolment;
mod enrolment_shared;
mod gateway;
mod history;
mod hostile;
mod in_place;
mod ipsec;
mod ipv6;
mod joining;
mod layers;
mod lent;
mod liveness;
mod metrics;
mod migration;
mod paper;
mod peers;
mod policy;
mod renewal;
mod resume;
mod rollout;
mod rollover;
mod sandbox;
mod sarp;
mod sarp_input;
mod sarp_kernel;
mod sarp_life;
mod site_service;
mod site_signer;
mod site_signer_shared;
mod site_token;
mod stage;
mod takeover;
mod thief;
mod top;
mod traffic;
mod why;
mod wire;
