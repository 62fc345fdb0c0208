"""Sends one UDP datagram a number of times, whatever its addresses say.

Arguments: interface, Ethernet source, Ethernet destination, IP source, IP destination, port of both sides, times, file
with the payload.
"""
import sys

from scapy.all import IP, UDP, Ether, conf, sendp

conf.verb = 0
interface, ethernet_source, ethernet_destination, source, destination, port, times, payload = sys.argv[1:9]
with open(payload, "rb") as file:
    datagram = UDP(sport=int(port), dport=int(port)) / file.read()
frame = Ether(src=ethernet_source, dst=ethernet_destination) / IP(src=source, dst=destination) / datagram
sendp(frame, iface=interface, count=int(times), inter=0.1)
