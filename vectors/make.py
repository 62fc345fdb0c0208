#!/usr/bin/env python3
"""Golden vectors of the cryptographic link layer, made without any of the program's code.

Everything here is built from the written protocol (docs/protocol.md, docs/s-arp.md, docs/s-dhcp.md) with Python's own HMAC and SHA-256 and Debian's
python3-cryptography (Ed25519, X25519, HKDF, the ciphers, X.509); HPKE is written out below, SipHash-2-4 as well and checked
against the table of its authors, ML-KEM beside this file. All keys are fixed, so the same files come out every time:

    vectors/make.py            writes the files beside this script
    vectors/make.py --check    compares them with what it would write; status 1 where they differ

A line of a vector file is `name = hex`. Numbers stand in network order and in the width of their field. The private
keys in these files are public and protect nothing.
"""

import base64
import datetime
import hashlib
import hmac
import struct
import sys
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.x509.oid import NameOID, ObjectIdentifier

import ml_kem

ETHERTYPE_IPV6 = 0x86DD
ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_CLL, ETHERTYPE_EXPERIMENT = 0x0806, 0x0800, 0x07D0, 0x88B5
BROADCAST = bytes([0xFF] * 6)
FLAG_SLOW_NONCE, FRAMES_PER_SLOW_NONCE = 1, 1024
TYPE_UNICAST, TYPE_REQUEST, TYPE_REPLY, TYPE_CHALLENGE, TYPE_DHCP = 0x21, 0x23, 0x24, 0x28, 0x2B
TYPE_ROLLOVER_REQUEST, TYPE_ROLLOVER_REPLY, TYPE_ROLLOVER_ACK, INNER_CONTROL = 0x25, 0x26, 0x27, 1
TYPE_RESUMPTION_REQUEST, TYPE_RESUMPTION_REPLY, TYPE_TICKET = 0x2C, 0x2D, 0x2E
AES_256_GCM, AES_128_GCM, CHACHA20_POLY1305 = 1, 2, 3
KEY_LEN = {AES_256_GCM: 32, AES_128_GCM: 16, CHACHA20_POLY1305: 32}
SUITE_NAME = {AES_256_GCM: "aes-256-gcm", AES_128_GCM: "aes-128-gcm", CHACHA20_POLY1305: "chacha20-poly1305"}
INNER_CHECKSUM_PARTIAL, INNER_COMPRESSED = 0x01, 0x02
# What a side says of compression: in the low half what it would use, in the high half what it reads.
SENDS_LZ4, READS_LZ4 = 0x01, 0x10
# In the same byte: takes part in an ML-KEM exchange.
POST_QUANTUM = 0x80
# The shortest sealed frame has Ethernet's 60 bytes: 14 + 14 + 3 + 13 + 16.
PAYLOAD_MIN = 13
MAC_ADDRESS_OID = ObjectIdentifier("1.3.6.1.5.5.7.8.12")
SECOND_KEY_OID = ObjectIdentifier("2.5.29.72")
SHARED_KEYS_OID = ObjectIdentifier("2.25.1383560043")
START_UNIX_S = 1_800_000_000
DAY_S = 86_400


# ---- SipHash-2-4 (Aumasson and Bernstein, 2012) -------------------------------------------------------------------


def rotate(word, bits):
    return ((word << bits) | (word >> (64 - bits))) & 0xFFFF_FFFF_FFFF_FFFF


def sip_round(v0, v1, v2, v3):
    mask = 0xFFFF_FFFF_FFFF_FFFF
    v0 = (v0 + v1) & mask
    v1 = rotate(v1, 13) ^ v0
    v0 = rotate(v0, 32)
    v2 = (v2 + v3) & mask
    v3 = rotate(v3, 16) ^ v2
    v0 = (v0 + v3) & mask
    v3 = rotate(v3, 21) ^ v0
    v2 = (v2 + v1) & mask
    v1 = rotate(v1, 17) ^ v2
    v2 = rotate(v2, 32)
    return v0, v1, v2, v3


def siphash_2_4(key, message):
    """The 64-bit value, as a number."""
    k0, k1 = struct.unpack("<QQ", key)
    state = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        state[3] ^= word
        state = list(sip_round(*sip_round(*state)))
        state[0] ^= word
    state[2] ^= 0xFF
    state = sip_round(*sip_round(*sip_round(*sip_round(*state))))
    return state[0] ^ state[1] ^ state[2] ^ state[3]


# Key 00..0f, message 00..n-1: the start of the table `vectors_sip64` in the authors' reference code, and the example in
# appendix A of their paper (15 bytes).
SIPHASH_TABLE = {
    0: "310e0edd47db6f72", 1: "fd67dc93c539f874", 2: "5a4fa9d909806c0d", 3: "2d7efbd796666785",
    4: "b7877127e09427cf", 5: "8da699cd64557618", 6: "cee3fe586e46c9cb", 7: "37d1018bf50002ab",
    15: "e545be4961ca29a1",
}


def check_siphash():
    for length, expected in SIPHASH_TABLE.items():
        value = struct.pack("<Q", siphash_2_4(bytes(range(16)), bytes(range(length))))
        assert value.hex() == expected, f"SipHash-2-4 of {length} bytes"


def spin(key, sequence):
    """The spinning nonce: the low 32 bits of SipHash-2-4 over the sequence number in network order."""
    return siphash_2_4(key, struct.pack("!I", sequence)) & 0xFFFF_FFFF


# ---- The site: one authority, two hosts ----------------------------------------------------------------------------


def fixed(label, length=32):
    """Bytes that look random and are the same every time."""
    return hashlib.shake_256(b"ringwall golden vectors: " + label.encode()).digest(length)


def pkcs8(key):
    encoding, form = serialization.Encoding.DER, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption())


def distinguished_name(common_name, unit=None):
    units = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit)] if unit else []
    return x509.Name(units + [x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def key_usage(**allowed):
    names = (
        "digital_signature content_commitment key_encipherment data_encipherment key_agreement key_cert_sign crl_sign "
        "encipher_only decipher_only"
    ).split()
    return x509.KeyUsage(**{name: allowed.get(name, False) for name in names})


def certificate_builder(subject, issuer, key, serial, days):
    start = datetime.datetime.utcfromtimestamp(START_UNIX_S - DAY_S)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=days))
    )


def der(certificate):
    return certificate.public_bytes(serialization.Encoding.DER)


class Authority:
    """A self-signed Ed25519 authority."""

    def __init__(self):
        self.seed = fixed("authority")
        self.key = Ed25519PrivateKey.from_private_bytes(self.seed)
        self.name = distinguished_name("golden")
        builder = certificate_builder(self.name, self.name, self.key, 1, 3650)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(key_usage(key_cert_sign=True, crl_sign=True), critical=True)
        self.certificate = der(builder.sign(self.key, None))
        self.site_key = fixed("site key")

    def issue(self, host):
        """A certificate with the hardware address as otherName (an OCTET STRING) and the addresses as iPAddress."""
        names = [x509.OtherName(MAC_ADDRESS_OID, b"\x04\x06" + host.mac)]
        names += [x509.IPAddress(address) for address in host.addresses]
        subject = distinguished_name(host.name, host.role)
        builder = certificate_builder(subject, self.name, host.key, host.serial, 365)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(key_usage(digital_signature=True), critical=True)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        return der(builder.add_extension(identifier, critical=False).sign(self.key, None))


class Host:
    def __init__(self, authority, name, serial, mac, addresses, role):
        self.name, self.serial, self.mac, self.role = name, serial, mac, role
        self.addresses = [IPv4Address(address) for address in addresses]
        self.seed = fixed(f"host {name}")
        self.key = Ed25519PrivateKey.from_private_bytes(self.seed)
        self.certificate = authority.issue(self)

    @property
    def ip(self):
        return self.addresses[0].packed


# ---- Messages ------------------------------------------------------------------------------------------------------


def ethernet(destination, source, ethertype):
    return destination + source + struct.pack("!H", ethertype)


def arp(operation, sender_mac, sender_ip, target_mac, target_ip):
    head = struct.pack("!HHBBH", 1, ETHERTYPE_IPV4, 6, 4, operation)
    return head + sender_mac + sender_ip + target_mac + target_ip


def arp_with_ipv6(operation, sender_mac, sender_ip, target_mac, target_ip):
    """What a handshake carries in ARP's place when it is about IPv6 addresses (docs/protocol.md, section 23)."""
    head = struct.pack("!HHBBH", 1, ETHERTYPE_IPV6, 6, 16, operation)
    return head + sender_mac + sender_ip + target_mac + target_ip


def link_local(mac):
    """fe80::/64 with the modified EUI-64 of the hardware address (RFC 4291, appendix A)."""
    identifier = bytes([mac[0] ^ 2]) + mac[1:3] + b"\xff\xfe" + mac[3:]
    return IPv6Address(b"\xfe\x80" + bytes(6) + identifier).packed


@dataclass
class Offer:
    suite: int
    confidential: bool
    lanes: int
    receiver_index: int
    lifetime_s: int
    slow_nonce: bool = False
    compression: int = 0

    def emit(self):
        head = struct.pack("!BBBB", 1, self.suite, self.confidential, self.lanes)
        return head + struct.pack("!IIBB", self.receiver_index, self.lifetime_s, self.compression, 1 | self.slow_nonce << 1)


def counted(content):
    return struct.pack("!H", len(content)) + content


def unsigned_message(kind, arp_message, timestamp_ms, nonce, offer, key_share, cookie, certificate):
    """A handshake message up to the certificate, its site tag still zero."""
    head = bytes([kind, 0]) + bytes(16) + arp_message
    return head + struct.pack("!Q", timestamp_ms) + nonce + offer.emit() + key_share + cookie + counted(certificate)


def without_tag(message):
    return message[:2] + message[18:]


def with_tag(message, site_key, header):
    """The site tag covers the Ethernet header and all of the message but the tag itself."""
    return message[:2] + frame_tag(site_key, b"handshake", header + without_tag(message)) + message[18:]


def frame_tag(site_key, label, covered):
    """Twelve bytes of HMAC, and four that are a function of them under the key of hints."""
    proof = short_tag(site_key, label, covered)[:12]
    hint = siphash_2_4(short_tag(site_key, b"hint", b""), proof) & 0xFFFF_FFFF
    return proof + struct.pack("!I", hint)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


