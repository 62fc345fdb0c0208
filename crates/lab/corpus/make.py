#!/usr/bin/env python3
"""Writes captures of many protocols into a folder, for `ringwall-lab corpus`: make.py FOLDER.

Each protocol has a folder with two captures: plain Ethernet in pcap, and one whose link, format or
addresses differ, in turn. A message is the first that its protocol's document shows or asks for;
what the scrubber makes of it is the question, not what an application would. Needs Python alone,
and zstd for some of the files; the same files come out each time.
"""

import gzip
import os
import shutil
import struct
import subprocess
import sys

CLIENT, SERVER = bytes([198, 51, 100, 7]), bytes([192, 0, 2, 1])
CLIENT6, SERVER6 = bytes.fromhex("20010db8" + "0" * 23 + "7"), bytes.fromhex("20010db80001" + "0" * 19 + "1")
MAC_C, MAC_S = bytes.fromhex("020000000007"), bytes.fromhex("020000000001")
BROADCAST = b"\xff" * 6
H = bytes.fromhex


def total(data):
    data += b"\0" * (len(data) % 2)
    value = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while value >> 16:
        value = (value & 0xFFFF) + (value >> 16)
    return value


def ip4(source, target, protocol, payload, ttl=64):
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0x4000, ttl, protocol, 0) + source + target
    return head[:10] + struct.pack("!H", 0xFFFF ^ total(head)) + head[12:] + payload


def ip6(source, target, protocol, payload, ttl=64):
    return struct.pack("!IHBB", 6 << 28, len(payload), protocol, ttl) + source + target + payload


class Way:
    """Between whom a packet goes: addresses of either version."""

    def __init__(self, version):
        self.version = version
        self.ends = (CLIENT, SERVER) if version == 4 else (CLIENT6, SERVER6)

    def packet(self, up, protocol, payload, ttl=64, target=None):
        source, other = self.ends if up else self.ends[::-1]
        return (ip4 if self.version == 4 else ip6)(source, target or other, protocol, payload, ttl)

    def summed(self, up, protocol, payload, at, target=None):
        source, other = self.ends if up else self.ends[::-1]
        pseudo = source + (target or other) + struct.pack("!II", len(payload), protocol)
        value = 0xFFFF ^ total(pseudo + payload) or 0xFFFF
        return payload[:at] + struct.pack("!H", value) + payload[at + 2 :]

    def udp(self, up, ports, data, ttl=64, target=None):
        source, other = ports if up else ports[::-1]
        head = struct.pack("!HHHH", source, other, 8 + len(data), 0)
        return self.packet(up, 17, self.summed(up, 17, head + data, 6, target), ttl, target)

    def tcp(self, up, ports, sequence, acknowledged, flags, data=b"", options=b""):
        source, other = ports if up else ports[::-1]
        head = struct.pack(
            "!HHIIBBHHH", source, other, sequence, acknowledged, (20 + len(options)) << 2, flags, 64240, 0, 0
        )
        return self.packet(up, 6, self.summed(up, 6, head + options + data, 16))


def conversation(way, port, asked, answered):
    """A whole connection: handshake, a question, an answer, and both ends."""
    ports, c, s = (49152, port), 1000, 5000
    offer = H("020405b40402080a0000000100000000") + H("01030307")
    accept = H("020405b40402080a0000000200000001") + H("01030307")
    stamp = H("0101080a0000000200000002")
    packets = [
        way.tcp(True, ports, c, 0, 2, options=offer),
        way.tcp(False, ports, s, c + 1, 0x12, options=accept),
    ]
    c, s = c + 1, s + 1
    packets.append(way.tcp(True, ports, c, s, 0x10, options=stamp))
    for up, data in ((True, asked), (False, answered)):
        if data:
            packets.append(way.tcp(up, ports, *((c, s) if up else (s, c)), 0x18, data, stamp))
            c, s = (c + len(data), s) if up else (c, s + len(data))
            packets.append(way.tcp(not up, ports, *((s, c) if up else (c, s)), 0x10, options=stamp))
    packets.append(way.tcp(True, ports, c, s, 0x11, options=stamp))
    packets.append(way.tcp(False, ports, s, c + 1, 0x11, options=stamp))
    packets.append(way.tcp(True, ports, c + 1, s + 1, 0x10, options=stamp))
    return packets


