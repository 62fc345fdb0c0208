//! The identities that all runs share: one site with a few hosts, made once per process and always the same.

use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};

use authority::{Request, Site};
use bump::Generator;
use identity::{HostIdentity, Role};
use wire::MacAddress;

use crate::failure::Failure;
use crate::sim::clock::START_UNIX_S;

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

/// The identities of the pool.
///
/// # Errors
/// The authority could not make them.
pub fn pool() -> Result<&'static [Arc<HostIdentity>], Failure> {
    static POOL_ONCE: OnceLock<Result<Vec<Arc<HostIdentity>>, String>> = OnceLock::new();
    let made = POOL_ONCE.get_or_init(|| make().map_err(|error| error.to_string()));
    made.as_deref().map_err(|error| Failure::Unreadable(format!("the simulated site: {error}")))
}

fn make() -> Result<Vec<Arc<HostIdentity>>, authority::Error> {
    let mut generator = Generator::from_seed(SEED);
    let mut random = |bytes: &mut [u8]| bytes.fill_with(|| generator.bytes::<1>()[0]);
    let unix_s = START_UNIX_S - AGE_S;
    let site = Site::create("sim", &mut random, unix_s)?;
    (0..POOL)
        .map(|number| {
            let role = if number == ROUTER { Role::Router } else { Role::Host };
            let request = Request::new(&format!("h{number}"), mac(number), vec![ip(number)])?.with_role(role);
            let pem = site.issue_identity(&request, &mut random, unix_s)?;
            Ok(Arc::new(HostIdentity::from_pem(&pem)?))
        })
        .collect()
}
