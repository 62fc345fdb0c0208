//! The manager: the site's directory, what he types, and how machines enrol with his tokens.
//!
//! Each act is what a command of `ringwall site` does, by the same functions.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use authority::directory::{Delivery, Invitation, Sharing, acting, apply, change_policy};
use authority::enrolment::by_service::{Application, Outcome};
use authority::enrolment::by_token::Applying;
use authority::files::Overwrite;
use authority::rollout::told::OfGroup;
use authority::rollout::trial::{self, Trial, allows};
use authority::{Directory, Error, Request};
use bump::Generator;
use identity::policy::{Group, Mode};
use identity::token::Token;
use identity::{HostIdentity, Profile, Role};
use wire::MacAddress;
use wire::policy::LegacyHost;

use super::service::{Service, unreadable};
use crate::failure::Failure;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A machine of the manager's table.
#[derive(Clone, Debug)]
pub struct Listed {
    pub name: String,
    pub mac: MacAddress,
    pub ip: Ipv4Addr,
    pub is_router: bool,
}

/// The manager.
pub struct Manager {
    place: tempfile::TempDir,
    random: Generator,
    tokens: BTreeMap<String, Token>,
    /// What he has typed.
    pub typed: Vec<String>,
}

/// Fills from the run's generator.
fn from(random: &mut Generator) -> impl FnMut(&mut [u8]) + '_ {
    |bytes: &mut [u8]| bytes.fill_with(|| random.bytes::<1>()[0])
}

impl Manager {
    /// One who has nothing yet.
    pub fn new(random: &mut Generator) -> Result<Manager, Failure> {
        let place = tempfile::tempdir().map_err(Failure::io("making a directory for the site"))?;
        let random = Generator::from_seed(random.bytes());
        Ok(Manager { place, random, tokens: BTreeMap::new(), typed: Vec::new() })
    }

    /// Where the site is.
    pub fn directory(&self) -> PathBuf {
        self.place.path().join("site")
    }

    fn types(&mut self, line: &str) {
        self.typed.push(line.to_owned());
    }

    /// As each command opens it anew.
    fn site(&self) -> Result<Directory, Failure> {
        Ok(acting(Directory::open(&self.directory()).map_err(unreadable)?, "manager"))
    }

    /// The site, and the identity of the authority's own machine.
    pub fn found(&mut self, own: &Listed, unix_s: u64) -> Result<HostIdentity, Failure> {
        self.types("ringwall site init --name office");
        let path = self.directory();
        let founded =
            Directory::init(&path, "office", 3650 * DAY, Profile::Modern, &mut from(&mut self.random), unix_s);
        founded.map_err(unreadable)?;
        self.types(&format!("ringwall site issue --name {} --mac {} --ip {} --out FILE", own.name, own.mac, own.ip));
        let request = Request::new(&own.name, own.mac, vec![own.ip]).map_err(unreadable)?;
        let (site, output) = (self.site()?, self.place.path().join("identity.pem"));
        let delivery = Delivery { output: &output, overwrite: Overwrite::Never, sharing: Sharing::Refused };
        let issued = site.issue_identity(&request, &delivery, &mut from(&mut self.random), unix_s);
        issued.map_err(unreadable)?;
        let text = authority::files::read(&output).map_err(unreadable)?;
        HostIdentity::from_pem(&text).map_err(unreadable)
    }

    /// Tokens for `hosts`, and a policy that has all observe and admits `printers`: `site import`.
    pub fn import(&mut self, hosts: &[Listed], printers: &[Listed], unix_s: u64) -> Result<(), Failure> {
        self.types("ringwall site survey --table inventory.csv --listen 6s --csv > hosts.csv   (not simulated)");
        self.types("ringwall site import hosts.csv --by-service --policy --out tokens");
        let invitation = |one: &Listed| Invitation {
            name: one.name.clone(),
            role: if one.is_router { Role::Router } else { Role::Host },
            mac: Some(one.mac),
            addresses: vec![one.ip],
            subnets: Vec::new(),
            preapproved: !one.is_router,
            by_service: true,
            validity: 30 * DAY,
            valid: 7 * DAY,
        };
        let invitations: Vec<Invitation> = hosts.iter().map(invitation).collect();
        let site = self.site()?;
        let made = site.invite_all(&invitations, &mut from(&mut self.random), unix_s).map_err(unreadable)?;
        self.tokens = hosts.iter().map(|one| one.name.clone()).zip(made).collect();
        let legacy = printers.iter().map(|one| legacy(one.mac, one.ip)).collect();
        let all = Group { patterns: vec!["*".to_owned()], mode: Mode::Observe, next: None };
        let changed = change_policy::<Error>(&site, unix_s, |content| {
            (content.legacy, content.groups) = (legacy, vec![all]);
            Ok(())
        });
        changed.map(drop).map_err(unreadable)
    }