def http(path, head=b""):
    return b"GET " + path + b" HTTP/1.1\r\nHost: www.example\r\n" + head + b"\r\n"


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HELLO = H("160301002e0100002a0303" + "11" * 32 + "000002" + "c02f" + "0100")
SERVER_HELLO = H("160303002a020000260303" + "22" * 32 + "00c02f00")
RPC = H("80000028") + struct.pack("!10I", 7, 0, 2, 100000, 2, 0, 0, 0, 0, 0)
RPC_OK = H("80000018") + struct.pack("!6I", 7, 1, 0, 0, 0, 0)
# Port, what the client says first, what the server answers.
TCP = {
    "http": (80, http(b"/"), OK),
    "http-proxy": (3128, b"CONNECT www.example:443 HTTP/1.1\r\n\r\n", OK),
    "websocket": (
        80,
        http(b"/chat", b"Upgrade: websocket\r\nConnection: Upgrade\r\n"),
        b"HTTP/1.1 101 Switching\r\n\r\n",
    ),
    "http2": (80, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + H("000000040000000000"), H("000000040100000000")),
    "tls": (443, HELLO, SERVER_HELLO),
    "ftp": (21, b"USER anonymous\r\n", b"331 Password\r\n"),
    "ssh": (22, b"SSH-2.0-OpenSSH_9.2\r\n", b"SSH-2.0-OpenSSH_9.2\r\n"),
    "telnet": (23, H("fffd03fffb18"), H("fffb03fffd18")),
    "smtp": (25, b"EHLO client.example\r\n", b"250 mail.example\r\n"),
    "whois": (43, b"example\r\n", b"No match\r\n"),
    "tacacs": (49, H("c00101000000002a0000000801000101"), H("c00102000000002a00000006010000000000")),
    "dns-tcp": (
        53,
        H("001d") + H("12340100000100000000000003777777076578616d706c650000010001"),
        H("000c") + H("123481800000000000000000"),
    ),
    "gopher": (70, b"\r\n", b"iwelcome\r\n.\r\n"),
    "finger": (79, b"root\r\n", b"Login: root\r\n"),
    "kerberos-tcp": (88, H("00000004") + H("6a020500"), H("00000004") + H("7e020500")),
    "pop3": (110, b"STAT\r\n", b"+OK 0 0\r\n"),
    "rpcbind": (111, RPC, RPC_OK),
    "ident": (113, b"80, 49152\r\n", b"80, 49152 : USERID : UNIX : root\r\n"),
    "nntp": (119, b"LIST\r\n", b"215 list\r\n.\r\n"),
    "msrpc": (135, H("05000b0310000000100000000100000000"[:32]), H("05000c03100000001000000001000000")),
    "netbios-ssn": (139, H("81000044") + b"A" * 68, H("82000000")),
    "imap": (143, b"a1 CAPABILITY\r\n", b"a1 OK\r\n"),
    "bgp": (179, b"\xff" * 16 + H("001d0104fde8005ac633640700"), b"\xff" * 16 + H("001304")),
    "irc": (194, b"NICK a\r\nUSER a 0 * :a\r\n", b":s 001 a :Welcome\r\n"),
    "ldap": (389, H("300c020101600702010304008000"), H("300c02010161070a010004000400")),
    "smb2": (
        445,
        H("00000044") + b"\xfeSMB" + H("4000") + bytes(62),
        H("00000044") + b"\xfeSMB" + H("4000") + bytes(62),
    ),
    "rtsp": (554, b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n", b"RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n"),
    "lpd": (515, b"\2lp\n", b"\0"),
    "ipp": (631, b"POST /ipp HTTP/1.1\r\nContent-Length: 0\r\n\r\n", OK),
    "msdp": (639, H("0100080000000000"), H("04000300")[:3]),
    "ldp": (
        646,
        H("0001001ec0000201000002000014000000010500000e0001001e00000000c63364070000")[:32],
        H("0001000ac00002010000"),
    ),
    "rsync": (873, b"@RSYNCD: 31.0\n", b"@RSYNCD: 31.0\n"),
    "socks5": (1080, H("050100"), H("0500")),
    "socks4": (1080, H("04010050c000020100"), H("005a000000000000")),
    "mssql": (1433, H("1201001a00000100") + bytes(18), H("0401000900000100ff")),
    "oracle": (1521, H("003a000001000000") + bytes(50), H("0008000002000000")),
    "mqtt": (1883, H("100c00044d5154540402003c0000"), H("20020000")),
    "nfs": (2049, RPC, RPC_OK),
    "cvs": (2401, b"BEGIN AUTH REQUEST\n", b"I LOVE YOU\n"),
    "docker": (2375, http(b"/version"), OK),
    "etcd": (2379, http(b"/health"), OK),
    "zookeeper": (2181, b"ruok", b"imok"),
    "iscsi": (3260, H("43870000") + bytes(44), H("23870000") + bytes(44)),
    "mysql": (3306, b"", H("0a000000") + b"\x0a8.0.36\0\0\0"),
    "rdp": (3389, H("0300000b06e00000000000"), H("0300000b06d00000123400")),
    "diameter": (
        3868,
        H("0100001480000101000000000000000100000001"),
        H("0100001400000101000000000000000100000001"),
    ),
    "svn": (3690, b"( 2 ( ) 1:a ) ", b"( success ( 2 2 ( ) ( ) ) ) "),
    "pcep": (4189, H("2001000c0110000820 1e7801".replace(" ", "")), H("20020004")),
    "xmpp": (5222, b"<?xml version='1.0'?><stream:stream to='example'>", b"<stream:features/>"),
    "sip-tcp": (5060, b"OPTIONS sip:a SIP/2.0\r\n\r\n", b"SIP/2.0 200 OK\r\n\r\n"),
    "postgresql": (5432, H("0000000804d2162f"), b"N"),
    "amqp": (5672, b"AMQP\0\0\x09\x01", H("01000000000004000a000ace")),
    "vnc": (5900, b"RFB 003.008\n", b"RFB 003.008\n"),
    "couchdb": (5984, http(b"/_up"), OK),
    "x11": (6000, H("6c000b000000000000000000"), H("01000b0000000000")),
    "redis": (6379, b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"),
    "bittorrent": (6881, b"\x13BitTorrent protocol" + bytes(48), b"\x13BitTorrent protocol" + bytes(48)),
    "openflow": (6653, H("0400000800000001"), H("0400000800000001")),
    "gnutella": (6346, b"GNUTELLA CONNECT/0.6\r\n\r\n", b"GNUTELLA/0.6 200 OK\r\n\r\n"),
    "cassandra": (9042, H("040000000500000000"), H("840000000600000000")),
    "kafka": (9092, H("0000000a001200000000000100ff")[:14], H("0000000a00000001000000000000")),
    "jetdirect": (9100, b"\x1b%-12345X@PJL INFO ID\r\n", b'@PJL INFO ID\r\n"A"\r\n'),
    "git": (9418, b"0032git-upload-pack /a.git\0host=git.example\0\0\0\0\0", b"0000"),
    "nbd": (10809, b"", b"NBDMAGICIHAVEOPT\0\3"),
    "memcached": (11211, b"version\r\n", b"VERSION 1.6.18\r\n"),
    "mongodb": (
        27017,
        H("3a000000010000000000000 0d4070000".replace(" ", "")) + bytes(42),
        H("10000000020000000100000001000000"),
    ),
    "modbus": (502, H("000100000006010300000001"), H("000100000005010302002a")),
    "s7comm": (
        102,
        H("0300001611e00000000100c1020100c2020102c0010a"),
        H("0300001611d00001000200c1020100c2020102c0010a"),
    ),
    "iec104": (2404, H("680407000000"), H("68040b000000")),
    "dnp3": (20000, H("056405c001000004e921"), H("0564050b04000100 4b3f".replace(" ", ""))),
    "ethernet-ip": (
        44818,
        H("6500040000000000") + bytes(16) + H("01000000"),
        H("6500040001000000") + bytes(16) + H("01000000"),
    ),
    "opc-ua": (4840, b"HELF" + H("20000000") + bytes(24), b"ACKF" + H("1c000000") + bytes(20)),
    "dicom": (104, H("0100000000440001") + bytes(66), H("0200000000440001") + bytes(66)),
    "hl7": (2575, b"\x0bMSH|^~\\&|A|B|C|D|||ADT^A01\r\x1c\r", b"\x0bMSA|AA|1\r\x1c\r"),
    "h323": (1720, H("0300000808020001"), H("0300000808028001")),
    "skinny": (2000, H("0400000000000000 00000000".replace(" ", "")), H("040000000000000000010000")),
    "nats": (4222, b"CONNECT {}\r\nPING\r\n", b"PONG\r\n"),
    "stomp": (61613, b"CONNECT\naccept-version:1.2\n\n\0", b"CONNECTED\nversion:1.2\n\n\0"),
    "rtmp": (1935, b"\3" + bytes(1300), b"\3" + bytes(1300)),
    "daytime": (13, b"", b"26 NOV 2026\r\n"),
    "time": (37, b"", H("ecf2d000")),
    "echo": (7, b"abc", b"abc"),
    "chargen": (19, b"", b" !\"#$%&'()*+,-./\r\n"),
    "discard": (9, b"abc", b""),
}
DNS = H("12340100000100000000000003777777076578616d706c650000010001")
DNS_OK = H("12348180000100010000000003777777076578616d706c650000010001c00c000100010000003c0004c0000201")
SIP = b"OPTIONS sip:a@192.0.2.1 SIP/2.0\r\nVia: SIP/2.0/UDP 198.51.100.7\r\n\r\n"
UDP = {
    "dns": (53, DNS, DNS_OK),
    "dhcp-relayed": (67, H("01010601") + bytes(232) + H("6382536335010 1ff".replace(" ", "")), b""),
    "tftp": (69, b"\0\1boot\0octet\0", b"\0\3\0\1data"),
    "kerberos": (88, H("6a020500"), H("7e020500")),
    "ntp": (123, H("23") + bytes(47), H("24") + bytes(47)),
    "netbios-ns": (137, H("000100100001000000000000") + b" " + b"CA" * 16 + H("0000210001"), b""),
    "netbios-dgm": (138, H("1102000ac633640700 8a0020".replace(" ", "")) + bytes(40), b""),
    "snmp": (161, H("302602010104067075626c6963a019020101020100020100300e300c06082b060102010101000500"), b""),
    "syslog": (514, b"<34>1 2026-11-26T18:00:00Z host app - - - test", b""),
    "radius": (
        1812,
        H("0101001400112233445566778899aabbccddeeff"),
        H("0201001400112233445566778899aabbccddeeff"),
    ),
    "radius-coa": (3799, H("2b01001400112233445566778899aabbccddeeff"), b""),
    "sip": (5060, SIP, b"SIP/2.0 200 OK\r\n\r\n"),
    "rtp": (10000, H("800000010000000a12345678") + bytes(160), b""),
    "rtcp": (10001, H("80c8000612345678") + bytes(20), b""),
    "stun": (3478, H("000100002112a442") + bytes(12), H("010100002112a442") + bytes(12)),
    "turn": (3478, H("000300082112a442") + bytes(12) + H("0019000411000000"), b""),
    "quic": (
        443,
        H("c000000001 08".replace(" ", "")) + bytes(8) + H("000044b0") + bytes(1180),
        H("c000000001000800") + bytes(100),
    ),
    "dtls": (4433, H("16feff0000000000000000000c010000000000000000000000"), b""),
    "coap": (5683, H("40011234b474657374"), H("60451234ff6f6b")),
    "coap-observe": (5683, H("400112356 0b474657374".replace(" ", "")), b""),
    "ike": (500, H("1122334455667788000000000000000021202208000000000000001c"), b""),
    "ike-nat-t": (4500, bytes(4) + H("1122334455667788000000000000000021202208000000000000001c"), b""),
    "l2tp": (1701, H("c802000c0000000000000000"), b""),
    "gtp-c": (2123, H("32010004000000000001 0000".replace(" ", "")), b""),
    "gtp-prime": (3386, H("0f01000000 01".replace(" ", "")), b""),
    "netflow": (2055, H("00050000") + bytes(20), b""),
    "ipfix": (4739, H("000a001000000000000000000000 0000".replace(" ", "")), b""),
    "sflow": (6343, H("0000000500000001c6336407") + bytes(16), b""),
    "bacnet": (47808, H("810a000801 000000".replace(" ", "")), b""),
    "knx": (3671, H("06100205001a0801c63364070e570801c63364070e5704040200"), b""),
    "ethernet-ip-udp": (44818, H("63000000") + bytes(20), b""),
    "bfd": (3784, H("20c0031800000001") + bytes(16), b""),
    "capwap": (5246, H("0010020000000000 00000001".replace(" ", "")) + bytes(8), b""),
    "wireguard": (51820, H("01000000") + bytes(144), b""),
    "openvpn": (1194, H("38") + bytes(13), b""),
    "nat-pmp": (5351, H("0000"), H("00800000000000 01c0000201".replace(" ", ""))),
    "pcp": (5351, H("0201000000000e10") + bytes(52), b""),
    "mgcp": (2427, b"AUEP 1 aaln/1@gw MGCP 1.0\r\n", b"200 1 OK\r\n"),
    "iax2": (4569, H("80010000000000000000060b"), b""),
    "memcached-udp": (11211, H("0000000000010000") + b"version\r\n", b""),
    "rpc-udp": (111, RPC[4:], RPC_OK[4:]),
    "rip": (520, H("02020000") + H("00020000c0000200ffffff000000000000000001"), b""),
    "hsrp": (1985, H("000010030a780100") + b"cisco\0\0\0" + H("c0000201"), b""),
    "teamspeak": (9987, b"TS3INIT1" + bytes(26), b""),
    "wake-on-lan": (9, b"\xff" * 6 + MAC_S * 16, b""),
    "ptp": (319, H("0002002c") + bytes(40), b""),
    "zigbee-zep": (17754, b"EX\2\1" + bytes(28), b""),
    "opc-ua-udp": (4840, H("f1") + bytes(20), b""),
}
# UDP to a group: port, address of each version, data, hop limit.
GROUPS = {
    "mdns": (
        5353,
        "e00000fb",
        "ff02" + "0" * 26 + "fb",
        H("000000000001000000000000045f746370056c6f63616c00000c0001"),
        255,
    ),
    "llmnr": (
        5355,
        "e00000fc",
        "ff02" + "0" * 23 + "10003",
        H("12340000000100000000000004686f73740000010001"),
        1,
    ),
    "ssdp": (
        1900,
        "effffffa",
        "ff02" + "0" * 27 + "c",
        b'M-SEARCH * HTTP/1.1\r\nMAN: "ssdp:discover"\r\n\r\n',
        2,
    ),
    "ws-discovery": (3702, "effffffa", "ff02" + "0" * 27 + "c", b'<?xml version="1.0"?><Envelope/>', 1),
    "some-ip": (
        30490,
        "efc0fffb",
        "ff14" + "0" * 25 + "100",
        H("ffff8100000000100000000101010200") + bytes(8),
        1,
    ),
    "ripng": (521, "e0000009", "ff02" + "0" * 27 + "9", H("01010000"), 255),
}
# Protocol number, payload, hop limit, address of a group for IPv4 if any; both versions unless it has a group.
IP = {
    "gre-ethernet": (47, H("00006558") + MAC_S + MAC_C + H("88b5") + bytes(46), 64, None),
    "esp": (50, H("0000100100000001") + bytes(32), 64, None),
    "ah": (51, H("3b0400000000100100000001") + bytes(12), 64, None),
    "sctp": (
        132,
        H("c3500b5a00000000 00000000".replace(" ", "")) + H("01000014000000010000ffff0001000100000001"),
        64,
        None,
    ),
    "dccp": (33, H("c350138900000000") + bytes(16), 64, None),
    "udp-lite": (136, None, 64, None),
    "ospf": (89, H("0201002cc6336407") + bytes(36), 1, "e0000005"),
    "eigrp": (88, H("0205fdca") + bytes(16), 2, "e000000a"),
    "pim": (103, H("2000dffd0001000200690014")[:12], 1, "e000000d"),
    "rsvp": (46, H("10010000ff000008")[:8], 1, None),
    "vrrp": (112, H("2101640100010000c0000201"), 255, "e0000012"),
    "igmp2": (2, H("1600f9f4e0000afe")[:8], 1, "e0000afe"),
    "l2tpv3": (115, H("00001001") + bytes(20), 64, None),
    "etherip": (97, H("3000") + MAC_S + MAC_C + H("88b5") + bytes(46), 64, None),
    "ipcomp": (108, H("06000001") + bytes(20), 64, None),
    "manet": (138, H("0000000800000000"), 64, None),
}
# EtherType and content, to a group.
ETHER = {
    "lldp": ("0180c200000e", 0x88CC, H("0207040200000000070403040007060200780000")),
    "lacp": ("0180c2000002", 0x8809, H("0101") + bytes(108)),
    "eapol": ("0180c2000003", 0x888E, H("01010000")),
    "profinet": ("010ecf000000", 0x8892, H("fefe05000000000100010004ffff0000")),
    "ethercat": ("ffffffffffff", 0x88A4, H("0e10") + bytes(44)),
    "goose": ("010ccd010001", 0x88B8, H("0001000800000000")),
    "sampled-values": ("010ccd040001", 0x88BA, H("4000000800000000")),
    "powerlink": ("01111e000001", 0x88AB, H("01fff0") + bytes(43)),
    "ptp-ethernet": ("011b19000000", 0x88F7, H("0002002c") + bytes(40)),
    "fcoe": ("0efc00000001", 0x8906, bytes(60)),
    "fip": ("01101801000 2".replace(" ", ""), 0x8914, bytes(46)),
    "aoe": ("ffffffffffff", 0x88A2, H("1000ffffff01") + bytes(18)),
    "homeplug": ("ffffffffffff", 0x88E1, H("00a00000b052") + bytes(40)),
    "wol-ethernet": ("ffffffffffff", 0x0842, b"\xff" * 6 + MAC_S * 16),
    "loopback": (MAC_S.hex(), 0x9000, H("0000010000") + bytes(41)),
    "macsec": (MAC_S.hex(), 0x88E5, H("2c000000000100") + bytes(40)),
    "batman": ("ffffffffffff", 0x4305, bytes(46)),
    "trill": ("0180c2000040", 0x22F3, bytes(46)),
    "mrp": ("01154e000001", 0x88E3, H("0001") + bytes(44)),
    "hsr": ("01154e000100", 0x88FB, H("0000") + bytes(44)),
    "sercos": ("ffffffffffff", 0x88CD, bytes(46)),
    "ieee1722": ("91e0f0000e80", 0x22F0, bytes(46)),
    "mvrp": ("0180c2000021", 0x88F5, H("0001") + bytes(44)),
    "cfm": ("0180c2000030", 0x8902, bytes(46)),
    "rarp": ("ffffffffffff", 0x8035, H("0001080006040003") + MAC_C + bytes(4) + MAC_C + bytes(4)),
    "pppoe-discovery": ("ffffffffffff", 0x8863, H("11090000000401010000")),
    "arp": ("ffffffffffff", 0x0806, H("0001080006040001") + MAC_C + CLIENT + bytes(6) + SERVER),
    "ipx": ("ffffffffffff", 0x8137, H("ffff001e0001") + bytes(24)),
    "appletalk": ("090007ffffff", 0x80F3, bytes(28)),
}
# Frames of 802.2: destination and content behind the length.
LLC = {
    "stp": (
        "0180c2000000",
        H("424203000000000080000200000000010000000080000200000000018001000014000200 0f00".replace(" ", "")),
    ),
    "cdp": ("01000ccccccc", H("aaaa0300000c200002b4") + bytes(10)),
    "isis": ("0180c2000014", H("fefe03831b01000f01000001") + bytes(40)),
    "vtp": ("01000ccccccc", H("aaaa0300000c200301010000") + bytes(20)),
    "netbeui": ("030000000001", H("f0f0032c00ffef08") + bytes(20)),
}


def icmp(way):
    if way.version == 4:
        message = lambda kind: H(f"{kind:02x}00") + H("0000") + H("12340001") + bytes(range(56))
        sealed = lambda data: data[:2] + struct.pack("!H", 0xFFFF ^ total(data)) + data[4:]
        return [way.packet(True, 1, sealed(message(8))), way.packet(False, 1, sealed(message(0)))]
    message = lambda kind: H(f"{kind:02x}00") + H("0000") + H("12340001") + bytes(range(56))
    return [
        way.packet(up, 58, way.summed(up, 58, message(kind), 2)) for up, kind in ((True, 128), (False, 129))
    ]


def framed(packets, up_mac=None):
    """Packets in frames of Ethernet, by whose address they come from."""
    frames = []
    for packet in packets:
        is_four = packet[0] >> 4 == 4
        source, target = (packet[12:16], packet[16:20]) if is_four else (packet[8:24], packet[24:40])
        from_client = source in (CLIENT, CLIENT6)
        to = MAC_S if from_client else MAC_C
        if is_four and target[0] >> 4 == 14:
            to = H("01005e") + bytes([target[1] & 0x7F]) + target[2:]
        elif not is_four and target[0] == 0xFF:
            to = H("3333") + target[12:]
        frames.append(to + (MAC_C if from_client else MAC_S) + H("0800" if is_four else "86dd") + packet)
    return frames


def stamped(number):
    return 1_700_000_000 + number // 100, number % 100 * 10_000


def pcap(frames, link=1):
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, link)
    for number, frame in enumerate(frames):
        out += struct.pack("<IIII", *stamped(number), len(frame), len(frame)) + frame
    return out


def pcapng(frames):
    block = lambda kind, body: (
        struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))
    )
    out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    out += block(1, struct.pack("<HHI", 1, 0, 262144))
    for number, frame in enumerate(frames):
        seconds, micros = stamped(number)
        units = seconds * 1_000_000 + micros
        body = struct.pack("<IIIII", 0, units >> 32, units & 0xFFFFFFFF, len(frame), len(frame))
        out += block(6, body + frame + b"\0" * (-len(frame) % 4))
    return out


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def tagged(frames):
    return [frame[:12] + H("81000007") + frame[12:] for frame in frames]


