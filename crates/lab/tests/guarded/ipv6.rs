//! IPv6 with IPv4 off: hosts that make their own addresses, or get them by DHCPv6, talk under the seal; routers, and nobody
//! else, tell them about networks; and who is not the owner of an address does not get its frames.

use std::io::{Read, Write};
use std::net::{Ipv6Addr, SocketAddrV6, TcpListener, TcpStream};
use std::path::Path;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::process;
use ringwall_lab::net::{Host, Running};
use rustix::process::Signal;

use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform};

const ATTACK: &str = include_str!("ipv6_attack.py");
/// What dhclient runs when something happens: enters an address that it got.
const DHCLIENT_SCRIPT: &str =
    "#!/bin/sh\n[ -z \"$new_ip6_address\" ] || ip -6 addr replace \"$new_ip6_address/128\" dev \"$interface\"\n";
const NETWORK: &str = "2001:db8:1:";
/// What the attackers tell of.
const LIE: &str = "2001:db8:bad:";

/// The link-local address that `host` makes of its hardware address.
fn local(host: &Host) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets[..2].copy_from_slice(&[0xfe, 0x80]);
    octets[8..].copy_from_slice(&wire::nd::interface_identifier(host.mac));
    octets.into()
}

/// Guards `name` with IPv6 on, IPv4 off and addresses for privacy; its certificate names no IP address.
fn guard(stage: &Stage, name: &str, role: &str) -> Result<Guarded, Failure> {
    let host = stage.host(name);
    switch_to_ipv6(host)?;
    let identity = stage.site.issue(name, &format!("--mac {} --role {role}", host.mac))?;
    stage.guard(name, Plan::default().identity(identity))
}

fn switch_to_ipv6(host: &Host) -> Outcome {
    for scope in ["all", "default"] {
        host.namespace.set_kernel_parameter(&format!("ipv6/conf/{scope}/disable_ipv6"), "0")?;
    }
    host.namespace.set_kernel_parameter(&format!("ipv6/conf/{INTERFACE}/disable_ipv6"), "0")?;
    host.namespace.set_kernel_parameter(&format!("ipv6/conf/{INTERFACE}/use_tempaddr"), "2")?;
    host.namespace.ip(&format!("-4 addr flush dev {INTERFACE}")).map(drop)
}

/// What `ip` shows of the addresses of this host, one line each.
fn addresses(host: &Host) -> Result<Vec<String>, Failure> {
    let shown = host.namespace.ip(&format!("-6 -o addr show dev {INTERFACE}"))?;
    Ok(shown.lines().map(str::to_owned).collect())
}

/// The address of this host whose line has all of `words`, once it is usable.
fn await_address(host: &Host, words: &[&str]) -> Result<Ipv6Addr, Failure> {
    let mut found = None;
    process::until(&format!("an address of {} with {words:?}", host.name), SOON * 2, || {
        let lines = addresses(host)?;
        let line =
            lines.iter().find(|line| words.iter().all(|word| line.contains(word)) && !line.contains("tentative"));
        found = line.and_then(|line| line.split_whitespace().nth(3)?.split('/').next()?.parse().ok());
        Ok(found.is_some())
    })?;
    Ok(found.expect("just found"))
}

fn pings(from: &Host, to: Ipv6Addr) -> Result<bool, Failure> {
    let mut ping = from.namespace.command("ping");
    ping.args(["-6", "-n", "-c", "1", "-W", "2", &format!("{to}%{INTERFACE}")]);
    Ok(process::ask(ping, &[])?.status.success())
}

fn await_ping(from: &Host, to: Ipv6Addr) -> Outcome {
    process::until(&format!("a ping from {} to {to}", from.name), SOON * 2, || pings(from, to))
}

/// A megabyte by TCP to `address` of `to`.
fn send_by_tcp(from: &Host, to: &Host, address: Ipv6Addr) -> Outcome {
    const LEN: usize = 1 << 20;
    let doing = |error| Failure::Io { doing: "TCP over IPv6".to_owned(), source: error };
    let listener = to.namespace.enter(|| TcpListener::bind("[::]:5001").map_err(doing))?;
    let shown = from.namespace.ip(&format!("-o link show dev {INTERFACE}"))?;
    let scope = shown.split(':').next().and_then(|index| index.parse().ok()).expect("an interface index");
    let target = SocketAddrV6::new(address, 5001, 0, scope);
    let mut stream = from.namespace.enter(|| TcpStream::connect(target).map_err(doing))?;
    let sender = std::thread::spawn(move || stream.write_all(&[7; LEN]));
    let (mut accepted, _) = listener.accept().map_err(doing)?;
    let mut received = Vec::new();
    accepted.read_to_end(&mut received).map_err(doing)?;
    sender.join().expect("it does not panic").map_err(doing)?;
    assert!(received.len() == LEN && received.iter().all(|byte| *byte == 7), "{} bytes arrived", received.len());
    Ok(())
}

/// A router that tells of [`NETWORK`] and gives addresses in it.
fn serve_network(router: &Host, directory: &Path, network: &str) -> Result<Running, Failure> {
    std::fs::create_dir_all(directory).map_err(Failure::file("making", directory))?;
    router.namespace.set_kernel_parameter("ipv6/conf/all/forwarding", "1")?;
    router.namespace.ip(&format!("-6 addr add {network}:1/64 dev {INTERFACE} nodad"))?;
    let mut command = router.namespace.command("dnsmasq");
    command.args([
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--port=0",
        "--user=root",
        "--group=root",
        "--enable-ra",
    ]);
    command.arg(format!("--interface={INTERFACE}")).arg(format!("--ra-param={INTERFACE},4,600"));
    command.arg(format!("--dhcp-range={network}:100,{network}:1ff,slaac,64,12h"));
    command.arg(format!("--dhcp-leasefile={}", directory.join("leases").display())).arg("--pid-file=");
    Running::start(command, &directory.join("log"))
}