    /// The services run from now on.
    pub fn enable(&mut self) -> Result<Service, Failure> {
        self.types("systemctl enable --now ringwall-signer ringwall-site");
        let mut service = Service::of(&self.directory())?;
        service.look()?;
        Ok(service)
    }

    /// What happens at the service and on the machine when it joins by its token; the router's
    /// waits for the manager.
    pub fn join(&mut self, one: &Listed, unix_s: u64) -> Result<HostIdentity, Failure> {
        let site = self.site()?;
        let missing = || unreadable(format!("no token for {}", one.name));
        // It goes to the machine as text.
        let text = self.tokens.remove(&one.name).ok_or_else(missing)?.to_text();
        let token = text.parse::<Token>().map_err(unreadable)?;
        let mut random = Generator::from_seed(self.random.bytes());
        let applying = Applying::begin(&token, one.mac, &[one.ip], &mut from(&mut random)).map_err(unreadable)?;
        let asks = |has_installed: bool| Application::new(&token, &applying, one.mac, has_installed);
        let mut heard = apply(&site, &asks(false), &mut from(&mut random), unix_s).map_err(unreadable)?;
        if heard == Outcome::Waiting && one.is_router {
            self.types(&format!("ringwall site approve {}", one.name));
            let approved = site.approve(&one.name, None, Sharing::Refused, &mut from(&mut random), unix_s);
            approved.map_err(unreadable)?;
            heard = apply(&site, &asks(false), &mut from(&mut random), unix_s).map_err(unreadable)?;
        }
        let Outcome::Approved(sealed) = heard else { return Err(unreadable(format!("{}: {heard:?}", one.name))) };
        let (_, identity) = applying.install(&token, sealed.bytes(), unix_s).map_err(unreadable)?;
        match apply(&site, &asks(true), &mut from(&mut random), unix_s).map_err(unreadable)? {
            Outcome::Fetched => Ok(identity),
            other => Err(unreadable(format!("{}: {other:?} after it was installed", one.name))),
        }
    }

    /// `site policy mode`, and perhaps what follows at a time.
    pub fn mode(
        &mut self,
        line: &str,
        group: &str,
        (mode, next): (Mode, Option<(u64, Mode)>),
        unix_s: u64,
    ) -> Result<(), Failure> {
        self.types(line);
        self.change(unix_s, |groups| {
            groups.retain(|one| one.patterns.join(",") != group);
            groups.push(Group { patterns: vec![group.to_owned()], mode, next });
        })
    }

    /// Takes a group out of the policy.
    pub fn mode_none(&mut self, group: &str, unix_s: u64) -> Result<(), Failure> {
        self.types(&format!("ringwall site policy mode '{group}' none"));
        self.change(unix_s, |groups| groups.retain(|one| one.patterns.join(",") != group))
    }

    fn change(&self, unix_s: u64, change: impl FnOnce(&mut Vec<Group>)) -> Result<(), Failure> {
        let changed = change_policy::<Error>(&self.site()?, unix_s, |content| {
            change(&mut content.groups);
            Ok(())
        });
        changed.map(drop).map_err(unreadable)
    }

    /// Another printer at an address: `site policy legacy add`.
    pub fn replace_printer(&mut self, ip: Ipv4Addr, mac: MacAddress, unix_s: u64) -> Result<(), Failure> {
        self.types(&format!("ringwall site policy legacy add --ip {ip} --mac {mac}"));
        let changed = change_policy::<Error>(&self.site()?, unix_s, |content| {
            content.legacy.retain(|one| one.ip != ip);
            content.legacy.push(legacy(mac, ip));
            Ok(())
        });
        changed.map(drop).map_err(unreadable)
    }

    /// `site enforce`, its first two steps: looks at the forecast, and has the group enforce for a
    /// while.
    pub fn begin_trial(
        &mut self,
        service: &Service,
        group: &str,
        (lasts, since_ms, except): (Duration, u64, MacAddress),
        now_ms: u64,
    ) -> Result<Trial, Failure> {
        self.types(&format!(
            "ringwall site enforce '{group}' --for {}s --except {except} --since TIME",
            lasts.as_secs()
        ));
        let told = service.told(now_ms / 1000)?;
        allows(&OfGroup::of(&told, group, since_ms, now_ms).without(&[except])).map_err(unreadable)?;
        let version = trial::begin(&self.site()?, group, now_ms / 1000, lasts).map_err(unreadable)?;
        Ok(Trial { began_ms: now_ms, lasts_ms: lasts.as_millis() as u64, version })
    }

    /// Its last step, within the same command.
    pub fn keep_trial(&self, group: &str, trial: &Trial, unix_s: u64) -> Result<(), Failure> {
        trial::keep(&self.site()?, group, unix_s, trial.version).map(drop).map_err(unreadable)
    }

    /// `site forecast`.
    pub fn forecast(&mut self) {
        self.types("ringwall site forecast --since TIME");
    }
}

fn legacy(mac: MacAddress, ip: Ipv4Addr) -> LegacyHost {
    LegacyHost { mac, ip, router: false, broadcast: false }
}
