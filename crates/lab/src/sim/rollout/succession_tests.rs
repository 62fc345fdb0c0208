//! The authority's certificate ended on day 10 and was replaced on day 9 (record 0109): three hundred
//! hosts with the identities that they have on day 11 meet by real handshakes, and one that slept
//! from day 5 to day 40 comes back if the manager lets it.

use std::net::Ipv4Addr;
use std::time::Duration;

use authority::directory::{Delivery, Sharing, Terms, acting, change_policy, renew_authority};
use authority::files::Overwrite;
use authority::{Directory, Error, Request, enrolment};
use bump::Generator;
use identity::certificate::CertificateRequest;
use identity::policy::{Group, Mode};
use identity::{HostIdentity, Profile};
use wire::MacAddress;

use super::host::Host;
use super::pings::Pings;
use super::service::Service;
use super::world::World;
use crate::sim::clock::START_UNIX_S;
use crate::sim::link_layer;

const DAY_S: u64 = 24 * 60 * 60;
const DAY: Duration = Duration::from_secs(DAY_S);
/// Runs begin on day 11.
const BEGAN: u64 = START_UNIX_S - 11 * DAY_S;
const HOSTS: usize = 300;
/// The one that sleeps.
const ASLEEP: usize = HOSTS - 1;
/// Each host talks to so many on either side of it.
const REACH: usize = 2;
/// Certificates of four days, renewed in their second half.
const VALIDITY: Duration = Duration::from_secs(4 * DAY_S);

fn on_day(day: u64) -> u64 {
    BEGAN + day * DAY_S
}

fn mac(number: usize) -> MacAddress {
    let [high, low] = (number as u16).to_be_bytes();
    MacAddress([2, 0, 0, 2, high, low])
}

fn ip(number: usize) -> Ipv4Addr {
    let [high, low] = (number as u16 + 1).to_be_bytes();
    Ipv4Addr::new(10, 88, high, low)
}

struct Stage {
    place: tempfile::TempDir,
    random: Generator,
    /// What each host has on its disk.
    own: Vec<String>,
}

fn from(random: &mut Generator) -> impl FnMut(&mut [u8]) + '_ {
    |bytes: &mut [u8]| bytes.fill_with(|| random.bytes::<1>()[0])
}

impl Stage {
    fn site(&self) -> Directory {
        acting(Directory::open(&self.place.path().join("site")).expect("opened"), "tester")
    }

    fn request(number: usize) -> Request {
        let request = Request::new(&format!("h{number}"), mac(number), vec![ip(number)]);
        request.and_then(|request| request.with_validity(VALIDITY)).expect("a request")
    }

    /// A site whose authority ends on day 10 and is replaced on day 9: half of the hosts have the new
    /// certificate that day, the others in the last second of the old one.
    fn set() -> Stage {
        let (place, mut random) = (tempfile::tempdir().expect("directory"), link_layer::generator(11));
        let path = place.path().join("site");
        Directory::init(&path, "lab", 10 * DAY, Profile::Modern, &mut from(&mut random), BEGAN).expect("founded");
        let mut stage = Stage { place, random, own: Vec::new() };
        for number in 0..HOSTS {
            let site = stage.site();
            let output = stage.place.path().join("host.pem");
            // The one that sleeps is in the record, so that it can be renewed.
            let text = if number == ASLEEP {
                let delivery = Delivery { output: &output, overwrite: Overwrite::Force, sharing: Sharing::Refused };
                let issued =
                    site.issue_identity(&Self::request(number), &delivery, &mut from(&mut stage.random), BEGAN);
                issued.expect("issued");
                std::fs::read_to_string(output).expect("there")
            } else {
                let random = &mut from(&mut stage.random);
                site.site().issue_identity(&Self::request(number), random, BEGAN).expect("issued").to_string()
            };
            stage.own.push(text);
        }
        [3, 6].into_iter().for_each(|day| stage.renew(0..ASLEEP, on_day(day)));
        let site = stage.site();
        renew_authority(&site, 3650 * DAY, &mut from(&mut stage.random), on_day(9)).expect("replaced");
        stage.renew(0..HOSTS / 2, on_day(9));
        stage.renew(HOSTS / 2..ASLEEP, on_day(10) - 1);
        stage
    }

