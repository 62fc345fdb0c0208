"""Sends one UDP datagram behind two tags of VLAN 0, a number of times.

Arguments: interface, Ethernet source, Ethernet destination, IP source, IP destination, port of both sides, file with the payload.
"""
import sys

from scapy.all import IP, UDP, Dot1Q, Ether, conf, sendp

conf.verb = 0
interface, ethernet_source, ethernet_destination, source, destination, port, payload = sys.argv[1:8]
with open(payload, "rb") as file:
    datagram = UDP(sport=int(port), dport=int(port)) / file.read()
tags = Dot1Q(vlan=0) / Dot1Q(vlan=0)
frame = Ether(src=ethernet_source, dst=ethernet_destination) / tags / IP(src=source, dst=destination) / datagram
sendp(frame, iface=interface, count=5, inter=0.05)