# ---- Keys ----------------------------------------------------------------------------------------------------------


@dataclass
class LaneKeys:
    key: bytes
    iv: bytes
    spin: bytes
    slow: bytes


def lane_keys(shared, transcript, direction, lane, suite):
    def expand(use, length):
        info = b"ringwall cll 2 " + use + direction.encode() + bytes([lane, suite])
        return HKDF(algorithm=hashes.SHA256(), length=length, salt=transcript, info=info).derive(shared)

    return LaneKeys(expand(b"key", 32)[: KEY_LEN[suite]], expand(b"iv", 12), expand(b"spin", 16),
                    expand(b"slow", 16))


# ---- Data frames ---------------------------------------------------------------------------------------------------


def aead(suite, key):
    return ChaCha20Poly1305(key) if suite == CHACHA20_POLY1305 else AESGCM(key)


def data_frame(header, offer, keys, receiver_index, sequence, inner):
    """Seals `inner` (inner header and payload) under the sender's `offer`."""
    flags = FLAG_SLOW_NONCE if offer.slow_nonce else 0
    clear = header + struct.pack("!BBIII", TYPE_UNICAST, flags, receiver_index, sequence, spin(keys.spin, sequence))
    if offer.slow_nonce:
        clear += struct.pack("!I", spin(keys.slow, sequence // FRAMES_PER_SLOW_NONCE))
    nonce = bytes(a ^ b for a, b in zip(keys.iv, bytes(4) + struct.pack("!Q", sequence)))
    cipher = aead(offer.suite, keys.key)
    if offer.confidential:
        return clear + cipher.encrypt(nonce, inner, clear)
    return clear + inner + cipher.encrypt(nonce, b"", clear + inner)


def checksum(data):
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + bytes(len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def ipv4_packet(source, destination, protocol, payload):
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0x1234, 0x4000, 64, protocol, 0) + source + destination
    return head[:10] + struct.pack("!H", checksum(head) ^ 0xFFFF) + head[12:] + payload


def pseudo_header(source, destination, protocol, length):
    return source + destination + struct.pack("!BBH", 0, protocol, length)


def udp_packet(source, destination, payload):
    segment = struct.pack("!HHHH", 4660, 22136, 8 + len(payload), 0) + payload
    value = checksum(pseudo_header(source, destination, 17, len(segment)) + segment) ^ 0xFFFF
    return ipv4_packet(source, destination, 17, segment[:6] + struct.pack("!H", value or 0xFFFF) + segment[8:])


def tcp_packet_with_partial_checksum(source, destination, payload):
    """The checksum field holds the folded sum of the pseudo header, not complemented."""
    segment = struct.pack("!HHIIBBHHH", 443, 40000, 1, 2, 0x50, 0x18, 500, 0, 0) + payload
    value = checksum(pseudo_header(source, destination, 6, len(segment)))
    return ipv4_packet(source, destination, 6, segment[:16] + struct.pack("!H", value) + segment[18:])


# ---- Compression: blocks of LZ4 (its own document, lz4_Block_format.md) ----------------------------------------------


def lz4_sequence(literals, match_len=None, offset=None):
    """Literals, and the match behind them unless they are the last."""
    def rest(length):
        return bytes([255] * (length // 255) + [length % 255])

    head = min(len(literals), 15) << 4 | (min(match_len - 4, 15) if match_len else 0)
    out = bytes([head]) + (rest(len(literals) - 15) if len(literals) >= 15 else b"") + literals
    if match_len:
        out += struct.pack("<H", offset) + (rest(match_len - 4 - 15) if match_len - 4 >= 15 else b"")
    return out


def lz4_block(data):
    """The longest match at every place, as that document bounds them: the last 5 bytes are literals, no match starts in the last 12."""
    out, done, at = b"", 0, 0
    while at < len(data) - 12:
        best = (0, 0)
        for start in range(max(0, at - 0xFFFF), at):
            length = 0
            while at + length < len(data) - 5 and data[start + length] == data[at + length]:
                length += 1
            best = max(best, (length, start))
        if best[0] < 4:
            at += 1
            continue
        out += lz4_sequence(data[done:at], best[0], at - best[1])
        at += best[0]
        done = at
    return out + lz4_sequence(data[done:])


def compressed(payload):
    packed = struct.pack("!H", len(payload)) + lz4_block(payload)
    assert PAYLOAD_MIN <= len(packed) < len(payload)
    return packed


def compressed_frames(sender, receiver):
    """As below, and what the payload is before."""
    source, destination = sender.ip, receiver.ip
    verse = b"Row, row, row your boat, gently down the stream; merrily, merrily, merrily, merrily, "
    return [
        ("text", ETHERTYPE_IPV4, 0, udp_packet(source, destination, verse * 6)),
        ("equal", ETHERTYPE_IPV4, INNER_CHECKSUM_PARTIAL,
         tcp_packet_with_partial_checksum(source, destination, bytes(1300))),
        ("other", ETHERTYPE_EXPERIMENT, 0, bytes(range(64)) * 20),
    ]


def plain_frames(sender, receiver):
    """Name, EtherType, inner flags and payload of every example."""
    source, destination = sender.ip, receiver.ip
    return [
        ("udp", ETHERTYPE_IPV4, 0, udp_packet(source, destination, b"a datagram with a complete checksum")),
        ("short", ETHERTYPE_EXPERIMENT, 0, b"short"),
        ("least", ETHERTYPE_EXPERIMENT, 0, b"thirteen byte"),
        ("partial", ETHERTYPE_IPV4, INNER_CHECKSUM_PARTIAL,
         tcp_packet_with_partial_checksum(source, destination, b"a segment with a partial checksum")),
        ("empty", 0, 0, b""),
    ]


# ---- One handshake -------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """What differs from one handshake to the next."""

    number: int
    about: str
    initiator: Offer
    responder: Offer
    by_address: bool = True
    challenged: bool = False
    ipv6: bool = False
    timestamps_ms: tuple = field(default=(START_UNIX_S * 1000 + 123, START_UNIX_S * 1000 + 456))

    def fixed(self, label, length=32):
        return fixed(f"handshake {self.number} {label}", length)


class Handshake:
    def __init__(self, case, authority, initiator, responder):
        self.case, self.authority, self.hosts = case, authority, (initiator, responder)
        self.nonce = case.fixed("nonce", 16)
        self.cookie = case.fixed("cookie", 16) if case.challenged else bytes(16)
        self.private = [X25519PrivateKey.from_private_bytes(case.fixed(f"x25519 {side}")) for side in ("i", "r")]
        self.share = [self.raw(key.public_key()) for key in self.private]
        self.request_header, self.request = self.make_request()
        self.reply_header, self.reply = self.make_reply()
        self.shared = self.private[0].exchange(X25519PublicKey.from_public_bytes(self.share[1]))
        assert self.shared == self.private[1].exchange(X25519PublicKey.from_public_bytes(self.share[0]))
        request, reply = sha256(without_tag(self.request)), sha256(without_tag(self.reply))
        self.transcript = sha256(b"ringwall cll 2 transcript", request, reply)

    @staticmethod
    def raw(key):
        return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)

    def make_request(self):
        """Asks for the responder's IP address with a broadcast, or for its hardware address alone."""
        ours, theirs = self.hosts
        if self.case.ipv6:
            question = arp_with_ipv6(1, ours.mac, link_local(ours.mac), bytes(6), link_local(theirs.mac))
        elif self.case.by_address:
            question = arp(1, ours.mac, ours.ip, bytes(6), theirs.ip)
        else:
            question = arp(1, ours.mac, ours.ip, theirs.mac, bytes(4))
        header = ethernet(BROADCAST if self.case.by_address else theirs.mac, ours.mac, ETHERTYPE_CLL)
        unsigned = unsigned_message(
            TYPE_REQUEST, question, self.case.timestamps_ms[0], self.nonce,
            self.case.initiator, self.share[0], self.cookie, ours.certificate,
        )
        signature = ours.key.sign(b"ringwall cll 2 request" + without_tag(unsigned))
        return header, with_tag(unsigned + counted(signature), self.authority.site_key, header)

    def make_reply(self):
        """Its signature covers the whole request too."""
        theirs, ours = self.hosts
        header = ethernet(theirs.mac, ours.mac, ETHERTYPE_CLL)
        if self.case.ipv6:
            answer = arp_with_ipv6(2, ours.mac, link_local(ours.mac), theirs.mac, link_local(theirs.mac))
        else:
            answer = arp(2, ours.mac, ours.ip, theirs.mac, theirs.ip)
        unsigned = unsigned_message(
            TYPE_REPLY, answer, self.case.timestamps_ms[1], self.nonce,
            self.case.responder, self.share[1], bytes(16), ours.certificate,
        )
        request = sha256(without_tag(self.request))
        signature = ours.key.sign(b"ringwall cll 2 reply" + request + without_tag(unsigned))
        return header, with_tag(unsigned + counted(signature), self.authority.site_key, header)

    def challenge(self):
        initiator, responder = self.hosts
        header = ethernet(initiator.mac, responder.mac, ETHERTYPE_CLL)
        message = bytes([TYPE_CHALLENGE, 0]) + bytes(16) + self.nonce + self.cookie
        return header + with_tag(message, self.authority.site_key, header)

    def sides(self):
        """For each direction: its name, label, sender, receiver, the sender's offer and the receiver's."""
        initiator, responder = self.hosts
        yield "initiator", "from initiator", initiator, responder, self.case.initiator, self.case.responder
        yield "responder", "from responder", responder, initiator, self.case.responder, self.case.initiator


# ---- Files ---------------------------------------------------------------------------------------------------------


class Vectors:
    """The text of one file."""

    def __init__(self, *about):
        self.lines = ["# Made by vectors/make.py; do not edit."]
        self.comment(*about)

    def comment(self, *lines):
        self.lines += [""] + [f"# {line}" for line in lines]

    def put(self, name, value):
        self.lines.append(f"{name} = {value.hex()}")

    def text(self):
        return "\n".join(self.lines) + "\n"


def siphash_file():
    out = Vectors("SipHash-2-4 as its authors published it: key 00..0f, message 00..n-1, the value in little-endian order.")
    for length, value in SIPHASH_TABLE.items():
        out.put(f"siphash.{length}", bytes.fromhex(value))
    out.comment("Spinning nonces: the low 32 bits of that value over a sequence number in network order.")
    key = bytes(range(16))
    out.put("spin.key", key)
    for sequence in (0, 1, 2, 0x00010203, 0x01020304, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE):
        out.put(f"spin.{sequence:08x}", struct.pack("!I", spin(key, sequence)))
    return out.text()


def site_file(authority, hosts):
    out = Vectors("A site with two hosts. The names are in the certificates.")
    out.put("site_key", authority.site_key)
    out.put("authority.seed", authority.seed)
    out.put("authority.certificate", authority.certificate)
    for host in hosts:
        out.comment(f"{host.name}, role {host.role}")
        out.put(f"{host.name}.seed", host.seed)
        out.put(f"{host.name}.pkcs8", pkcs8(host.key))
        out.put(f"{host.name}.mac", host.mac)
        out.put(f"{host.name}.addresses", b"".join(address.packed for address in host.addresses))
        out.put(f"{host.name}.certificate", host.certificate)
    return out.text()


def put_side(out, shake, side):
    name, _, sender, _, offer, _ = side
    index = 0 if name == "initiator" else 1
    protection = "encrypts" if offer.confidential else "authenticates only"
    out.comment(f"The {name} is {sender.name}; it {protection} with {SUITE_NAME[offer.suite]} on {offer.lanes} lane(s).")
    out.put(f"{name}.x25519_private", shake.case.fixed(f"x25519 {'ir'[index]}"))
    out.put(f"{name}.x25519_public", shake.share[index])
    out.put(f"{name}.timestamp_ms", struct.pack("!Q", shake.case.timestamps_ms[index]))
    out.put(f"{name}.suite", bytes([offer.suite]))
    out.put(f"{name}.confidential", bytes([offer.confidential]))
    out.put(f"{name}.slow_nonce", bytes([offer.slow_nonce]))
    out.put(f"{name}.lanes", bytes([offer.lanes]))
    out.put(f"{name}.receiver_index", struct.pack("!I", offer.receiver_index))
    out.put(f"{name}.lifetime_s", struct.pack("!I", offer.lifetime_s))
    out.put(f"{name}.compression", bytes([offer.compression]))


def put_messages(out, shake):
    out.comment("Whole frames, with Ethernet header, site tag and signature.")
    out.put("nonce", shake.nonce)
    out.put("cookie", shake.cookie)
    if shake.case.challenged:
        out.put("challenge.frame", shake.challenge())
    out.put("request.frame", shake.request_header + shake.request)
    out.put("reply.frame", shake.reply_header + shake.reply)
    out.comment("SHA-256 of label, SHA-256 of the request and SHA-256 of the reply, both without site tag.")
    out.put("transcript", shake.transcript)
    out.comment("X25519, and HKDF-Extract of it with the transcript as salt.")
    out.put("shared_secret", shake.shared)
    out.put("pseudorandom_key", hmac.new(shake.transcript, shake.shared, hashlib.sha256).digest())


def put_lane(out, shake, side, lane):
    name, label, sender, receiver, offer, peers = side
    keys = lane_keys(shake.shared, shake.transcript, label, lane, offer.suite)
    prefix = f"{name}.lane{lane}"
    out.comment(f"Keys and frames {label}, lane {lane}.")
    out.put(f"{prefix}.key", keys.key)
    out.put(f"{prefix}.iv", keys.iv)
    out.put(f"{prefix}.spin_key", keys.spin)
    out.put(f"{prefix}.slow_key", keys.slow)
    header = ethernet(receiver.mac, sender.mac, ETHERTYPE_CLL)
    sequence = 0x0100_0000 * (lane + 1) + shake.case.number
    if offer.slow_nonce:
        # The examples lie on both sides of a change.
        sequence += FRAMES_PER_SLOW_NONCE - shake.case.number - 2
    out.put(f"{prefix}.first_sequence", struct.pack("!I", sequence))
    for frame_name, ethertype, flags, payload in plain_frames(sender, receiver):
        filled = payload + bytes(max(0, PAYLOAD_MIN - len(payload)))
        inner = struct.pack("!HB", ethertype, flags) + filled
        sealed = data_frame(header, offer, keys, peers.receiver_index + lane, sequence, inner)
        if ethertype:
            plain = ethernet(receiver.mac, sender.mac, ethertype)
            out.put(f"{prefix}.{frame_name}.plain", plain + payload)
            out.put(f"{prefix}.{frame_name}.opened", plain + filled)
        out.put(f"{prefix}.{frame_name}.wire", sealed)
        sequence += 1
    if not (offer.compression & SENDS_LZ4 and peers.compression & READS_LZ4):
        return
    out.comment("Compressed frames. A sender may make other blocks of the same payload; a receiver expands these.")
    for frame_name, ethertype, flags, payload in compressed_frames(sender, receiver):
        inner = struct.pack("!HB", ethertype, flags | INNER_COMPRESSED) + compressed(payload)
        plain = ethernet(receiver.mac, sender.mac, ethertype)
        out.put(f"{prefix}.{frame_name}.plain", plain + payload)
        out.put(f"{prefix}.{frame_name}.wire", data_frame(header, offer, keys, peers.receiver_index + lane, sequence, inner))
        sequence += 1


def handshake_file(shake):
    out = Vectors(shake.case.about)
    for side in shake.sides():
        put_side(out, shake, side)
    put_messages(out, shake)
    for side in shake.sides():
        for lane in range(side[4].lanes):
            put_lane(out, shake, side, lane)
    return out.text()


class Rollover:
    """New keys through the association of a handshake; `swapped`: its responder asks."""

    def __init__(self, number, before, swapped, offers):
        self.number, self.before, self.offers = number, before, offers
        self.hosts = before.hosts[::-1] if swapped else before.hosts
        self.swapped = swapped
        self.nonce = self.fixed("nonce", 16)
        self.private = [X25519PrivateKey.from_private_bytes(self.fixed(f"x25519 {side}")) for side in "ir"]
        self.share = [Handshake.raw(key.public_key()) for key in self.private]
        old = before.transcript
        unsigned = self.unsigned(TYPE_ROLLOVER_REQUEST, 0)
        self.request = unsigned + counted(self.hosts[0].key.sign(b"ringwall cll 2 rollover request" + old + unsigned))
        unsigned = self.unsigned(TYPE_ROLLOVER_REPLY, 1)
        signed = b"ringwall cll 2 rollover reply" + old + sha256(self.request) + unsigned
        self.reply = unsigned + counted(self.hosts[1].key.sign(signed))
        self.acknowledgement = bytes([TYPE_ROLLOVER_ACK, 0]) + self.nonce
        self.shared = self.private[0].exchange(X25519PublicKey.from_public_bytes(self.share[1]))
        label = b"ringwall cll 2 rollover transcript"
        self.transcript = sha256(label, old, sha256(self.request), sha256(self.reply))

    def fixed(self, label, length=32):
        return fixed(f"rollover {self.number} {label}", length)

    def unsigned(self, kind, side):
        head = bytes([kind, 0]) + self.nonce + self.offers[side].emit()
        return head + self.share[side] + counted(self.hosts[side].certificate)

    def old_side(self, side):
        """The direction of the old association in which this side of the rollover sends."""
        directions = list(self.before.sides())
        return directions[1 - side if self.swapped else side]

    def sealed(self, name, message, sequence):
        """Request and reply under the old keys, lane 0."""
        side = 0 if name == "request" else 1
        _, label, sender, receiver, offer, peers = self.old_side(side)
        keys = lane_keys(self.before.shared, self.before.transcript, label, 0, offer.suite)
        header = ethernet(receiver.mac, sender.mac, ETHERTYPE_CLL)
        return data_frame(header, offer, keys, peers.receiver_index, sequence, struct.pack("!HB", INNER_CONTROL, 0) + message)

    def sealed_acknowledgement(self, sequence):
        """Under the initiator's new key."""
        keys = lane_keys(self.shared, self.transcript, "from initiator", 0, self.offers[0].suite)
        header = ethernet(self.hosts[1].mac, self.hosts[0].mac, ETHERTYPE_CLL)
        inner = struct.pack("!HB", INNER_CONTROL, 0) + self.acknowledgement
        return data_frame(header, self.offers[0], keys, self.offers[1].receiver_index, sequence, inner)


def rollover_file(rollovers):
    out = Vectors("Rollovers through associations of handshake-1.txt and handshake-3.txt: messages, transcript, keys of lane 0,",
                  "and sealed frames: request and reply under lane 0 of the old keys, the acknowledgement under the new ones.")
    for roll in rollovers:
        prefix = f"rollover{roll.number}"
        out.comment(f"{roll.hosts[0].name} asks {roll.hosts[1].name}, in the association of handshake {roll.before.case.number}.")
        out.put(f"{prefix}.nonce", roll.nonce)
        for side, name in enumerate(("initiator", "responder")):
            offer = roll.offers[side]
            out.put(f"{prefix}.{name}.x25519_private", roll.fixed(f"x25519 {name[0]}"))
            out.put(f"{prefix}.{name}.suite", bytes([offer.suite]))
            out.put(f"{prefix}.{name}.confidential", bytes([offer.confidential]))
            out.put(f"{prefix}.{name}.slow_nonce", bytes([offer.slow_nonce]))
            out.put(f"{prefix}.{name}.lanes", bytes([offer.lanes]))
            out.put(f"{prefix}.{name}.receiver_index", struct.pack("!I", offer.receiver_index))
            out.put(f"{prefix}.{name}.lifetime_s", struct.pack("!I", offer.lifetime_s))
        out.put(f"{prefix}.old_transcript", roll.before.transcript)
        out.put(f"{prefix}.request", roll.request)
        out.put(f"{prefix}.reply", roll.reply)
        out.put(f"{prefix}.acknowledgement", roll.acknowledgement)
        out.put(f"{prefix}.transcript", roll.transcript)
        out.put(f"{prefix}.shared_secret", roll.shared)
        for side, label in enumerate(("from initiator", "from responder")):
            keys = lane_keys(roll.shared, roll.transcript, label, 0, roll.offers[side].suite)
            name = label.split()[1]
            out.put(f"{prefix}.{name}.lane0.key", keys.key)
            out.put(f"{prefix}.{name}.lane0.iv", keys.iv)
            out.put(f"{prefix}.{name}.lane0.spin_key", keys.spin)
        out.put(f"{prefix}.request.wire", roll.sealed("request", roll.request, 0x01000000 + roll.number))
        out.put(f"{prefix}.reply.wire", roll.sealed("reply", roll.reply, 0x02000000 + roll.number))
        out.put(f"{prefix}.acknowledgement.wire", roll.sealed_acknowledgement(0x03000000 + roll.number))
    return out.text()


# ---- Frames to groups (section 21) ----------------------------------------------------------------------------------

TYPE_GROUP_FRAME, TYPE_ANNOUNCEMENT, TYPE_QUESTION = 0x22, 0x29, 0x2A
GROUP_TIME_MS = START_UNIX_S * 1000 + 250
MDNS = bytes.fromhex("01005e0000fb")


def group_head(kind, incarnation, time_ms, counter, leaf, leaves):
    return bytes([kind, 0]) + bytes(16) + incarnation + struct.pack("!QIBB", time_ms, counter, leaf, leaves)


def with_group_tag(frame, site_key):
    header, message = frame[:14], frame[14:]
    return header + message[:2] + frame_tag(site_key, b"broadcast", header + without_tag(message)) + message[18:]


def merkle_root(leaves):
    """RFC 9162, section 2.1.1, by its recursion: the left side is the largest power of two below the number of leaves."""
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\x01", merkle_root(leaves[:split]), merkle_root(leaves[split:]))


def merkle_path(at, leaves):
    """RFC 9162, section 2.1.3.1, by its recursion, from the leaf up."""
    if len(leaves) == 1:
        return []
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    if at < split:
        return merkle_path(at, leaves[:split]) + [merkle_root(leaves[split:])]
    return merkle_path(at - split, leaves[split:]) + [merkle_root(leaves[:split])]


def group_batch(sender, site_key, incarnation, unproved):
    """`unproved` are whole frames without path and signature, tags still zero."""
    leaves = [sha256(b"\x00", frame[:14], without_tag(frame[14:])) for frame in unproved]
    root = merkle_root(leaves)
    signature = sender.key.sign(b"ringwall cll 2 broadcast" + incarnation + bytes([len(leaves)]) + root)
    proofs = [b"".join(merkle_path(at, leaves)) + counted(signature) for at in range(len(leaves))]
    return root, [with_group_tag(frame + proof, site_key) for frame, proof in zip(unproved, proofs)]


def group_payloads(sender):
    """Destination, EtherType and parts of the frames of a batch: one of ARP, one of IPv4, one in two parts, one empty."""
    gratuitous = arp(1, sender.mac, sender.ip, bytes(6), sender.ip)
    packet = udp_packet(sender.ip, bytes([224, 0, 0, 251]), b"who is in this group?")
    long = udp_packet(sender.ip, bytes([224, 0, 0, 251]), fixed("long group payload", 1400))
    return [
        (BROADCAST, ETHERTYPE_ARP, [gratuitous]),
        (MDNS, ETHERTYPE_IPV4, [packet]),
        (MDNS, ETHERTYPE_IPV4, [long[:1293], long[1293:]]),
        (BROADCAST, ETHERTYPE_EXPERIMENT, [b""]),
    ]


def group_frames(sender, incarnation, time_ms, first_counter, payloads):
    leaves = sum(len(parts) for _, _, parts in payloads)
    frames = []
    for destination, ethertype, parts in payloads:
        for number, part in enumerate(parts):
            head = group_head(TYPE_GROUP_FRAME, incarnation, time_ms, first_counter + len(frames), len(frames), leaves)
            fields = struct.pack("!BHH", number << 4 | len(parts), len(part), ethertype)
            frames.append(ethernet(destination, sender.mac, ETHERTYPE_CLL) + head + fields + part)
    return frames


def broadcast_file(authority, alpha, omega):
    out = Vectors("Frames to groups of alpha, in a batch of one and in one of five, and its announcements to two hosts that asked.")
    incarnation = fixed("incarnation", 8)
    out.put("incarnation", incarnation)
    payloads = group_payloads(alpha)
    for name, chosen, time_ms, counter in (("single", payloads[1:2], GROUP_TIME_MS, 7), ("batch", payloads, GROUP_TIME_MS + 1, 0)):
        unproved = group_frames(alpha, incarnation, time_ms, counter, chosen)
        root, frames = group_batch(alpha, authority.site_key, incarnation, unproved)
        out.put(f"{name}.root", root)
        for at, frame in enumerate(frames):
            out.put(f"{name}.unproved.{at}", unproved[at])
            out.put(f"{name}.frame.{at}", frame)
    out.put("long.payload", b"".join(payloads[2][2]))
    askers = [omega.mac, bytes.fromhex("020000000077")]
    unproved = []
    for at, asker in enumerate(askers):
        nonce = fixed(f"question {at}", 16)
        time = struct.pack("!Q", GROUP_TIME_MS + at)
        question = ethernet(alpha.mac, asker, ETHERTYPE_CLL) + bytes([TYPE_QUESTION, 0]) + bytes(16) + nonce + time + bytes(4)
        out.put(f"question.{at}.nonce", nonce)
        out.put(f"question.{at}.time", time)
        out.put(f"question.{at}.frame", with_group_tag(question, authority.site_key))
        head = group_head(TYPE_ANNOUNCEMENT, incarnation, GROUP_TIME_MS + 2, at, at, len(askers))
        unproved.append(ethernet(asker, alpha.mac, ETHERTYPE_CLL) + head + nonce + counted(alpha.certificate))
    root, frames = group_batch(alpha, authority.site_key, incarnation, unproved)
    out.put("announcements.root", root)
    for at, frame in enumerate(frames):
        out.put(f"announcements.unproved.{at}", unproved[at])
        out.put(f"announcements.frame.{at}", frame)
    return out.text()


def expand(key, *info, length=32):
    """HKDF-Expand with one block of output."""
    assert length <= 32
    return hmac.new(key, b"".join(info) + b"\x01", hashlib.sha256).digest()[:length]


def pseudorandom_key(shared, transcript):
    return hmac.new(transcript, shared, hashlib.sha256).digest()


class Resumption:
    """Back to the association of a handshake by a ticket; `swapped`: its responder holds the ticket and asks."""

    def __init__(self, number, before, swapped, by_address, offers):
        self.number, self.before, self.offers = number, before, offers
        self.holder, self.issuer = self.hosts = before.hosts[::-1] if swapped else before.hosts
        # The issuer is the other side of the association in which the ticket was given.
        self.direction = "from initiator" if swapped else "from responder"
        prk = pseudorandom_key(before.shared, before.transcript)
        self.secret = expand(prk, b"ringwall cll 2 resumption", self.direction.encode())
        self.ticket_key, self.ticket_number = self.fixed("ticket key"), self.fixed("ticket number", 16)
        self.begins, self.ends, self.signed = START_UNIX_S + 5, START_UNIX_S + 43_200, START_UNIX_S
        self.ticket = self.make_ticket()
        self.grant = bytes([TYPE_TICKET, 0]) + struct.pack("!I", self.ends - self.begins) + counted(self.ticket)
        self.nonce = self.fixed("nonce", 16)
        self.private = [X25519PrivateKey.from_private_bytes(self.fixed(f"x25519 {side}")) for side in "ir"]
        self.share = [Handshake.raw(key.public_key()) for key in self.private]
        self.shared = self.private[0].exchange(X25519PublicKey.from_public_bytes(self.share[1]))
        self.timestamps_ms = (START_UNIX_S * 1000 + 60_123, START_UNIX_S * 1000 + 60_456)
        wanted = self.issuer.ip if by_address else bytes(4)
        self.request = self.message(TYPE_RESUMPTION_REQUEST, 0, arp(1, self.holder.mac, self.holder.ip, *(
            (bytes(6), wanted) if by_address else (self.issuer.mac, wanted))), counted(self.ticket), b"")
        answer = arp(2, self.issuer.mac, self.issuer.ip, self.holder.mac, self.holder.ip)
        self.reply = self.message(TYPE_RESUMPTION_REPLY, 1, answer, b"", sha256(without_tag(self.request)))
        hashes = sha256(without_tag(self.request)) + sha256(without_tag(self.reply))
        self.transcript = sha256(b"ringwall cll 2 resumption transcript", hashes)
        # `lane_keys` extracts with the transcript as salt from this.
        self.input = self.shared + expand(self.secret, b"ringwall cll 2 resumed")

    def fixed(self, label, length=32):
        return fixed(f"resumption {self.number} {label}", length)

    def make_ticket(self):
        content = b"\x01" + struct.pack("!QQQ", self.begins, self.ends, self.signed) + self.secret
        content += sha256(self.issuer.certificate) + self.holder.certificate
        key = expand(self.ticket_key, b"ringwall cll 2 ticket key", self.ticket_number)
        nonce = expand(self.ticket_key, b"ringwall cll 2 ticket iv", self.ticket_number, length=12)
        return self.ticket_number + AESGCM(key).encrypt(nonce, content, self.ticket_number)

    def message(self, kind, side, arp_message, ticket, asked):
        """With binder, in a reply with signature, and with site tag, whose place is zero while these are made."""
        own, peer = self.hosts[side], self.hosts[1 - side]
        unbound = bytes([kind, 0]) + bytes(16) + arp_message + struct.pack("!Q", self.timestamps_ms[side]) + self.nonce
        unbound += self.offers[side].emit() + self.share[side] + ticket
        label = [b"ringwall cll 2 resumption request", b"ringwall cll 2 resumption reply"][side]
        key = expand(self.secret, b"ringwall cll 2 binder")
        binder = hmac.new(key, counted(label) + asked + without_tag(unbound), hashlib.sha256).digest()
        message = unbound + binder
        if side == 1:
            signed = b"ringwall cll 2 resumption signature" + asked + without_tag(message)
            message += counted(own.key.sign(signed))
        header = ethernet(peer.mac, own.mac, ETHERTYPE_CLL)
        return with_tag(message, self.before.authority.site_key, header)

    def frame(self, side):
        header = ethernet(self.hosts[1 - side].mac, self.hosts[side].mac, ETHERTYPE_CLL)
        return header + (self.request, self.reply)[side]


def resumption_file(resumptions):
    out = Vectors("Resumptions of the associations of handshake-1.txt and handshake-3.txt: ticket, messages, transcript, keys of lane 0.")
    for resumed in resumptions:
        prefix = f"resumption{resumed.number}"
        out.comment(f"{resumed.holder.name} has a ticket of {resumed.issuer.name}, given in the association of handshake "
                    f"{resumed.before.case.number}.")
        out.put(f"{prefix}.old_shared_secret", resumed.before.shared)
        out.put(f"{prefix}.old_transcript", resumed.before.transcript)
        out.put(f"{prefix}.secret", resumed.secret)
        out.put(f"{prefix}.ticket_key", resumed.ticket_key)
        out.put(f"{prefix}.ticket_number", resumed.ticket_number)
        for name in ("begins", "ends", "signed"):
            out.put(f"{prefix}.{name}", struct.pack("!Q", getattr(resumed, name)))
        out.put(f"{prefix}.grant", resumed.grant)
        out.put(f"{prefix}.nonce", resumed.nonce)
        for side, name in enumerate(("initiator", "responder")):
            offer = resumed.offers[side]
            out.put(f"{prefix}.{name}.x25519_private", resumed.fixed(f"x25519 {name[0]}"))
            out.put(f"{prefix}.{name}.timestamp_ms", struct.pack("!Q", resumed.timestamps_ms[side]))
            out.put(f"{prefix}.{name}.suite", bytes([offer.suite]))
            out.put(f"{prefix}.{name}.confidential", bytes([offer.confidential]))
            out.put(f"{prefix}.{name}.slow_nonce", bytes([offer.slow_nonce]))
            out.put(f"{prefix}.{name}.lanes", bytes([offer.lanes]))
            out.put(f"{prefix}.{name}.receiver_index", struct.pack("!I", offer.receiver_index))
            out.put(f"{prefix}.{name}.lifetime_s", struct.pack("!I", offer.lifetime_s))
        out.put(f"{prefix}.resumption.request", resumed.frame(0))
        out.put(f"{prefix}.resumption.reply", resumed.frame(1))
        out.put(f"{prefix}.transcript", resumed.transcript)
        for side, label in enumerate(("from initiator", "from responder")):
            keys = lane_keys(resumed.input, resumed.transcript, label, 0, resumed.offers[side].suite)
            name = label.split()[1]
            out.put(f"{prefix}.{name}.lane0.key", keys.key)
            out.put(f"{prefix}.{name}.lane0.iv", keys.iv)
            out.put(f"{prefix}.{name}.lane0.spin_key", keys.spin)
            prk = pseudorandom_key(resumed.input, resumed.transcript)
            out.put(f"{prefix}.{name}.next_secret", expand(prk, b"ringwall cll 2 resumption", label.encode()))
    return out.text()


# ---- ML-KEM and pre-shared keys (sections 28 and 29) ----------------------------------------------------------------


class MlKem:
    """An ML-KEM exchange in the association of a handshake, as if its offers had the bit."""

    def __init__(self, before, offers):
        self.before, self.offers, self.hosts = before, offers, before.hosts
        self.d, self.z, self.m = (self.fixed(name) for name in "dzm")
        self.public, self.private = ml_kem.key_gen(self.d, self.z)
        self.ciphertext, self.secret = ml_kem.encapsulate(self.public, self.m)
        assert ml_kem.decapsulate(self.private, self.ciphertext) == self.secret
        self.kept = expand(pseudorandom_key(before.shared, before.transcript), b"ringwall cll 2 kept")
        self.nonce = self.fixed("nonce")[:16]
        self.request = bytes([TYPE_ROLLOVER_REQUEST, 1]) + self.nonce + offers[0].emit() + self.public
        self.reply = bytes([TYPE_ROLLOVER_REPLY, 1]) + self.nonce + offers[1].emit() + self.ciphertext
        hashes = sha256(self.request) + sha256(self.reply)
        self.transcript = sha256(b"ringwall cll 2 ml-kem transcript", before.transcript, hashes)

    @staticmethod
    def fixed(label):
        return fixed(f"ml-kem {label}")

    def sealed(self, side, message, sequence):
        """Under lane 0 of the old keys."""
        _, label, sender, receiver, offer, peers = list(self.before.sides())[side]
        keys = lane_keys(self.before.shared, self.before.transcript, label, 0, offer.suite)
        header = ethernet(receiver.mac, sender.mac, ETHERTYPE_CLL)
        return data_frame(header, offer, keys, peers.receiver_index, sequence, struct.pack("!HB", INNER_CONTROL, 0) + message)


def put_lane_0(out, prefix, secrets, transcript, offers):
    for side, name in enumerate(("initiator", "responder")):
        keys = lane_keys(secrets, transcript, f"from {name}", 0, offers[side].suite)
        out.put(f"{prefix}.{name}.lane0.key", keys.key)
        out.put(f"{prefix}.{name}.lane0.iv", keys.iv)
        out.put(f"{prefix}.{name}.lane0.spin_key", keys.spin)


def post_quantum_file(exchange, roll, resumed):
    shake = exchange.before
    out = Vectors("An ML-KEM exchange in the association of handshake-1.txt, as if both offers had the bit; what rollover and",
                  "resumption 1 lead to with a secret more; and a pre-shared key.")
    for name in ("d", "z", "m", "public", "private", "ciphertext", "secret"):
        out.put(f"ml_kem.{name}", getattr(exchange, name))
    out.put("old.transcript", shake.transcript)
    out.put("old.shared_secret", shake.shared)
    out.put("old.kept", exchange.kept)
    out.put("exchange.nonce", exchange.nonce)
    for side, name in enumerate(("initiator", "responder")):
        out.put(f"exchange.{name}.offer", exchange.offers[side].emit())
    out.put("exchange.request", exchange.request)
    out.put("exchange.reply", exchange.reply)
    out.put("exchange.transcript", exchange.transcript)
    put_lane_0(out, "exchange", exchange.secret + exchange.kept, exchange.transcript, exchange.offers)
    out.put("exchange.request.wire", exchange.sealed(0, exchange.request, 0x01000010))
    out.put("exchange.reply.wire", exchange.sealed(1, exchange.reply, 0x02000010))
    out.comment("Rollover 1, where the association keeps the secret above.")
    put_lane_0(out, "rollover", roll.shared + exchange.kept, roll.transcript, roll.offers)
    out.comment("A pre-shared key, its proof in the reply to handshake 1, and keys into which it goes.")
    key, request_hash = fixed("pre-shared key"), sha256(without_tag(shake.request))
    secret, check = (expand(key, b"ringwall cll 2 pre-shared " + use) for use in (b"secret", b"check"))
    out.put("pre_shared.key", key)
    out.put("pre_shared.name", expand(key, b"ringwall cll 2 pre-shared name", length=8))
    out.put("pre_shared.request_hash", request_hash)
    out.put("pre_shared.proof", short_tag(check, b"pre-shared key", request_hash))
    put_lane_0(out, "pre_shared.handshake", shake.shared + secret, shake.transcript, [shake.case.initiator, shake.case.responder])
    put_lane_0(out, "pre_shared.resumption", resumed.input + secret, resumed.transcript, resumed.offers)
    return out.text()


CASES = [
    Case(1, "First contact by IP address; one side encrypts, the other only authenticates.",
         Offer(AES_256_GCM, True, 1, 0x00010000, 1800), Offer(AES_256_GCM, False, 1, 0xFFFFFFF8, 3600)),
    Case(2, "The request answers a challenge.",
         Offer(AES_128_GCM, True, 1, 0x12345678, 1800), Offer(CHACHA20_POLY1305, False, 1, 0x00000008, 900),
         challenged=True),
    Case(3, "By hardware address alone, and with lanes.",
         Offer(CHACHA20_POLY1305, True, 2, 0x0BADCAF8, 60), Offer(AES_128_GCM, False, 3, 0x7FFFFFF0, 86400),
         by_address=False),
    Case(4, "The initiator has a slow nonce beside the spinning one.",
         Offer(AES_256_GCM, True, 1, 0x00C0FFE8, 1800, slow_nonce=True), Offer(AES_256_GCM, True, 1, 0x00ABCDE8, 1800)),
    Case(5, "First contact by IPv6 address.",
         Offer(AES_256_GCM, True, 1, 0x00600000, 1800), Offer(AES_256_GCM, True, 1, 0x00600008, 1800), ipv6=True),
    Case(6, "The initiator compresses and reads LZ4, the responder only reads it, and something that nobody knows yet.",
         Offer(AES_256_GCM, True, 1, 0x00700000, 1800, compression=SENDS_LZ4 | READS_LZ4),
         Offer(AES_128_GCM, False, 1, 0x00700008, 1800, slow_nonce=True, compression=READS_LZ4 | 0x20)),
]


# ---- S-ARP ---------------------------------------------------------------------------------------------------------

SARP_MAGIC, OPERATION_DISTRIBUTOR = 0x7599E11E, 0x00FF
SARP_SECONDS, SARP_FRACTION = START_UNIX_S + 5, 0x80000001


def sarp_unsigned(arp_message, kind, seconds, data):
    return arp_message + struct.pack("!IBBHI", SARP_MAGIC, kind, 0, len(data), seconds) + data


def sarp_frame(destination, source, unsigned, signature):
    message = unsigned[:33] + bytes([len(signature)]) + unsigned[34:] + signature
    return (ethernet(destination, source, ETHERTYPE_ARP) + message).ljust(60, b"\0")


def short_tag(key, label, message):
    return hmac.new(key, counted(label) + message, hashlib.sha256).digest()[:16]


def public_bytes(key):
    return key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def sarp_resolutions(alpha, omega):
    """A signed request of alpha for omega with a nonce, and its reply."""
    nonce = fixed("s-arp resolution", 8)
    request = sarp_unsigned(arp(1, alpha.mac, alpha.addresses[0].packed, bytes(6), omega.addresses[0].packed), 0x00,
                            SARP_SECONDS, struct.pack("!I", SARP_FRACTION) + nonce)
    reply = sarp_unsigned(arp(2, omega.mac, omega.addresses[0].packed, alpha.mac, alpha.addresses[0].packed), 0x00,
                          SARP_SECONDS, struct.pack("!I", SARP_FRACTION + 1) + nonce)
    yield "request.frame", sarp_frame(BROADCAST, alpha.mac, request, alpha.key.sign(request))
    yield "reply.frame", sarp_frame(alpha.mac, omega.mac, reply, omega.key.sign(reply))


def sarp_check(request_key, unsigned):
    """The first check: by a key that follows from the host's, over the bytes up to and with the nonce."""
    key = short_tag(request_key, b"s-arp check", b"")
    return struct.pack("<Q", siphash_2_4(key, unsigned[:64]))


def sarp_questions(alpha, omega, distributor_mac, distributor_ip, number, request_key):
    """What alpha asks a distributor, and the nonce of each request."""
    own = (alpha.mac, alpha.addresses[0].packed)
    for name, kind, about in [("time", 0x01, distributor_ip), ("key", 0x04, omega.addresses[0].packed)]:
        nonce = fixed(f"s-arp {name}", 16)
        unsigned = sarp_unsigned(arp(OPERATION_DISTRIBUTOR, *own, distributor_mac, about), kind, SARP_SECONDS,
                                 struct.pack("!Q", number) + nonce)
        proof = sarp_check(request_key, unsigned) + short_tag(request_key, b"s-arp request", unsigned)
        yield f"{name}-request.frame", sarp_frame(distributor_mac, alpha.mac, unsigned, proof)


def sarp_change(alpha, distributor_mac, distributor_ip, number, request_key, new):
    question = struct.pack("!Q", number) + fixed("s-arp change", 16)
    proof = new.sign(b"ringwall s-arp new key" + question + public_bytes(new))
    rest = bytes([1, len(proof)]) + proof + public_bytes(new)
    message = arp(OPERATION_DISTRIBUTOR, alpha.mac, alpha.addresses[0].packed, distributor_mac, distributor_ip)
    zeros = sarp_unsigned(message, 0x40, SARP_SECONDS, question + bytes(24) + rest)
    proof = sarp_check(request_key, zeros) + short_tag(request_key, b"s-arp key change", zeros)
    unsigned = sarp_unsigned(message, 0x40, SARP_SECONDS, question + proof + rest)
    return sarp_frame(distributor_mac, alpha.mac, unsigned, alpha.key.sign(unsigned))


def sarp_answers(alpha, omega, distributor_mac, distributor_ip, distributor_key, number):
    record = bytes([1, 1]) + omega.mac + public_bytes(omega.key)
    wanted = omega.addresses[0].packed
    answers = [("time", "time-reply", 0x02, distributor_ip, b""), ("key", "key-reply", 0x08, wanted, record),
               ("key", "key-not-found", 0x18, wanted, b""), ("key", "key-invalid", 0x20, wanted, b""),
               ("change", "key-changed", 0x48, distributor_ip, b"")]
    for asked, name, kind, about, rest in answers:
        data = struct.pack("!IQ", SARP_FRACTION, number) + fixed(f"s-arp {asked}", 16) + rest
        message = arp(OPERATION_DISTRIBUTOR, bytes(6), about, alpha.mac, alpha.addresses[0].packed)
        unsigned = sarp_unsigned(message, kind, SARP_SECONDS, data)
        yield f"{name}.frame", sarp_frame(alpha.mac, distributor_mac, unsigned, distributor_key.sign(unsigned))


def sarp_file(authority, alpha, omega):
    out = Vectors("S-ARP between the hosts alpha and omega of the site, and a distributor (docs/s-arp.md).")
    mac, ip, number = bytes.fromhex("0200000000aa"), IPv4Address("10.0.0.53").packed, 7
    distributor_seed, new_seed = fixed("s-arp distributor"), fixed("s-arp new key")
    distributor_key = Ed25519PrivateKey.from_private_bytes(distributor_seed)
    new = Ed25519PrivateKey.from_private_bytes(new_seed)
    master = fixed("s-arp master")
    request_key = hmac.new(master, counted(b"s-arp request key") + struct.pack("!Q", number), hashlib.sha256).digest()
    out.put("distributor.seed", distributor_seed)
    out.put("distributor.public", public_bytes(distributor_key))
    out.put("distributor.mac", mac)
    out.put("distributor.address", ip)
    out.put("master", master)
    out.put("alpha.number", struct.pack("!Q", number))
    out.comment("The request key of alpha, as it follows from master and number.")
    out.put("alpha.request_key", request_key)
    out.put("alpha.new_seed", new_seed)
    out.comment("Whole frames.")
    for name, frame in sarp_resolutions(alpha, omega):
        out.put(name, frame)
    for name, frame in sarp_questions(alpha, omega, mac, ip, number, request_key):
        out.put(name, frame)
    out.put("key-change.frame", sarp_change(alpha, mac, ip, number, request_key, new))
    for name, frame in sarp_answers(alpha, omega, mac, ip, distributor_key, number):
        out.put(name, frame)
    return out.text()


# ---- Enrolment by token --------------------------------------------------------------------------------------------


def hkdf_extract(salt, key):
    return hmac.new(salt or bytes(32), key, hashlib.sha256).digest()


def hkdf_expand(key, info, length):
    output, previous, counter = b"", b"", 1
    while len(output) < length:
        previous = hmac.new(key, previous + info + bytes([counter]), hashlib.sha256).digest()
        output, counter = output + previous, counter + 1
    return output[:length]


def labeled_extract(suite, salt, label, key):
    return hkdf_extract(salt, b"HPKE-v1" + suite + label + key)


def labeled_expand(suite, key, label, info, length):
    return hkdf_expand(key, struct.pack("!H", length) + b"HPKE-v1" + suite + label + info, length)


def hpke_seal(ephemeral, receiver, info, associated, plaintext):
    """RFC 9180, sections 4.1, 5.1 and 5.2: base mode, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM."""
    kem = b"KEM" + struct.pack("!H", 0x0020)
    suite = b"HPKE" + struct.pack("!HHH", 0x0020, 0x0001, 0x0001)
    encapsulated = public_bytes(ephemeral)
    shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(receiver))
    extracted = labeled_extract(kem, b"", b"eae_prk", shared)
    secret = labeled_expand(kem, extracted, b"shared_secret", encapsulated + receiver, 32)
    context = bytes([0]) + labeled_extract(suite, b"", b"psk_id_hash", b"") + labeled_extract(suite, b"", b"info_hash", info)
    secret = labeled_extract(suite, secret, b"secret", b"")
    key = labeled_expand(suite, secret, b"key", context, 16)
    nonce = labeled_expand(suite, secret, b"base_nonce", context, 12)
    return encapsulated + AESGCM(key).encrypt(nonce, plaintext, associated)


def certificate_request(host, *extensions):
    names = [x509.OtherName(MAC_ADDRESS_OID, b"\x04\x06" + host.mac)]
    names += [x509.IPAddress(address) for address in host.addresses]
    builder = x509.CertificateSigningRequestBuilder().subject_name(distinguished_name(host.name, host.role))
    for extension in (x509.SubjectAlternativeName(names), *extensions):
        builder = builder.add_extension(extension, critical=False)
    return der(builder.sign(host.key, None))


def enrolment_frame(secret, label, destination, source, message, kind, data):
    unsigned = sarp_unsigned(message, kind, 0, data)
    return sarp_frame(destination, source, unsigned, short_tag(secret, label, unsigned))


def enrolment_file(authority, alpha):
    out = Vectors("Alpha enrols by token at a distributor of the site (docs/s-arp.md, section 8).")
    mac, ip = bytes.fromhex("0200000000aa"), IPv4Address("10.0.0.53").packed
    master = fixed("s-arp master")
    drawn = bytes.fromhex("0123456789")
    check = siphash_2_4(short_tag(master, b"s-arp token number", b""), drawn) & 0xFFFFFF
    number = int.from_bytes(drawn, "big") << 24 | check
    secret = short_tag(master, b"s-arp token", struct.pack("!Q", number))
    content = bytes([1]) + struct.pack("!Q", number) + secret + hashlib.sha256(authority.certificate).digest()
    content += bytes([len(alpha.name)]) + alpha.name.encode() + bytes([1]) + ip + mac
    token = content + hashlib.sha256(content).digest()[:4]
    private = fixed("enrolment sealing key")
    sealing = public_bytes(X25519PrivateKey.from_private_bytes(private))
    request = certificate_request(alpha)
    out.put("master", master)
    out.put("token.drawn", drawn)
    out.put("token.number", struct.pack("!Q", number))
    out.put("token.secret", secret)
    out.put("token", token)
    out.comment("The same as text.")
    out.put("token.text", base64.urlsafe_b64encode(token).rstrip(b"="))
    out.comment("What alpha makes, and what its owner compares.")
    out.put("sealing.private", private)
    out.put("sealing.public", sealing)
    out.put("request", request)
    digest = hashlib.sha256(b"ringwall applicant" + sealing + public_bytes(alpha.key)).digest()[:16].hex()
    out.put("fingerprint.text", "-".join(digest[at:at + 4] for at in range(0, 32, 4)).encode())
    out.comment("What comes back, sealed with an ephemeral key that is fixed here.")
    bundle = b"a bundle of alpha\n" * 100
    associated = struct.pack("!Q", number) + request
    ephemeral = X25519PrivateKey.from_private_bytes(fixed("enrolment ephemeral"))
    sealed = hpke_seal(ephemeral, sealing, b"ringwall s-arp enrolment", associated, bundle)
    out.put("bundle", bundle)
    out.put("sealed", sealed)
    out.comment("Whole frames.")
    asks = arp(OPERATION_DISTRIBUTOR, alpha.mac, bytes(4), mac, ip)
    answers = arp(OPERATION_DISTRIBUTOR, bytes(6), ip, alpha.mac, bytes(4))
    question = lambda name: struct.pack("!Q", number) + fixed(f"enrolment {name}", 16)
    frames = [("application", 0xA0, "application", sealing + request), ("fetch", 0xA4, "fetch", struct.pack("!H", 1024))]
    for name, kind, asked, rest in frames:
        data = question(asked) + rest
        out.put(f"{name}.frame", enrolment_frame(secret, b"s-arp enrolment", mac, alpha.mac, asks, kind, data))
    for name, asked, state, total, offset, piece in [("waiting", "application", 1, 0, 0, b""),
                                                     ("piece", "fetch", 2, len(sealed), 1024, sealed[1024:2048]),
                                                     ("refused", "fetch", 3, 0, 0, b"")]:
        data = question(asked) + struct.pack("!BHH", state, total, offset) + piece
        frame = enrolment_frame(secret, b"s-arp enrolment answer", alpha.mac, mac, answers, 0xA8, data)
        out.put(f"{name}.frame", frame)
    return out.text()


# ---- Renewal (docs/protocol.md, section 14) --------------------------------------------------------------------------


def renewal_file(alpha):
    out = Vectors("Alpha asks for another certificate for its key, and is answered (docs/protocol.md, section 14).")
    encoding = (serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    private_key = alpha.key.private_bytes(*encoding)
    private = hkdf_expand(hkdf_extract(b"ringwall renewal", private_key), b"sealing key", 32)
    key = X25519PrivateKey.from_private_bytes(private)
    encoding = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    spki = key.public_key().public_bytes(*encoding)
    out.put("private_key", private_key)
    out.put("sealing.private", private)
    out.put("sealing.spki", spki)
    out.put("request", certificate_request(alpha, x509.UnrecognizedExtension(SECOND_KEY_OID, spki)))
    out.comment("What comes back, sealed with an ephemeral key that is fixed here.")
    bundle = b"a bundle of alpha\n" * 20
    ephemeral = X25519PrivateKey.from_private_bytes(fixed("renewal ephemeral"))
    sealed = base64.b64encode(hpke_seal(ephemeral, public_bytes(key), b"ringwall renewal", b"", bundle)).decode()
    lines = [sealed[at:at + 64] for at in range(0, len(sealed), 64)]
    label = "RINGWALL SEALED BUNDLE"
    out.put("bundle.text", bundle)
    out.put("answer.text", "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""]).encode())
    return out.text()


def shared_keys_file(authority, alpha):
    """One site key follows another, and the request keys stay the only ones that there are."""
    out = Vectors("One site key follows another: what alpha is given, and what it asks with (docs/protocol.md, section 3).")
    no_end = 2**64 - 1
    terms = [(7, 1_800_000_000, 1_800_700_000), (8, 1_800_600_000, no_end)]
    keys = [authority.site_key, fixed("next site key")]
    blocks = [struct.pack("!IQQ", *term) + key for term, key in zip(terms, keys)]
    label = b"RINGWALL SITE KEY"
    digests = [hashlib.sha256(struct.pack("!H", len(label)) + label + block).digest() for block in blocks]
    statement = b"ringwall shared keys" + hashlib.sha256(alpha.certificate).digest() + b"".join(digests)
    encoding = (serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    out.put("authority", authority.certificate)
    out.put("certificate", alpha.certificate)
    out.put("private_key", alpha.key.private_bytes(*encoding))
    out.put("former.block", blocks[0])
    out.put("next.block", blocks[1])
    out.put("statement", statement)
    out.put("signature", authority.key.sign(statement))
    out.comment("The same message under either key.")
    for name, key in zip(["former", "next"], keys):
        out.put(f"{name}.tag", short_tag(key, b"handshake", b"message"))
    out.comment("A request for the keys as they are now, of a host that has generation 7, and of one that has 0xffffffff.")
    out.put("request", certificate_request(alpha, x509.UnrecognizedExtension(SHARED_KEYS_OID, bytes.fromhex("020107"))))
    last = x509.UnrecognizedExtension(SHARED_KEYS_OID, bytes.fromhex("020500ffffffff"))
    out.put("request_of_last", certificate_request(alpha, last))
    return out.text()


# ---- S-DHCP --------------------------------------------------------------------------------------------------------

DHCP_REQUEST, DHCP_ACK, OPTION_PROOF = 3, 5, 233
COOKIE = bytes([99, 130, 83, 99])
NO_ADDRESS = bytes(4)


def internet_sum(data):
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + bytes(len(data) % 2)))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def option(code, value):
    return bytes([code, len(value)]) + value


def dhcp_fixed(op, xid, yiaddr, chaddr, hops=0, secs=0, giaddr=NO_ADDRESS):
    head = struct.pack("!BBBBIHH", op, 1, 6, hops, xid, secs, 0)
    return head + NO_ADDRESS + yiaddr + NO_ADDRESS + giaddr + chaddr.ljust(16, b"\0") + bytes(64 + 128)


def dhcp_frame(destination, source, addresses, ports, fixed_fields, options):
    """The options end with END, and zeros fill the message to 300 bytes."""
    bootp = (fixed_fields + COOKIE + options + b"\xff").ljust(300, b"\0")
    length = 8 + len(bootp)
    pseudo = addresses[0] + addresses[1] + struct.pack("!BBH", 0, 17, length)
    udp = struct.pack("!HHHH", *ports, length, 0) + bootp
    udp = udp[:6] + struct.pack("!H", internet_sum(pseudo + udp) or 0xFFFF) + udp[8:]
    ip = struct.pack("!BBHHHBBH", 0x45, 0x10, 20 + length, 0, 0, 64, 17, 0) + addresses[0] + addresses[1]
    ip = ip[:10] + struct.pack("!H", internet_sum(ip)) + ip[12:]
    return ethernet(destination, source, ETHERTYPE_IPV4) + ip + udp


def dhcp_proof(maker, key, site_key, who, nonce, fields, digest):
    """Proof, and the claim that it signs; `fields` are type, xid, chaddr, ciaddr, address and server identifier."""
    head = who + struct.pack("!II", SARP_SECONDS, SARP_FRACTION) + nonce
    claim = head + fields + digest
    signed = {1: b"ringwall s-dhcp client", 2: b"ringwall s-dhcp server"}[maker] + claim
    return bytes([maker]) + head + short_tag(site_key, b"s-dhcp", signed) + key.sign(signed), claim


def sdhcp_file(authority, alpha):
    out = Vectors("S-DHCP: alpha gets a lease from the server sigma, straight and through a relay (docs/s-dhcp.md).")
    sigma = Host(authority, "sigma", 0x1003, bytes.fromhex("0200000000dd"), ["10.0.0.67"], "dhcp")
    number, xid, leased, nonce = struct.pack("!Q", 7), 0x5D0C9, IPv4Address("10.0.0.99").packed, fixed("s-dhcp", 16)
    name = hashlib.sha256(public_bytes(sigma.key)).digest()[:8]
    out.put("sigma.certificate", sigma.certificate)
    out.put("sigma.seed", sigma.seed)
    out.put("sigma.mac", sigma.mac)
    out.put("sigma.address", sigma.ip)
    out.put("sigma.key_name", name)
    out.put("alpha.number", number)
    out.put("leased", leased)
    out.put("nonce", nonce)
    out.put("stamp", struct.pack("!II", SARP_SECONDS, SARP_FRACTION))

    asked = (option(53, bytes([DHCP_REQUEST])) + option(50, leased) + option(54, sigma.ip)
             + option(61, b"\x01" + alpha.mac) + option(55, bytes([1, 3, 6])))
    granted = (option(53, bytes([DHCP_ACK])) + option(54, sigma.ip) + option(51, struct.pack("!I", 600))
               + option(1, bytes([255, 255, 255, 0])) + option(3, sigma.ip))
    messages = [
        ("request", 1, alpha, number, DHCP_REQUEST, asked, NO_ADDRESS, (68, 67), (NO_ADDRESS, b"\xff" * 4), alpha.mac),
        ("ack", 2, sigma, name, DHCP_ACK, granted, leased, (67, 68), (sigma.ip, b"\xff" * 4), sigma.mac),
    ]
    for word, maker, host, who, kind, options, yiaddr, ports, addresses, source in messages:
        fixed_fields = dhcp_fixed(maker, xid, yiaddr, alpha.mac)
        digest = hashlib.sha256(fixed_fields + options).digest()
        fields = bytes([kind]) + struct.pack("!I", xid) + alpha.mac + NO_ADDRESS + leased + sigma.ip
        proof, claim = dhcp_proof(maker, host.key, authority.site_key, who, nonce, fields, digest)
        frame = (BROADCAST, source, addresses, ports)
        out.comment(f"The {word}: as the program says it, what is claimed, the proof, as it is on the wire, and as a relay with hops 1,")
        out.comment("secs 4, a giaddr and its option 82 passes it on.")
        out.put(f"{word}.plain", dhcp_frame(*frame, fixed_fields, options))
        out.put(f"{word}.claim", claim)
        out.put(f"{word}.proof", proof)
        out.put(f"{word}.wire", dhcp_frame(*frame, fixed_fields, options + option(OPTION_PROOF, proof)))
        relayed = dhcp_fixed(maker, xid, yiaddr, alpha.mac, 1, 4, bytes([10, 9, 0, 1]))
        out.put(f"{word}.relayed", dhcp_frame(*frame, relayed, options + option(OPTION_PROOF, proof) + option(82, b"\x01\x01\x07")))
        if word == "request":
            lease = number + fixed("s-dhcp lease", 16) + bytes([2]) + leased + bytes(4) + number + claim + proof[49:]
            check = number + fixed("s-dhcp check", 16) + bytes([1]) + NO_ADDRESS + bytes(4) + number
            out.comment("What the server asks a distributor, whose key it is and then for the address: data without header and tag.")
            out.put("check.data", check)
            out.put("lease.data", lease)
    return out.text()


# ---- DHCP under the link layer (docs/protocol.md, section 22) ------------------------------------------------------


def tag_under(key, label, data):
    return hmac.new(key, struct.pack("!H", len(label)) + label + data, hashlib.sha256).digest()


def cll_dhcp_frame(key, client_id, flags, addresses, seconds, counter, nonces, certificate, packet):
    """`addresses` are Ethernet destination and source, `nonces` those of client and server."""
    header = ethernet(*addresses, ETHERTYPE_CLL)
    front = bytes([TYPE_DHCP, flags])
    rest = client_id + struct.pack("!QI", seconds, counter) + nonces[0] + nonces[1] + counted(certificate) + packet
    return header + front + tag_under(key, b"cll dhcp", header + front + rest)[:16] + rest


def cll_dhcp_file(alpha):
    out = Vectors(
        "DHCP frames: alpha looks for a server, is challenged, says it again, is offered an address and asks for it",
        "(docs/protocol.md, section 22). The certificate stands for a base certificate; no client looks into its own.",
    )
    server_mac, server_ip, leased = bytes.fromhex("0200000000dd"), IPv4Address("10.0.0.67").packed, IPv4Address("10.0.0.99").packed
    master, expires = fixed("cll dhcp master"), START_UNIX_S + 365 * DAY_S
    client_id = alpha.mac + struct.pack("!Q", expires)
    key = tag_under(master, b"cll dhcp key", client_id)
    nonces = {word: fixed(f"cll dhcp {word}", 16) for word in ("discover", "request", "challenge", "offer")}
    zeros = bytes(16)
    out.put("master", master)
    out.put("alpha.mac", alpha.mac)
    out.put("expires", struct.pack("!Q", expires))
    out.put("key", key)
    out.put("certificate", alpha.certificate)
    out.put("timestamp", struct.pack("!Q", START_UNIX_S))
    for word, nonce in nonces.items():
        out.put(f"nonce.{word}", nonce)

    xid, wire = 0xC11D, (BROADCAST, alpha.mac)
    asks, answers = (68, 67), (67, 68)
    discover = dhcp_frame(*wire, (NO_ADDRESS, b"\xff" * 4), asks, dhcp_fixed(1, xid, NO_ADDRESS, alpha.mac), option(53, b"\x01"))
    offered = option(53, b"\x02") + option(54, server_ip) + option(51, struct.pack("!I", 600))
    offer = dhcp_frame(alpha.mac, server_mac, (server_ip, leased), answers, dhcp_fixed(2, xid, leased, alpha.mac), offered)
    wanted = option(53, bytes([DHCP_REQUEST])) + option(50, leased) + option(54, server_ip)
    request = dhcp_frame(*wire, (NO_ADDRESS, b"\xff" * 4), asks, dhcp_fixed(1, xid, NO_ADDRESS, alpha.mac), wanted)

    def put(word, plain, flags, addresses, counter, client_nonce, server_nonce, certificate=b""):
        if plain:
            out.put(f"{word}.plain", plain)
        frame = (addresses, START_UNIX_S, counter, (nonces[client_nonce], server_nonce), certificate, plain[14:])
        out.put(f"{word}.wire", cll_dhcp_frame(key, client_id, flags, *frame))

    back = (alpha.mac, server_mac)
    out.comment("The client says it, the server asks whether it is there, and it alone gets it again.")
    put("discover", discover, 0, wire, 0, "discover", zeros)
    put("challenge", b"", 1, back, 0, "discover", nonces["challenge"])
    put("again", discover, 0, (server_mac, alpha.mac), 1, "discover", nonces["challenge"])
    out.comment("The OFFER has a newer nonce, which the REQUEST to this server repeats, with the certificate.")
    put("offer", offer, 1, back, 1, "discover", nonces["offer"])
    put("request", request, 0, wire, 2, "request", nonces["offer"], alpha.certificate)
    return out.text()


# ---- The shield in front of IPsec (docs/protocol.md, section 20) ---------------------------------------------------


def shield_direction_key(pair_key, sender):
    label = b"ringwall shield ipsec" + sender
    return b"".join(struct.pack("<Q", siphash_2_4(pair_key, label + bytes([half]))) for half in (0, 1))


def shield_once(key, number, sequence):
    """Four rounds of a Feistel network."""
    left, right = number >> 16, number & 0xFFFF
    for number_of_round in range(4):
        message = struct.pack("!QHB", sequence, right, number_of_round)
        left, right = right, left ^ (siphash_2_4(key, message) & 0xFFFF)
    return left << 16 | right


def shield_index(key, spi, sequence):
    index = shield_once(key, spi, sequence)
    while index < 256:
        index = shield_once(key, index, sequence)
    return index


def shield_file():
    out = Vectors(
        "Indexes on the wire, index.SENDER.SPI.SEQUENCE: what stands in place of the SPI in a packet of end SENDER",
        "with this sequence number of 64 bits, under the pair's key of one epoch.",
    )
    pair_key = fixed("shield pair", 16)
    out.put("key", pair_key)
    for sender in (b"a", b"b"):
        key = shield_direction_key(pair_key, sender)
        out.put(f"direction.{sender.decode()}", key)
        for spi in (0x100, 0xC0000001, 0xCAFEF00D, 0xFFFFFFFF):
            for sequence in (1, 2, 0x7FFFFFFF, 0x80000000, 0x1_0000_0001):
                index = struct.pack("!I", shield_index(key, spi, sequence))
                out.put(f"index.{sender.decode()}.{spi:08x}.{sequence:016x}", index)
    return out.text()


def list_messages_file():
    """Section 24: messages about a revocation list of 1,500 bytes, which is made up."""
    out = Vectors("Messages by which a revocation list goes from peer to peer (docs/protocol.md, section 24).")
    issued_unix, der = 1_800_000_000, fixed("revocation list", 1500)
    out.put("list.issued_unix", struct.pack("!Q", issued_unix))
    out.put("list.der", der)

    def message(kind, offset, piece=b""):
        return struct.pack("!BBQII", 0x2F, kind, issued_unix, len(der), offset) + piece

    out.put("offer", message(1, 0))
    for number, offset in enumerate(range(0, len(der), 1024)):
        out.put(f"question.{number}", message(2, offset))
        out.put(f"piece.{number}", message(3, offset, der[offset:offset + 1024]))
    return out.text()


def policy_file(authority):
    """Section 30: a policy with one of everything, and messages about it."""
    out = Vectors("A site policy (docs/protocol.md, section 30) of the authority in site.txt, and messages about it.")
    observe, prefer, enforce = 0, 1, 2
    legacy = [("020000000008", "192.0.2.8", 2), ("020000000009", "192.0.2.1", 1)]
    known, exceptions = [("192.0.2.7", "020000000007")], [("020000000006", observe)]
    groups = [(observe, observe, 0, ["*"]), (prefer, enforce, START_UNIX_S + 3600, ["cam-1", "desk-*"])]
    content = struct.pack("!BQQ", 1, 3, START_UNIX_S) + struct.pack("!H", len(legacy))
    for mac, ip, flags in legacy:
        content += bytes.fromhex(mac) + IPv4Address(ip).packed + bytes([flags])
    content += struct.pack("!H", len(known))
    for ip, mac in known:
        content += IPv4Address(ip).packed + bytes.fromhex(mac)
    content += struct.pack("!H", len(exceptions))
    for mac, mode in exceptions:
        content += bytes.fromhex(mac) + bytes([mode])
    content += struct.pack("!H", len(groups))
    for mode, after, at, patterns in groups:
        content += struct.pack("!BBQB", mode, after, at, len(patterns))
        for pattern in patterns:
            content += bytes([len(pattern)]) + pattern.encode()
    label = b"ringwall site policy 1"
    policy = content + authority.key.sign(struct.pack("!H", len(label)) + label + content)
    out.put("policy", policy)
    out.put("version", struct.pack("!Q", 3))

    def message(kind, piece=b""):
        return struct.pack("!BBQII", 0x2F, kind, 3, len(policy), 0) + piece

    out.put("offer", message(4))
    out.put("question", message(5))
    out.put("piece", message(6, policy))
    return out.text()


def all_files():
    authority = Authority()
    alpha = Host(authority, "alpha", 0x1001, bytes.fromhex("020000000001"), ["10.0.0.1"], "host")
    omega = Host(authority, "omega", 0x1002, bytes.fromhex("0200000000ff"), ["10.0.0.254", "192.168.7.1"], "router")
    files = {"siphash.txt": siphash_file(), "site.txt": site_file(authority, [alpha, omega])}
    files["s-arp.txt"] = sarp_file(authority, alpha, omega)
    files["enrolment.txt"] = enrolment_file(authority, alpha)
    files["renewal.txt"] = renewal_file(alpha)
    files["shared-keys.txt"] = shared_keys_file(authority, alpha)
    files["s-dhcp.txt"] = sdhcp_file(authority, alpha)
    files["cll-dhcp.txt"] = cll_dhcp_file(alpha)
    files["shield-ipsec.txt"] = shield_file()
    files["broadcast.txt"] = broadcast_file(authority, alpha, omega)
    shakes = [Handshake(case, authority, alpha, omega) for case in CASES]
    for shake in shakes:
        files[f"handshake-{shake.case.number}.txt"] = handshake_file(shake)
    files["list-messages.txt"] = list_messages_file()
    files["policy.txt"] = policy_file(authority)
    rollovers = [
        Rollover(1, shakes[0], False,
                 (Offer(AES_256_GCM, True, 1, 0x00020000, 1800), Offer(AES_256_GCM, False, 1, 0x00030008, 3600))),
        Rollover(2, shakes[2], True,
                 (Offer(AES_128_GCM, False, 3, 0x00040010, 86400, slow_nonce=True), Offer(CHACHA20_POLY1305, True, 2, 0x00050018, 60))),
    ]
    files["rollover.txt"] = rollover_file(rollovers)
    resumptions = [
        Resumption(1, shakes[0], False, True,
                   (Offer(AES_256_GCM, True, 1, 0x00060000, 1800), Offer(AES_256_GCM, False, 1, 0x00070008, 3600))),
        Resumption(2, shakes[2], True, False,
                   (Offer(AES_128_GCM, False, 3, 0x00080010, 86400, slow_nonce=True), Offer(CHACHA20_POLY1305, True, 2, 0x00090018, 60))),
    ]
    files["resumption.txt"] = resumption_file(resumptions)
    exchange = MlKem(shakes[0], (Offer(AES_256_GCM, True, 1, 0x000A0000, 1800, compression=POST_QUANTUM),
                                 Offer(AES_256_GCM, False, 1, 0x000B0008, 3600, compression=POST_QUANTUM)))
    files["post-quantum.txt"] = post_quantum_file(exchange, rollovers[0], resumptions[0])
    return files


def main():
    check_siphash()
    here = Path(__file__).resolve().parent
    files = all_files()
    if sys.argv[1:] == ["--check"]:
        differ = [name for name, text in files.items() if (here / name).read_text() != text]
        sys.exit(f"differ from vectors/make.py: {', '.join(differ)}" if differ else 0)
    for name, text in files.items():
        (here / name).write_text(text)


if __name__ == "__main__":
    main()