    /// These hosts ask, and read the answer.
    fn renew(&mut self, hosts: std::ops::Range<usize>, unix_s: u64) {
        let site = self.site();
        for number in hosts {
            let own = &self.own[number];
            let asked = CertificateRequest::from_pem(&enrolment::renewal(own).expect("a request")).expect("signed");
            let random = &mut from(&mut self.random);
            let bundle = site.site().issue(&Self::request(number), &asked, random, unix_s).expect("issued");
            self.own[number] = enrolment::renewed(own, &bundle.to_pem(), unix_s).expect("renewed").0.to_string();
        }
    }

    /// The one that slept asks the service, which renews so many days late.
    fn renew_late(&mut self, days: u32, unix_s: u64) -> Result<(), Error> {
        let own = self.own[ASLEEP].clone();
        let asked = CertificateRequest::from_pem(&enrolment::renewal(&own)?)?;
        let terms = Terms { validity: VALIDITY, early: false, late: days * DAY };
        let answer = self.site().renew(&asked, terms, &mut from(&mut self.random), unix_s)?.answer;
        self.own[ASLEEP] = enrolment::renewed(&own, &answer, unix_s)?.0.to_string();
        Ok(())
    }

    /// All hosts on one LAN, of which these have their daemons, so many days after day 11. Nothing is
    /// let through in clear.
    fn lan(&self, members: &[usize], later: u64) -> World {
        let site = self.site();
        let all = Group { patterns: vec!["*".to_owned()], mode: Mode::Enforce, next: None };
        let changed = change_policy::<Error>(&site, on_day(9), |content| {
            content.groups = vec![all];
            Ok(())
        });
        changed.expect("signed");
        let mut random = link_layer::generator(40);
        let error_ms = i64::try_from(later * DAY_S * 1000).expect("small");
        let hosts = members
            .iter()
            .map(|number| Host::new_with_clock(format!("h{number}"), mac(*number), ip(*number), error_ms, &mut random));
        let hosts: Vec<Host> = hosts.collect();
        let pings = Pings::near(members.len(), 0, REACH);
        let mut world = World::of(hosts, pings, 0, mac(HOSTS + 1), Generator::from_seed([7; 32]));
        let mut service = Service::of(&self.place.path().join("site")).expect("read");
        service.look().expect("a policy");
        world.service = Some(service);
        for (place, number) in members.iter().enumerate() {
            world.join(place, HostIdentity::from_pem(&self.own[*number]).expect("an identity"));
        }
        world
    }
}

#[test]
fn three_hundred_hosts_meet_on_day_11_and_one_that_slept_until_day_40_comes_back_by_policy() {
    let mut stage = Stage::set();
    let awake: Vec<usize> = (0..ASLEEP).collect();
    let mut world = stage.lan(&awake, 0);
    world.run_for(Duration::from_secs(8));
    world.pings.take(world.at);
    world.run_for(Duration::from_secs(4));
    let (gaps, pairs) = (world.pings.take(world.at), awake.len() * 2 * REACH);
    assert!(gaps.heard >= 3 * pairs as u64 && gaps.lost == 0, "each pair talks under seal: {gaps:?}");
    // Each has one with two on either side at least.
    assert!(world.associations() >= pairs, "{}", world.associations());
    drop(world);
    let day_40 = on_day(40);
    stage.renew(0..10, day_40);
    let late: Vec<usize> = (0..10).chain([ASLEEP]).collect();
    let mut world = stage.lan(&late, 29);
    world.run_for(Duration::from_secs(12));
    let place = late.len() - 1;
    assert_eq!(world.hosts[place].associations(world.at), 0, "nobody believes a certificate that is over");
    assert!(world.hosts[0].associations(world.at) >= 2);
    for days in [0, 35] {
        assert!(stage.renew_late(days, day_40).is_err(), "it was over on day 4");
    }
    stage.renew_late(37, day_40).expect("the manager lets it");
    let mut world = stage.lan(&late, 29);
    world.run_for(Duration::from_secs(12));
    assert!(world.hosts[place].associations(world.at) >= 2 * REACH);
    let then = world.at;
    world.run_for(Duration::from_secs(3));
    assert!(world.pings.reached_since(place, then), "it hears its neighbours and they hear it");
}
