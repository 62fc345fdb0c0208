#!/usr/bin/env python3
"""Golden vectors of the paper profile (docs/protocol.md, section 27), made without any of the program's code.

Diffie-Hellman, KDF2, RSA-PSS with a fixed salt and CBC-CS1 are written out below from their definitions; the blocks of AES, Blowfish and
SEED come from Debian's python3-cryptography, the hashes from Python. The rest is that of make.py.

    vectors/paper.py            writes paper-profile.txt beside this script
    vectors/paper.py --check    compares it with what it would write; status 1 where it differs
"""

import base64
import hashlib
import hmac
import struct
import sys
import warnings
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import make

# Old ciphers are what this is about.
warnings.simplefilter("ignore")
PAPER_UNIT = "ringwall paper profile, not for real use"
SECOND_KEY = x509.ObjectIdentifier("2.5.29.72")
GROUP_14, SHARE_LEN = 2, 256

# The RSA keys of the two hosts, 1024 bits, RSAPrivateKey in DER.
RSA_KEYS = {
    "alpha": """
        MIICXQIBAAKBgQDLQgnX84PqL+pRmMeL0YmwSfzg04ktLoGy8pcHmHu4rUcLloQzNL7Rji2OA257CvKEl2MCVYPar4a1jQpHY/jr
        PnXBqZmomzoL2sCaYVg+4Ndjr3l24mu/hnuSq6OnenwCXgNiV2CJv1qY/gGGEhx2Bwz3RE456S1XdjBlOriHowIDAQABAoGBAMjT
        kghF+dO8zgcbLiZOvX1qTSoSuBnlNo8JtAH0PmIFCwo/CJXTiqpgkVAcwd9evKoXLeNTfPjoru/Y0Awjkf+QfYRCj0DKatYMxtDw
        rktIP0xLdH1P8nYmnaZu/GTkpQ115Vtb+Z/xqATkCbd3Ww/X93ZS71sgJ9/zeFS0YCgxAkEA+LdwX/UQpdFKAtsxUgbqGjbmserz
        XhQvjIaHUmtyiqqFQPwxur+gVf69SLT/iM/mDbzFfqRL4IV4TwXWlAJneQJBANE1zwMbVs1z64TAPKT41B6T6f0vmG7hJK62GMSg
        5kUrmZ9Gv8IfnAJVyZfVzOZw6vibu4WWQ9OMcCNFXHV8tPsCQFzZjngkMszUbv7V+XmX3zleGY1+GtCaVI3vgwE/34jo08pI2//N
        nfu8l8lW2LaodkfWmxwGFdWBvkIx+cNTinECQQCZgjobtXvD1UMDbWsSQeKjbTVMKhhXg6w+5i7WWJmeN5fJX0hlUHxQ2lHJr39h
        t4kyUlMOemvaVjoSJ1roelDxAkAPznff33CJkpyjVjrU6WA6j49wR+mrlnquus2wJJJ1bd6T7N3Ii4r7o894J4vxqJt0NfcEas1J
        MS78Rp3XWnO0
    """,
    "omega": """
        MIICXAIBAAKBgQCv6U57f58q12iiPm6s969KugifZMMoDcp7FUCMrOwHQZnWrlL3CP8RVwrdw2YB6nmMXLd2u9wZ42TekPcWwIjp
        Eo6y0LpNX5VJ5Q9kBGvdXoZ+q18Mr8VLmu8xvTx8mzlgcR3CKrobsboySUlFZMjxSPbQsCTzAuEQZ0ECwYEVKwIDAQABAoGALYST
        OEWXrAA9JO4+uScGBrIIlSX/kZev8xVWtI/yKxaAdhp5gU6koZoCR8vN02UWuokrN9/4XgKHEUg1h3+ebTLA8v9IBTVA7XaukQ8o
        bR/com7EmwYf6G8mAz8P6DPjSLkBBea91EgZs7LpPdJvArzRT8IJRqX8KCElg8q2DSECQQDiWymzPR01LFY6kaOwGdw2H3rSAqcv
        +XUCfn6YW1ubNELCfq5wyFkffNMU5pxfcjx6AGrh5ygjp2gM59Eah1O5AkEAxvLtj7DesBGnvQdfFZawBuSFDPlWwR5BMDW6duys
        Zpc8tyOyqW7r74i0XiCHNeAQM/RtLrCiJ19dsrI/NITqAwJAXhjfoO9K8QvZXMemcFKPxMAZYqxPrBXbmonTPqrbzg1Po2LeSWxA
        AGL3rLyhTNxEX8NEq1xYx1mUW6kSuCCBoQJAMsAZlcQaqnN2hKPyv4EXGksFHdAlL1JWcsPh8yBgwjLmTBmRI+Ol0A7hY/mMRFQK
        DhbWG0j3tG+BaWpK8UzOnQJBALzSBD/0563PfQNVAXXwcRY1/M2MvGIquBLVzub7OG5+UOxjIAPBnuU6DMovJT9R52KYdgsgD5f5
        Y6J2BIjAmDU=
    """,
}
# The number of a hash in the block of a second key, its name here, and its object identifier in DER.
HASHES = {
    "sha1": (16, "2b0e03021a"),
    "sha256": (17, "608648016503040201"),
    "ripemd160": (18, "2b24030201"),
}
HASH_OF = {"alpha": "sha1", "omega": "ripemd160"}


