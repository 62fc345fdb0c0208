"""Sends echo requests in the names of many hosts of the LAN, three for each.

Arguments: interface, Ethernet source, Ethernet destination, IP destination, number of the first host and of the last.
"""
import sys

from scapy.all import ICMP, IP, Ether, conf, sendp

conf.verb = 0
interface, ethernet_source, ethernet_destination, destination, first, last = sys.argv[1:7]
ethernet = Ether(src=ethernet_source, dst=ethernet_destination)
hosts = ["10.77.0.%d" % number for number in range(int(first), int(last) + 1)]
sendp([ethernet / IP(src=host, dst=destination) / ICMP() for host in hosts], iface=interface, count=3, inter=0.001)
