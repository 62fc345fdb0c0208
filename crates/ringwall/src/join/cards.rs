//! Which interface is meant.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use system::takeover::{self, Found, Sort, state};

use crate::failure::Failure;

/// The kernel's IPv4 routes.
const ROUTES: &str = "/proc/net/route";
/// What a default route goes to and is masked by.
const ANYWHERE: &str = "00000000";

/// One default route.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Default {
    interface: String,
    metric: u32,
}

/// The interface that was named, else that of the default route, else the only card.
pub(super) fn choose(named: Option<&str>, state_dir: &Path) -> Result<String, Failure> {
    let all = takeover::interfaces()?;
    let name = match named {
        Some(name) => name.to_owned(),
        None => usual(&all, &fs::read_to_string(ROUTES).unwrap_or_default())?,
    };
    let is_guarded = takeover::is_interface_name(&name) && state::load(state_dir, &name)?.is_some();
    check(&name, &all, is_guarded)?;
    Ok(name)
}

/// The interface that is meant where none is named.
fn usual(all: &[Found], routes: &str) -> Result<String, Failure> {
    let defaults = defaults(routes);
    let best = defaults.iter().map(|one| one.metric).min();
    let mut names: Vec<&str> =
        defaults.iter().filter(|one| Some(one.metric) == best).map(|one| one.interface.as_str()).collect();
    if names.is_empty() {
        names = all.iter().filter(|one| one.sort == Sort::Card && one.is_up).map(|one| one.name.as_str()).collect();
    }
    names.sort_unstable();
    names.dedup();
    match names[..] {
        [only] => Ok(only.to_owned()),
        [] => Err(Failure::new(format!(
            "no interface has a default route, and no card is up; name one of {} with --interface",
            listed(all)
        ))),
        _ => Err(Failure::new(format!("several interfaces would do: {}; name one with --interface", names.join(", ")))),
    }
}

fn defaults(routes: &str) -> Vec<Default> {
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [interface, destination, _, _, _, _, metric, mask, ..] = fields[..] else { return None };
        let is_default = destination == ANYWHERE && mask == ANYWHERE;
        let metric = metric.parse().ok()?;
        is_default.then(|| Default { interface: interface.to_owned(), metric })
    };
    routes.lines().skip(1).filter_map(of_line).collect()
}

/// The gateways of `interface`, as the kernel's routes name them.
pub(super) fn gateways(interface: &str) -> Vec<Ipv4Addr> {
    of_routes(|name| name == interface)
}

/// The gateways of all interfaces.
pub(crate) fn default_gateways() -> Vec<Ipv4Addr> {
    of_routes(|_| true)
}

