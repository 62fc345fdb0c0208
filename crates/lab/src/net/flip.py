"""Joins two interfaces and flips one bit in each frame from the first that is long enough.

Arguments: inner, outer, least length of a marked frame, length of the header after the Ethernet header, length of the
tag, seed. Header length 0: the frame is plain IPv4 and UDP, the payload is flipped and the checksum set to none.
"""
import random
import select
import socket
import sys

ETHERNET, IPV4, UDP = 14, 20, 8
ALL_PROTOCOLS, OUTGOING = 3, 4


def flip(frame, count, header, tag, chance):
    """Flips one bit of `frame`, in the part whose turn it is, and returns the part's name."""
    if header == 0:
        name, start, end = "payload", ETHERNET + IPV4 + UDP, len(frame)
        frame[ETHERNET + IPV4 + 6:ETHERNET + IPV4 + 8] = b"\0\0"
    else:
        name, start, end = [
            ("header", ETHERNET, ETHERNET + header),
            ("ciphertext", ETHERNET + header, len(frame) - tag),
            ("tag", len(frame) - tag, len(frame)),
        ][count % 3]
    frame[chance.randrange(start, end)] ^= 1 << chance.randrange(8)
    return name


def main():
    inner, outer, marked, header, tag, seed = sys.argv[1:3] + [int(word) for word in sys.argv[3:]]
    sides = []
    for interface in (inner, outer):
        side = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
        side.bind((interface, 0))
        sides.append(side)
    chance, count = random.Random(seed), 0
    print("ready")
    while True:
        for side in select.select(sides, [], [])[0]:
            frame, address = side.recvfrom(65536)
            if address[2] == OUTGOING:
                continue
            frame = bytearray(frame)
            if side is sides[0] and len(frame) >= marked:
                print("flipped", flip(frame, count, header, tag, chance))
                count += 1
            sides[1 - sides.index(side)].send(frame)


main()
