"""Limits how many addresses the bridge br0 learns, empties its table, and prints the limit that it has then.

Arguments: the limit. iproute2 knows this setting since 6.7, the kernel since 6.8.
"""
import socket
import struct
import sys

NEW_LINK, GET_LINK, REQUEST, ACKNOWLEDGE = 16, 18, 1, 4
LINKINFO, KIND, DATA, FLUSH, LIMIT = 18, 1, 2, 21, 49
NESTED = 0x8000


def attribute(kind, data):
    return struct.pack("HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def ask(kind, flags, more=b""):
    body = struct.pack("BxHiII", 0, 0, socket.if_nametoindex("br0"), 0, 0) + more
    route.send(struct.pack("IHHII", 16 + len(body), kind, flags, 1, 0) + body)
    return route.recv(65536)


def attributes(data):
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("HH", data, at)
        if length < 4:
            return
        yield kind & ~NESTED, data[at + 4 : at + length]
        at += (length + 3) & ~3


def within(data, *kinds):
    for kind in kinds:
        data = next((value for found, value in attributes(data) if found == kind), b"")
    return data


route = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
route.bind((0, 0))
settings = attribute(FLUSH, b"") + attribute(LIMIT, struct.pack("I", int(sys.argv[1])))
info = attribute(KIND, b"bridge\0") + attribute(DATA | NESTED, settings)
ask(NEW_LINK, REQUEST | ACKNOWLEDGE, attribute(LINKINFO | NESTED, info))
limit = within(ask(GET_LINK, REQUEST)[32:], LINKINFO, DATA, LIMIT)
print(struct.unpack("I", limit)[0] if limit else "none")
