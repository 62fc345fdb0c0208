//! The identities that all runs share: one site with all that a run may have, made once per process and always the same.

use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};

use authority::{Request, Site};
use bump::Generator;
use identity::certificate::Role;
use identity::distributor::{DistributorKey, RequestMaster};
use identity::signing::{SigningKey, ed25519_pkcs8_from_seed};
use identity::{HostIdentity, KeyError};
use sarp::Distributor;
use wire::MacAddress;

use crate::failure::Failure;
use crate::sim::clock::START_UNIX_S;

/// Places in the pool: machines that can be distributors, DHCP servers, hosts with an address, hosts without, the liar.
pub const DISTRIBUTORS: [u8; 3] = [101, 102, 103];
/// The DHCP servers.
pub const SERVERS: [u8; 2] = [50, 51];
/// Hosts whose address is in their certificate.
pub const STATIC: [u8; 4] = [1, 2, 3, 4];
/// Hosts that get an address by DHCP.
pub const CLIENTS: [u8; 3] = [11, 12, 13];
/// An enrolled host that lies.
pub const INSIDER: u8 = 9;
/// A host without S-ARP that is on everybody's list, and one that is on nobody's.
pub const PLAIN: [u8; 2] = [20, 21];

const SEED: [u8; 32] = *b"ringwall-lab sim: a signing site";
const AGE_S: u64 = 3600;
const MASTER: [u8; 32] = [42; 32];

/// The hardware address of a machine.
pub fn mac(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, number])
}

/// The hardware address of its spare card.
pub fn spare_mac(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 1, number])
}

/// The address of a machine that has one for good.
pub fn ip(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number)
}

/// The addresses that a DHCP server gives.
pub fn pool_of(server: u8) -> Vec<Ipv4Addr> {
    let first = 10 + 50 * (server - SERVERS[0]);
    (first..first + 12).map(|last| Ipv4Addr::new(10, 0, 1, last)).collect()
}

/// All that the site has issued.
pub struct Pool {
    identities: Vec<(u8, Arc<HostIdentity>)>,
}

impl Pool {
    /// The identity of a machine of the site.
    pub fn identity(&self, number: u8) -> Option<&Arc<HostIdentity>> {
        self.identities.iter().find(|(known, _)| *known == number).map(|(_, identity)| identity)
    }

    /// The distributors `numbers`, as an enrolment names them.
    pub fn distributors(&self, numbers: &[u8]) -> Vec<Distributor> {
        let setting = |number: &u8| {
            let key = DistributorKey::of(self.identity(*number)?.certificate())?;
            Some(Distributor { ip: ip(*number), mac: mac(*number), key })
        };
        numbers.iter().filter_map(setting).collect()
    }
}

/// What request keys are made from.
pub fn master() -> RequestMaster {
    RequestMaster::from_bytes(MASTER)
}

/// A fresh key.
pub fn new_key(random: &mut Generator) -> Result<Arc<SigningKey>, KeyError> {
    SigningKey::from_pkcs8_der(&ed25519_pkcs8_from_seed(&random.bytes())?).map(Arc::new)
}

/// The identities.
///
/// # Errors
/// The authority could not make them.
pub fn pool() -> Result<&'static Pool, Failure> {
    static POOL_ONCE: OnceLock<Result<Pool, String>> = OnceLock::new();
    let made = POOL_ONCE.get_or_init(|| make().map_err(|error| error.to_string()));
    made.as_ref().map_err(|error| Failure::Unreadable(format!("the simulated site: {error}")))
}

fn make() -> Result<Pool, authority::Error> {
    let mut generator = Generator::from_seed(SEED);
    let mut random = |bytes: &mut [u8]| bytes.fill_with(|| generator.bytes::<1>()[0]);
    let unix_s = START_UNIX_S - AGE_S;
    let site = Site::create("sim", &mut random, unix_s)?;
    let roles = [
        (&DISTRIBUTORS[..], Role::Distributor),
        (&SERVERS[..], Role::DhcpServer),
        (&STATIC[..], Role::Host),
        (&CLIENTS[..], Role::Host),
        (&[INSIDER][..], Role::Host),
    ];
    let mut identities = Vec::new();
    for (numbers, role) in roles {
        for &number in numbers {
            let addresses = if CLIENTS.contains(&number) { Vec::new() } else { vec![ip(number)] };
            let request = Request::new(&name(number), mac(number), addresses)?.with_role(role);
            let pem = site.issue_identity(&request, &mut random, unix_s)?;
            identities.push((number, Arc::new(HostIdentity::from_pem(&pem)?)));
        }
    }
    Ok(Pool { identities })
}

/// The name of a machine in the repository.
pub fn name(number: u8) -> String {
    format!("h{number}")
}