def cooked(frames):
    return [H("0000000100060200000000010000") + frame[12:] for frame in frames]


SHAPES = [
    ("tagged.pcap", lambda frames: pcap(tagged(frames))),
    ("next-generation.pcapng", pcapng),
    ("packed.pcap.gz", lambda frames: gzip.compress(pcap(frames), mtime=0)),
    ("cooked.pcap", lambda frames: pcap(cooked(frames), 113)),
] + ([("packed.pcap.zst", lambda frames: zstd(pcap(frames)))] if shutil.which("zstd") else [])


def protocols():
    """Name, frames over IPv4 or none, and over IPv6 if it goes there."""
    four, six = Way(4), Way(6)
    for name, (port, asked, answered) in TCP.items():
        yield name, *[framed(conversation(way, port, asked, answered)) for way in (four, six)]
    for name, (port, asked, answered) in UDP.items():
        talk = lambda way: [
            way.udp(up, (49152, port), data) for up, data in ((True, asked), (False, answered)) if data
        ]
        yield name, *[framed(talk(way)) for way in (four, six)]
    for name, (port, group4, group6, data, ttl) in GROUPS.items():
        yield (
            name,
            framed([four.udp(True, (port, port), data, ttl, H(group4))]),
            framed([six.udp(True, (port, port), data, ttl, H(group6))]),
        )
    for name, (number, payload, ttl, group) in IP.items():
        if payload is None:
            data = struct.pack("!HHHH", 49152, 5004, 8, 0) + bytes(20)
            yield (
                name,
                *[
                    framed([way.packet(True, number, way.summed(True, number, data, 6))])
                    for way in (four, six)
                ],
            )
        else:
            one = framed([four.packet(True, number, payload, ttl, H(group) if group else None)])
            yield name, one, None if group else framed([six.packet(True, number, payload, ttl)])
    yield "icmp", framed(icmp(four)), framed(icmp(six))
    for name, (to, kind, data) in ETHER.items():
        yield name, [(H(to) + MAC_C + struct.pack("!H", kind) + data).ljust(60, b"\0")], None
    for name, (to, data) in LLC.items():
        yield name, [(H(to) + MAC_C + struct.pack("!H", len(data)) + data).ljust(60, b"\0")], None


def main(folder):
    count = 0
    for number, (name, four, six) in enumerate(protocols()):
        place = os.path.join(folder, name)
        os.makedirs(place, exist_ok=True)
        shape, write = SHAPES[number % len(SHAPES)]
        # Shapes and addresses take turns independently of each other.
        other = six if six and number // len(SHAPES) % 2 else four
        for file, data in (("plain.pcap", pcap(four)), (shape, write(other))):
            with open(os.path.join(place, file), "wb") as out:
                out.write(data)
            count += 1
    print(f"{count} captures of {number + 1} protocols")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
