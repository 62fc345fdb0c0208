"""Sends one ARP message a number of times.

Arguments: interface, Ethernet source, Ethernet destination, operation, sender's hardware and protocol address, target's
hardware and protocol address, times, seconds between.
"""
import sys

from scapy.all import ARP, Ether, conf, sendp

conf.verb = 0
interface, source, destination, operation, sha, spa, tha, tpa = sys.argv[1:9]
message = ARP(op=operation, hwsrc=sha, psrc=spa, hwdst=tha, pdst=tpa)
sendp(Ether(src=source, dst=destination) / message, iface=interface, count=int(sys.argv[9]), inter=float(sys.argv[10]))