fn of_routes(is_meant: impl Fn(&str) -> bool) -> Vec<Ipv4Addr> {
    let routes = fs::read_to_string(ROUTES).unwrap_or_default();
    let named = routes.lines().skip(1).filter_map(gateway).filter(|(name, _)| is_meant(name));
    let mut found: Vec<Ipv4Addr> = named.map(|(_, gateway)| gateway).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// An interface and a gateway that a route names.
fn gateway(line: &str) -> Option<(&str, Ipv4Addr)> {
    let mut fields = line.split_whitespace();
    let (name, _, gateway) = (fields.next()?, fields.next()?, fields.next()?);
    let number = u32::from_str_radix(gateway, 16).ok()?;
    // The kernel prints the bytes of the address as a number of this machine.
    (number != 0).then(|| (name, number.to_ne_bytes().into()))
}

/// Cards that could be guarded, for a message.
fn listed(all: &[Found]) -> String {
    let can = |one: &&Found| matches!(one.sort, Sort::Card | Sort::Made);
    let cards: Vec<&str> = all.iter().filter(can).map(|one| one.name.as_str()).collect();
    if cards.is_empty() { "no cards that there are".to_owned() } else { cards.join(", ") }
}

fn check(name: &str, all: &[Found], is_guarded: bool) -> Result<(), Failure> {
    let found = all.iter().find(|one| one.name == name);
    let refuse = |what: String| {
        let remedy = format!("name one of {} with --interface", listed(all));
        Err(Failure::new(format!("{name}: {what}; {remedy}")))
    };
    match found.map(|found| &found.sort) {
        _ if is_guarded => Ok(()),
        None => refuse("there is no such interface".to_owned()),
        Some(Sort::Card | Sort::Made) => Ok(()),
        Some(Sort::NotEthernet) => refuse("it speaks no Ethernet, and there is nobody to guard it from".to_owned()),
        Some(Sort::Tap) => refuse("it is a TUN or TAP device of a program, not a card".to_owned()),
        Some(Sort::MemberOf(master)) => refuse(format!("it belongs to {master}, which is what can be guarded")),
        Some(Sort::Virtual(kind)) => refuse(format!("it is a device of the kind {kind}, not a card")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

    fn found(name: &str, sort: Sort) -> Found {
        Found { name: name.to_owned(), sort, is_up: true }
    }

    fn machine() -> Vec<Found> {
        vec![
            found("lo", Sort::NotEthernet),
            found("eth0", Sort::Card),
            found("wlan0", Sort::Card),
            found("rw.eth0", Sort::Tap),
            found("eth2", Sort::MemberOf("br0".to_owned())),
            found("br0", Sort::Made),
            found("macvlan0", Sort::Virtual("macvlan".to_owned())),
            found("bond0", Sort::Made),
            found("eth5", Sort::MemberOf("bond0".to_owned())),
        ]
    }

    fn routes(lines: &[(&str, &str, u32)]) -> String {
        let line = |(interface, destination, metric): &(&str, &str, u32)| {
            format!("{interface}\t{destination}\t010200C0\t0003\t0\t0\t{metric}\t{destination}\t0\t0\t0\n")
        };
        lines.iter().map(line).fold(HEADER.to_owned(), |all, line| all + &line)
    }

    #[test]
    fn the_best_default_route_decides_and_equal_ones_are_named() {
        let two = routes(&[("eth0", ANYWHERE, 100), ("wlan0", ANYWHERE, 600), ("wlan0", "0000A8C0", 0)]);
        assert_eq!(usual(&machine(), &two).expect("one is better"), "eth0");
        let equal = routes(&[("eth0", ANYWHERE, 0), ("wlan0", ANYWHERE, 0)]);
        let refused = usual(&machine(), &equal).expect_err("either would do").to_string();
        assert!(refused.contains("eth0, wlan0"), "{refused}");
    }

    #[test]
    fn without_a_default_route_the_only_card_that_is_up_is_meant() {
        let refused = usual(&machine(), HEADER).expect_err("two cards").to_string();
        assert!(refused.contains("eth0, wlan0"), "{refused}");
        let alone: Vec<Found> = machine().into_iter().filter(|one| one.name != "wlan0").collect();
        assert_eq!(usual(&alone, HEADER).expect("one card"), "eth0");
        assert!(usual(&[], HEADER).is_err());
    }

    #[test]
    fn what_is_no_card_is_refused_with_those_that_are() {
        for name in ["lo", "rw.eth0", "eth2", "macvlan0", "eth5", "eth9"] {
            let refused = check(name, &machine(), false).expect_err(name).to_string();
            assert!(refused.contains("eth0, wlan0, br0, bond0"), "{refused}");
        }
        // Taken over by a namespace of its own, a card's name is that of a TAP of ours.
        assert!(check("rw.eth0", &machine(), true).is_ok());
        assert!(check("eth0", &machine(), false).is_ok());
        assert!(check("bond0", &machine(), false).is_ok());
    }

    #[test]
    fn a_gateway_is_read_as_the_kernel_prints_it() {
        let text = routes(&[("eth0", ANYWHERE, 0)]);
        let line = text.lines().nth(1).expect("a route");
        assert_eq!(gateway(line), Some(("eth0", [192, 0, 2, 1].into())));
    }
}
