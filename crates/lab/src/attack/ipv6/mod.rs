//! Attacks 30 to 40: neighbour discovery, routers, DHCPv6 and multicast listeners. What came of them is read from the victim's
//! kernel: its addresses, routes and neighbours.
//!
//! The tools are those of thc-ipv6. Some of them only answer, and guarded hosts ask nobody in clear; others first ask who
//! their victim is, and are not told. Where that is so, a scapy program says in a tool's place what it would have said.

pub mod groups;
pub mod leases;
pub mod neighbours;
pub mod routers;

use std::net::Ipv6Addr;
use std::time::Duration;

use wire::ethernet::Header;
use wire::ipv6::View;
use wire::nd::Message;
use wire::{EtherType, icmp};

use crate::attack::ready::{SOON, address_lines, await_address};
use crate::attack::scene::Scene;
use crate::failure::Failure;
use crate::guard::{Guard, ROUTER};
use crate::net::lan::INTERFACE;
use crate::net::{Frame, Host, Running};

const PROGRAM: &str = include_str!("discovery.py");
/// The site's network, of which its router tells.
const NETWORK: &str = "2001:db8:1:";
/// The network of which attackers tell.
const LIE: &str = "2001:db8:bad:";
/// How long an attack is tried.
const TRIAL: Duration = Duration::from_secs(3);
/// How fast a flood may be: a thousand frames in a second and more, and no more than the machine bears.
const FLOOD_MBIT: u32 = 20;

/// How many ways to everywhere `host` has, through `gateway` or through anybody.
fn default_routes(host: &Host, gateway: Option<Ipv6Addr>) -> Result<usize, Failure> {
    let shown = host.namespace.ip("-6 route show default")?;
    let wanted = gateway.map_or("via ".to_owned(), |address| format!("via {address} "));
    Ok(shown.matches(&wanted).count())
}

/// A frame of ICMPv6 in clear, as far as attacks ask.
#[derive(Clone, Copy, Debug)]
struct Icmp {
    source: Ipv6Addr,
    kind: u8,
    message: Option<Message>,
}

impl Icmp {
    fn of(frame: &Frame) -> Option<Icmp> {
        let (_, packet) = Header::parse(&frame.0).ok().filter(|_| frame.is(EtherType::IPV6))?;
        let view = View::new(packet).ok()?;
        let upper = view.upper_layer().ok()??;
        let kind = *upper.bytes.first().filter(|_| upper.protocol == icmp::PROTOCOL_V6)?;
        Some(Icmp { source: view.source(), kind, message: Message::parse(upper.bytes).ok() })
    }

    fn is(frame: &Frame, kind: u8) -> bool {
        Icmp::of(frame).is_some_and(|icmp| icmp.kind == kind)
    }
}

/// The hosts that take part.
struct Cast {
    victim: Host,
    friend: Host,
    router: Host,
    attacker: Host,
}

impl Cast {
    fn of(scene: &Scene<'_>) -> Result<Cast, Failure> {
        Ok(Cast {
            victim: scene.host("a")?,
            friend: scene.host("b")?,
            router: scene.host(ROUTER)?,
            attacker: scene.host("m")?,
        })
    }

    /// Starts `tool` on the attacker's interface.
    fn launch(&self, scene: &Scene<'_>, tool: &str, words: &[&str]) -> Result<Running, Failure> {
        let mut command = self.attacker.namespace.command(tool);
        command.args(words);
        Running::start(command, &scene.file("thc.log"))
    }

    /// Starts to say again and again, with scapy, what `kind` of message the program makes of `words`.
    fn say(&self, scene: &Scene<'_>, kind: &str, words: &[String]) -> Result<Running, Failure> {
        let mut all = vec![INTERFACE.to_owned(), self.attacker.mac.to_string(), kind.to_owned()];
        all.extend_from_slice(words);
        let mut program = scene.launch_scapy(&self.attacker, PROGRAM, &all)?;
        program.await_output("saying", SOON)?;
        Ok(program)
    }

    /// As [`say`](Cast::say), where hosts are guarded and a tool alone would stay silent.
    fn say_for_tool(&self, scene: &Scene<'_>, kind: &str, words: &[String]) -> Result<Option<Running>, Failure> {
        (scene.guard != Guard::None).then(|| self.say(scene, kind, words)).transpose()
    }

    /// Whether `frame` comes from the attacker and is ICMPv6 of this kind, in clear.
    fn has_sent(&self, frame: &Frame, kind: u8) -> bool {
        frame.source() == self.attacker.mac && Icmp::is(frame, kind)
    }

    /// The site's router forwards, and its dnsmasq tells of [`NETWORK`] and gives addresses in it.
    fn serve(&self, scene: &Scene<'_>) -> Result<Running, Failure> {
        let router = &self.router.namespace;
        router.set_kernel_parameter("ipv6/conf/all/forwarding", "1")?;
        router.ip(&format!("-6 addr add {NETWORK}:1/64 dev {INTERFACE} nodad"))?;
        let mut command = router.command("dnsmasq");
        command.args(["--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root", "--group=root"]);
        command.args(["--enable-ra", &format!("--interface={INTERFACE}"), "--dhcp-leasefile=/dev/null", "--pid-file="]);
        command.arg(format!("--ra-param={INTERFACE},4,600"));
        command.arg(format!("--dhcp-range={NETWORK}:100,{NETWORK}:1ff,slaac,64,12h"));
        Running::start(command, &scene.file("router.log"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_behind_an_extension_header_is_found() {
        let (own, other) = (Ipv6Addr::LOCALHOST, "fe80::2".parse().expect("an address"));
        let solicitation = wire::nd::solicitation(own, wire::MacAddress([2; 6]), other, other);
        let ethernet = [&[2; 12][..], &[0x86, 0xdd]].concat();
        let plain = Frame([&ethernet[..], &solicitation].concat());
        let seen = Icmp::of(&plain).expect("it is one");
        assert_eq!((seen.source, seen.kind, seen.message.and_then(|said| said.target)), (own, 135, Some(other)));
        let header = wire::ipv6::header(own, other, 0, 255, (solicitation.len() - 40 + 8) as u16);
        let hidden = [&ethernet[..], &header, &[58, 0, 1, 4, 0, 0, 0, 0], &solicitation[40..]].concat();
        assert!(Icmp::is(&Frame(hidden), 135));
        assert!(Icmp::of(&Frame([&[2; 12][..], &[8, 0], &solicitation].concat())).is_none(), "no IPv6");
    }
}
