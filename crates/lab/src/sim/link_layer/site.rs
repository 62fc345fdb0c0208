//! The identities that all runs share: one site with a few hosts, made once per process and always the same.

use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};

use authority::{Request, Site};
use bump::Generator;
use identity::shared_keys::NO_END;
use identity::site_key::SiteKey;
use identity::{Generation, HostIdentity, Role, Succession, Term};
use wire::MacAddress;

use crate::failure::Failure;
use crate::sim::clock::START_UNIX_S;

/// When hosts begin to send with the new key, in seconds of the run.
pub const CHANGE_S: u64 = 8;
/// The last second of the old one; faults go on for longer.
pub const END_S: u64 = 12;

/// Hosts of the site.
pub const POOL: usize = 6;
/// The host of the site that is a router, the last one.
pub const ROUTER: usize = POOL - 1;

const SEED: [u8; 32] = *b"ringwall-lab sim: one small site";
const AGE_S: u64 = 3600;

/// The hardware address of host `number` of the pool.
pub fn mac(number: usize) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, number as u8 + 1])
}

/// The address of host `number` of the pool.
pub fn ip(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number as u8 + 1)
}

/// The pool, and the same hosts with another site key beside the first.
struct Pool {
    first: Vec<Arc<HostIdentity>>,
    changed: Vec<Arc<HostIdentity>>,
}

/// The identities of the pool.
///
/// # Errors
/// The authority could not make them.
pub fn pool() -> Result<&'static [Arc<HostIdentity>], Failure> {
    Ok(&made()?.first)
}

/// The same while one site key follows another.
///
/// # Errors
/// As [`pool`].
pub fn changed_pool() -> Result<&'static [Arc<HostIdentity>], Failure> {
    Ok(&made()?.changed)
}

fn made() -> Result<&'static Pool, Failure> {
    static POOL_ONCE: OnceLock<Result<Pool, String>> = OnceLock::new();
    let made = POOL_ONCE.get_or_init(|| make().map_err(|error| error.to_string()));
    made.as_ref().map_err(|error| Failure::Unreadable(format!("the simulated site: {error}")))
}

fn make() -> Result<Pool, authority::Error> {
    let mut generator = Generator::from_seed(SEED);
    let mut random = |bytes: &mut [u8]| bytes.fill_with(|| generator.bytes::<1>()[0]);
    let unix_s = START_UNIX_S - AGE_S;
    let mut site = Site::create("sim", &mut random, unix_s)?;
    let mut texts = Vec::new();
    for number in 0..POOL {
        let role = if number == ROUTER { Role::Router } else { Role::Host };
        let request = Request::new(&format!("h{number}"), mac(number), vec![ip(number)])?.with_role(role);
        texts.push(site.issue_identity(&request, &mut random, unix_s)?);
    }
    let first = texts.iter().map(|text| Ok(Arc::new(HostIdentity::from_pem(text)?)));
    let first: Vec<Arc<HostIdentity>> = first.collect::<Result<_, authority::Error>>()?;
    site.share(in_succession(site.site_key().clone(), SiteKey::from_bytes(*b"ringwall-lab sim: a 2nd site key"))?);
    let mut changed = Vec::new();
    for (text, identity) in texts.iter().zip(&first) {
        let bundle = site.share_with(identity.certificate().clone())?;
        let (_, identity) = authority::enrolment::renewed(text, &bundle.to_pem(), unix_s)?;
        changed.push(Arc::new(identity));
    }
    Ok(Pool { first, changed })
}

/// Both site keys, with the times of the runs in which one follows the other.
fn in_succession(former: SiteKey, next: SiteKey) -> Result<Succession<SiteKey>, authority::Error> {
    let term = |generation: u32, from_unix_s: u64, until_unix_s: u64| Term {
        generation: Generation(generation),
        from_unix_s,
        until_unix_s,
    };
    let former = (term(0, 0, START_UNIX_S + END_S), former);
    let next = (term(1, START_UNIX_S + CHANGE_S, NO_END), next);
    Ok(Succession::new(vec![former, next])?)
}