def arctan_of_inverse(number, bits):
    """arctan(1 / number) as a fixed-point number with so many bits behind the point."""
    power = (1 << bits) // number
    total, divisor, sign = power, 3, -1
    while power:
        power //= number * number
        total += sign * (power // divisor)
        divisor, sign = divisor + 2, -sign
    return total


def prime_of_group_14():
    """RFC 3526, section 3: 2^2048 - 2^1984 - 1 + 2^64 * ([2^1918 pi] + 124476)."""
    bits = 1918 + 64
    pi = 4 * (4 * arctan_of_inverse(5, bits) - arctan_of_inverse(239, bits)) >> 64
    return 2**2048 - 2**1984 - 1 + 2**64 * (pi + 124476)


# ---- RSA -----------------------------------------------------------------------------------------------------------


def tlv(tag, *parts):
    """One element in DER."""
    content = b"".join(parts)
    length = len(content)
    if length < 128:
        return bytes([tag, length]) + content
    size = (length.bit_length() + 7) // 8
    return bytes([tag, 0x80 | size]) + length.to_bytes(size, "big") + content


def sequence(*parts):
    return tlv(0x30, *parts)


def pss_parameters(name):
    """RFC 4055, section 3.1. What is the default, SHA-1 with a salt of 20 bytes, is left out."""
    oid = tlv(0x06, bytes.fromhex(HASHES[name][1]))
    salt_len = hashlib.new(name).digest_size
    parts = []
    if name != "sha1":
        algorithm = sequence(oid, tlv(0x05))
        mgf1 = tlv(0x06, bytes.fromhex("2a864886f70d010108"))
        parts += [tlv(0xA0, algorithm), tlv(0xA1, sequence(mgf1, algorithm))]
    if salt_len != 20:
        parts.append(tlv(0xA2, tlv(0x02, bytes([salt_len]))))
    return sequence(*parts)


class RsaKey:
    def __init__(self, host):
        self.hash = HASH_OF[host]
        self.der = base64.b64decode(RSA_KEYS[host])
        loaded = serialization.load_der_private_key(self.der, None)
        private = loaded.private_numbers()
        self.d, self.n, self.e = private.d, private.public_numbers.n, private.public_numbers.e
        form = serialization.PublicFormat.PKCS1
        self.public = loaded.public_key().public_bytes(serialization.Encoding.DER, form)

    @property
    def block(self):
        return bytes([HASHES[self.hash][0]]) + self.der

    def spki(self):
        pss = tlv(0x06, bytes.fromhex("2a864886f70d01010a"))
        return sequence(sequence(pss, pss_parameters(self.hash)), tlv(0x03, b"\0", self.public))

    def digest(self, *parts):
        return hashlib.new(self.hash, b"".join(parts)).digest()

    def mask(self, seed, length):
        """MGF1 (RFC 8017, appendix B.2.1)."""
        blocks = (self.digest(seed, struct.pack("!I", counter)) for counter in range(length))
        out = b""
        while len(out) < length:
            out += next(blocks)
        return out[:length]

    def sign(self, message, salt_label):
        """RFC 8017, sections 8.1.1 and 9.1.1, with a fixed salt. The modulus has a multiple of 8 bits."""
        salt = make.fixed(salt_label, hashlib.new(self.hash).digest_size)
        length = (self.n.bit_length() + 7) // 8
        final = self.digest(bytes(8), self.digest(message), salt)
        data = bytes(length - len(salt) - len(final) - 2) + b"\x01" + salt
        masked = bytearray(a ^ b for a, b in zip(data, self.mask(final, len(data))))
        masked[0] &= 0x7F
        encoded = bytes(masked) + final + b"\xbc"
        return pow(int.from_bytes(encoded, "big"), self.d, self.n).to_bytes(length, "big")


# ---- The site ------------------------------------------------------------------------------------------------------


class Authority(make.Authority):
    """A site of the paper profile, which the subject names; certificates carry a second key."""

    def __init__(self):
        self.seed = make.fixed("paper authority")
        self.key = make.Ed25519PrivateKey.from_private_bytes(self.seed)
        self.name = make.distinguished_name("paper", PAPER_UNIT)
        builder = make.certificate_builder(self.name, self.name, self.key, 1, 3650)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(make.key_usage(key_cert_sign=True, crl_sign=True), critical=True)
        self.certificate = make.der(builder.sign(self.key, None))
        self.site_key = make.fixed("paper site key")

    def issue(self, host):
        names = [x509.OtherName(make.MAC_ADDRESS_OID, b"\x04\x06" + host.mac)]
        names += [x509.IPAddress(address) for address in host.addresses]
        subject = make.distinguished_name(host.name, host.role)
        builder = make.certificate_builder(subject, self.name, host.key, host.serial, 365)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(make.key_usage(digital_signature=True), critical=True)
        second = x509.UnrecognizedExtension(SECOND_KEY, RsaKey(host.name).spki())
        return make.der(builder.add_extension(second, critical=False).sign(self.key, None))


# ---- Frames --------------------------------------------------------------------------------------------------------

CIPHERS = (
    [("aes", bits, algorithms.AES, 16) for bits in (128, 192, 256)] + [None] * 15
    + [("blowfish", bits, algorithms.Blowfish, 8) for bits in (128, 192, 256)] + [None] * 4
    + [("seed", 128, algorithms.SEED, 16), None]
)
NONCE_ONLY = 0xC7
MACS = [("md5", 16), ("sha1", 20), ("sha256", 32), ("ripemd160", 20), ("has160", 20)]


def suite_id(cipher, bits, mac):
    row = next(row for row, entry in enumerate(CIPHERS) if entry and entry[:2] == (cipher, bits))
    return 0x40 + 5 * row + [name for name, _ in MACS].index(mac)


class NoTag:
    """Neither key nor cipher, and zeros in the place of the tag."""

    name, key_len = "nonce-only", 0

    def tag(self, *_):
        return bytes(16)


def suite_of(number):
    return NoTag() if number == NONCE_ONLY else Suite(number)


class Suite:
    def __init__(self, number):
        self.number = number
        cipher, self.bits, self.algorithm, self.block_len = CIPHERS[(number - 0x40) // 5]
        self.mac, self.mac_key_len = MACS[(number - 0x40) % 5]
        self.name = f"{cipher}-{self.bits}-hmac-{self.mac}"

    @property
    def key_len(self):
        return self.bits // 8 + self.mac_key_len

    def blocks(self, key, data):
        """Whole blocks, each for itself."""
        encryptor = Cipher(self.algorithm(key[: self.bits // 8]), modes.ECB()).encryptor()
        return encryptor.update(data) + encryptor.finalize()

    def encrypt(self, key, nonce, body):
        """CBC-CS1."""
        size = self.block_len
        chain = self.blocks(key, nonce + bytes(4) if size == 16 else nonce[-8:])
        tail = len(body) % size
        padded = body + bytes(-len(body) % size)
        out = []
        for at in range(0, len(padded), size):
            chain = self.blocks(key, bytes(a ^ b for a, b in zip(chain, padded[at : at + size])))
            out.append(chain)
        if tail:
            out[-2] = out[-2][:tail]
        return b"".join(out)

    def tag(self, key, *parts):
        return hmac.new(key[self.bits // 8 :], b"".join(parts), self.mac).digest()[:16]


def data_frame(header, offer, keys, receiver_index, number, inner):
    suite = suite_of(offer.suite)
    clear = header + struct.pack("!BBIII", make.TYPE_UNICAST, 0, receiver_index, number, make.spin(keys.spin, number))
    nonce = bytes(a ^ b for a, b in zip(keys.iv, bytes(4) + struct.pack("!Q", number)))
    body = suite.encrypt(keys.key, nonce, inner) if offer.confidential else inner
    return clear + body + suite.tag(keys.key, nonce, clear, body)


# ---- The handshake -------------------------------------------------------------------------------------------------


class Offer(make.Offer):
    def emit(self):
        return bytes([GROUP_14]) + super().emit()[1:]


def lane_keys(shared, transcript, direction, lane, suite):
    def kdf2(use, length):
        parameters = transcript + b"ringwall cll 2 " + use + direction.encode() + bytes([lane, suite])
        hashes = (hashlib.new("ripemd160", shared + struct.pack("!I", i) + parameters).digest() for i in range(1, 9))
        return b"".join(hashes)[:length]

    return make.LaneKeys(kdf2(b"key", 64)[: suite_of(suite).key_len], kdf2(b"iv", 12), kdf2(b"spin", 16), kdf2(b"slow", 16))


class Signer:
    """Stands where make.py signs with Ed25519."""

    def __init__(self, host, number):
        self.rsa, self.label = RsaKey(host.name), f"paper salt {host.name} {number}"

    def sign(self, message):
        return self.rsa.sign(message, self.label)


class HostView:
    """A host that signs with its second key."""

    def __init__(self, host, number):
        self.name, self.mac, self.ip, self.certificate = host.name, host.mac, host.ip, host.certificate
        self.key = Signer(host, number)


class Handshake(make.Handshake):
    def __init__(self, case, authority, initiator, responder):
        self.case, self.authority = case, authority
        self.hosts = (HostView(initiator, case.number), HostView(responder, case.number))
        self.nonce = case.fixed("nonce", 16)
        self.cookie = bytes(16)
        prime = prime_of_group_14()
        self.exponents = [case.fixed(f"group 14 {side}") for side in "ir"]
        numbers = [int.from_bytes(exponent, "big") for exponent in self.exponents]
        self.share = [pow(2, number, prime).to_bytes(SHARE_LEN, "big") for number in numbers]
        self.request_header, self.request = self.make_request()
        self.reply_header, self.reply = self.make_reply()
        self.shared = pow(2, numbers[0] * numbers[1], prime).to_bytes(SHARE_LEN, "big")
        request, reply = make.sha256(make.without_tag(self.request)), make.sha256(make.without_tag(self.reply))
        self.transcript = make.sha256(b"ringwall cll 2 transcript", request, reply)


def cases():
    pairs = [
        (("aes", 128, "md5"), ("aes", 256, "sha256")),
        (("blowfish", 192, "ripemd160"), ("seed", 128, "sha1")),
    ]
    for number, (one, other) in enumerate(pairs, start=1):
        initiator = Offer(suite_id(*one), True, 1, 0x1000 * number, 1800)
        responder = Offer(suite_id(*other), number == 1, 1, 0x2000 * number, 3600)
        yield make.Case(100 + number, "", initiator, responder)
    ends = [Offer(NONCE_ONLY, False, 1, index, 1800) for index in (0x3000, 0x6000)]
    yield make.Case(103, "", *ends)


def put_handshake(out, shake):
    number = shake.case.number - 100
    prefix = f"handshake-{number}"
    out.comment(f"Handshake {number}.")
    for index, (name, _, _, _, offer, _) in enumerate(shake.sides()):
        out.put(f"{prefix}.{name}.exponent", shake.exponents[index])
        out.put(f"{prefix}.{name}.suite", bytes([offer.suite]))
        out.put(f"{prefix}.{name}.confidential", bytes([offer.confidential]))
    out.put(f"{prefix}.request.frame", shake.request_header + shake.request)
    out.put(f"{prefix}.reply.frame", shake.reply_header + shake.reply)
    out.put(f"{prefix}.transcript", shake.transcript)
    out.put(f"{prefix}.shared_secret", shake.shared)
    for name, label, sender, receiver, offer, peers in shake.sides():
        keys = lane_keys(shake.shared, shake.transcript, label, 0, offer.suite)
        out.comment(f"Keys and frames {label}: {suite_of(offer.suite).name}.")
        out.put(f"{prefix}.{name}.key", keys.key)
        out.put(f"{prefix}.{name}.iv", keys.iv)
        out.put(f"{prefix}.{name}.spin_key", keys.spin)
        header = make.ethernet(receiver.mac, sender.mac, make.ETHERTYPE_CLL)
        first = 0x0200_0000 + number
        out.put(f"{prefix}.{name}.first_sequence", struct.pack("!I", first))
        # One block to four, and every length of a last block of 8 bytes.
        for count, length in enumerate((13, 14, 20, 21, 29, 40, 55)):
            payload = make.fixed(f"paper payload {length}", length)
            inner = struct.pack("!HB", make.ETHERTYPE_EXPERIMENT, 0) + payload
            sealed = data_frame(header, offer, keys, peers.receiver_index, first + count, inner)
            out.put(f"{prefix}.{name}.{count}.plain", make.ethernet(receiver.mac, sender.mac, make.ETHERTYPE_EXPERIMENT) + payload)
            out.put(f"{prefix}.{name}.{count}.wire", sealed)


def text():
    authority = Authority()
    alpha = make.Host(authority, "alpha", 0x2001, bytes.fromhex("020000000001"), ["10.0.0.1"], "host")
    omega = make.Host(authority, "omega", 0x2002, bytes.fromhex("0200000000ff"), ["10.0.0.254"], "host")
    out = make.Vectors("The paper profile (docs/protocol.md, section 27): a site, and handshakes with data frames.")
    out.lines[0] = "# Made by vectors/paper.py; do not edit."
    out.put("site_key", authority.site_key)
    out.put("authority.certificate", authority.certificate)
    for host in (alpha, omega):
        out.put(f"{host.name}.certificate", host.certificate)
        out.put(f"{host.name}.pkcs8", make.pkcs8(host.key))
        out.put(f"{host.name}.paper_key", RsaKey(host.name).block)
    for case in cases():
        put_handshake(out, Handshake(case, authority, alpha, omega))
    return out.text()


def main():
    file = Path(__file__).resolve().parent / "paper-profile.txt"
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if file.read_text() == text() else "paper-profile.txt differs from vectors/paper.py")
    file.write_text(text())


if __name__ == "__main__":
    main()