/// Runs the attacker's program on `host` with these words.
fn attack(stage: &Stage, host: &Host, words: &[&str]) -> Outcome {
    let file = stage.file("ipv6_attack.py");
    std::fs::write(&file, ATTACK).map_err(Failure::file("writing", &file))?;
    let mut command = host.namespace.command("/usr/bin/python3");
    command.arg(&file).arg(INTERFACE).arg(host.mac.to_string()).args(words);
    process::must(command).map(drop)
}

fn lacks(tools: &[&str]) -> bool {
    let missing: Vec<_> = tools.iter().filter(|tool| !process::installed(tool)).collect();
    if !missing.is_empty() {
        eprintln!("SKIPPED IPv6 under CLL: needs {missing:?}");
    }
    !missing.is_empty()
}

#[test]
fn hosts_without_ipv4_make_their_own_addresses_and_talk() {
    if lacks(&["dnsmasq", "dhclient"]) {
        return;
    }
    perform(&["a", "b", "r"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let (near, far) = (guard(stage, "a", "host")?, guard(stage, "b", "host")?);
        let router = guard(stage, "r", "router")?;
        await_ping(a, local(b))?;
        send_by_tcp(a, b, local(b))?;
        let serving = serve_network(stage.host("r"), &stage.file("server"), NETWORK)?;
        for host in [a, b] {
            let lasting = await_address(host, &[NETWORK, "mngtmpaddr"])?;
            let private = await_address(host, &[NETWORK, "temporary"])?;
            assert_ne!(lasting, private);
        }
        let private = await_address(b, &[NETWORK, "temporary"])?;
        await_ping(a, private)?;
        send_by_tcp(a, b, private)?;
        let leased = lease(stage, a)?;
        await_ping(b, leased)?;
        let shown = far.ask(&["peers", "--json"])?.stdout;
        assert!(shown.contains(&leased.to_string()) && shown.contains(&local(a).to_string()), "{shown}");
        for guarded in [&near, &far, &router] {
            for reason in ["address-taken", "inner-nd", "inner-role", "inner-source", "ipv6"] {
                assert_eq!(guarded.drops(reason)?, 0, "{reason} at {}", guarded.host.name);
            }
        }
        serving.stop(Signal::TERM);
        Ok(())
    });
}

/// An address by DHCPv6.
fn lease(stage: &Stage, host: &Host) -> Result<Ipv6Addr, Failure> {
    use std::os::unix::fs::PermissionsExt;
    let script = stage.file("dhclient-script");
    std::fs::write(&script, DHCLIENT_SCRIPT).map_err(Failure::file("writing", &script))?;
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&script, executable).map_err(Failure::file("changing", &script))?;
    let mut command = host.namespace.command("dhclient");
    command.args(["-6", "-1", "-d", "-cf", "/dev/null", "-sf"]).arg(&script);
    command.arg("-lf").arg(stage.file("leases6")).arg("-pf").arg(stage.file("pid6")).arg(INTERFACE);
    let client = Running::start(command, &stage.file("dhclient6.log"))?;
    let leased = await_address(host, &[NETWORK, "/128"])?;
    client.stop(Signal::TERM);
    Ok(leased)
}

#[test]
fn nobody_but_the_owner_and_the_router_is_believed() {
    if lacks(&["dnsmasq", "/usr/bin/scapy"]) {
        return;
    }
    perform(&["a", "b", "c", "r", "x"], |stage| {
        let (a, b, insider, outsider) = (stage.host("a"), stage.host("b"), stage.host("c"), stage.host("x"));
        let (near, _far) = (guard(stage, "a", "host")?, guard(stage, "b", "host")?);
        let (_insiders, _router) = (guard(stage, "c", "host")?, guard(stage, "r", "router")?);
        switch_to_ipv6(outsider)?;
        let serving = serve_network(stage.host("r"), &stage.file("server"), NETWORK)?;
        let victim = await_address(b, &[NETWORK, "mngtmpaddr"])?.to_string();
        await_address(a, &[NETWORK, "mngtmpaddr"])?;
        await_ping(a, local(b))?;
        await_ping(a, victim.parse().expect("an address"))?;
        await_ping(insider, local(a))?;
        for attacker in [outsider, insider] {
            let own = local(attacker).to_string();
            let (target_mac, target) = (a.mac.to_string(), local(a).to_string());
            attack(stage, attacker, &[&own, &target_mac, &target, &victim, &format!("{LIE}:")])?;
            assert!(pings(a, victim.parse().expect("an address"))?, "b is reached while {} attacks", attacker.name);
            let routes = a.namespace.ip("-6 route show")?;
            assert!(!routes.contains(LIE) && !routes.contains(&own), "{} made a route: {routes}", attacker.name);
            assert!(!addresses(a)?.iter().any(|line| line.contains(LIE)), "{} gave an address", attacker.name);
            let neighbours = a.namespace.ip(&format!("-6 neigh show dev {INTERFACE}"))?;
            let lines = neighbours.lines().filter(|line| line.starts_with(&victim));
            let believed = lines.filter(|line| line.contains(&attacker.mac.to_string())).count();
            assert_eq!(believed, 0, "{neighbours}");
        }
        assert!(near.drops("unsealed")? > 0, "the outsider's frames arrived");
        for reason in ["inner-role", "address-taken"] {
            assert!(near.drops(reason)? > 0, "the insider's frames arrived: {reason}");
        }
        serving.stop(Signal::TERM);
        Ok(())
    });
}
