//! What the fuzz targets do with their input, as plain functions: each feeds bytes to one parser or bump and panics when
//! a law is broken. The fuzzer calls them from `fuzz_targets/`, and `tests/smoke.rs` without a fuzzer.
//!
//! The laws: nothing panics, reads outside its bytes or runs without end; `emit(parse(b)) == b`; nothing that the site
//! did not sign verifies; every frame has exactly one fate; what is held is bounded; nothing that is not authentic
//! reaches a stack, and nothing in clear reaches the wire.

pub mod captures;
pub mod compressed;
pub mod enrolment;
pub mod faults;
pub mod formats;
pub mod input;
pub mod leases;
pub mod link_layer;
pub mod null;
pub mod offloads;
pub mod proofs;
pub mod scrubber;
pub mod seeds;
pub mod shielded;
pub mod signed_arp;
pub mod site;
pub mod vectors;

/// A harness: takes any bytes and panics when a law is broken.
pub type Harness = fn(&[u8]);

/// Every harness of this library by the name of its target. The target `config` stands apart, because the program is no
/// library.
pub const TARGETS: &[(&str, Harness)] = &[
    ("ethernet", formats::ethernet),
    ("arp", formats::arp),
    ("cll_data", formats::cll_data),
    ("train", formats::train),
    ("sarp", formats::sarp),
    ("token", enrolment::token),
    ("applicant", enrolment::applicant),
    ("dhcp", leases::dhcp),
    ("cll_handshake", formats::cll_handshake),
    ("cll_challenge", formats::cll_challenge),
    ("cll_dhcp", formats::cll_dhcp),
    ("cll_rollover", formats::cll_rollover),
    ("cll_broadcast", formats::cll_broadcast),
    ("cll_resumption", formats::cll_resumption),
    ("discovery", formats::discovery),
    ("cll_compressed", compressed::cll_compressed),
    ("internet", formats::internet),
    ("segment", offloads::segment),
    ("coalesce", offloads::coalesce),
    ("capture", captures::capture),
    ("certificate", proofs::certificate),
    ("pem", proofs::pem),
    ("null_bump", null::null_bump),
    ("cll_bump", link_layer::cll_bump),
    ("faults", faults::faults),
    ("sarp_bump", signed_arp::sarp_bump),
    ("scrub", scrubber::scrub),
    ("shield_ipsec", shielded::shield_ipsec),
];
