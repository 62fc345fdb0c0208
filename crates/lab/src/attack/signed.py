"""Sends ARP messages with the trailer of S-ARP, whole or broken, as docs/s-arp.md describes it.

Arguments: kind, interface, Ethernet source and destination, operation, sender's hardware and protocol address, target's
hardware and protocol address, times, seconds between, and for kind "signed" a PEM file with a private key.

Kinds: signed (a proper message), malformed (lengths that point beyond the frame, and a header cut short), flood (bad
signatures under a thousand made-up sender addresses).
"""
import re
import struct
import sys
import time

from scapy.all import ARP, Ether, Raw, conf

conf.verb = 0
kind, interface, source, destination, operation, sha, spa, tha, tpa = sys.argv[1:10]
times, pause = int(sys.argv[10]), float(sys.argv[11])
MAGIC = 0x7599E11E


def arp(sender):
    return bytes(ARP(op=operation, hwsrc=sha, psrc=sender, hwdst=tha, pdst=tpa))


def header(signature_len, data_len):
    return struct.pack("!IBBHI", MAGIC, 0, signature_len, data_len, int(time.time()))


def fraction():
    return struct.pack("!I", int(time.time() % 1 * 2**32))


def signed():
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    block = re.search("-----BEGIN PRIVATE KEY-----.*?-----END PRIVATE KEY-----\n", open(sys.argv[12]).read(), re.S)
    key = load_pem_private_key(block.group().encode(), None)
    data = fraction()
    body = arp(spa) + header(0, len(data)) + data
    return [arp(spa) + header(64, len(data)) + data + key.sign(body)]


def malformed():
    whole = arp(spa)
    return [
        whole + header(255, 4) + bytes(40),
        whole + header(64, 65535) + bytes(40),
        whole + struct.pack("!IBB", MAGIC, 0, 64),
    ]


def flood():
    senders = ["10.77.%d.%d" % (1 + number // 250, 1 + number % 250) for number in range(1000)]
    return [arp(sender) + header(64, 4) + fraction() + bytes(64) for sender in senders]


socket = conf.L2socket(iface=interface)
ethernet = bytes(Ether(src=source, dst=destination, type=0x0806))
for _ in range(times):
    for payload in {"signed": signed, "malformed": malformed, "flood": flood}[kind]():
        socket.send(Raw(ethernet + payload))
    time.sleep(pause)
