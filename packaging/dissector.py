#!/usr/bin/env python3
"""Golden vectors as a capture file, and what a dissector must say of them by the vectors' own fields.

dissector.py write FILE.pcap | check SAID.json (of tshark -T json)
"""
import json
import pathlib
import struct
import sys

VECTORS = pathlib.Path(__file__).parent.parent / "vectors"


def read(name):
    """The fields of a file of vectors."""
    lines = (VECTORS / name).read_text().splitlines()
    return dict(line.split(" = ", 1) for line in lines if " = " in line and not line.startswith("#"))


def number(text):
    return int(text, 16)


def cases():
    """Each frame, and what must be said of it: field of the dissector and value."""
    found = []
    for one in range(1, 7):
        vector = read(f"handshake-{one}.txt")
        for side, word, kind in (("initiator", "request", 3), ("responder", "reply", 4)):
            frame = next((vector[key] for key in (f"{word}.frame", f"{word}") if key in vector), None)
            if frame is None:
                continue
            found.append((bytes.fromhex(frame), {
                "ringwall.type": kind,
                "ringwall.version": 2,
                "ringwall.timestamp_ms": number(vector[f"{side}.timestamp_ms"]),
                "ringwall.suite": number(vector[f"{side}.suite"]),
                "ringwall.lanes": number(vector[f"{side}.lanes"]),
                "ringwall.receiver_index": number(vector[f"{side}.receiver_index"]),
                "ringwall.lifetime_s": number(vector[f"{side}.lifetime_s"]),
                "ringwall.key_share": vector[f"{side}.x25519_public"],
            }))
    kinds = {"request": 0, "reply": 0, "time-request": 1, "time-reply": 2, "key-request": 4, "key-reply": 8,
             "key-not-found": 0x18, "key-invalid": 0x20, "key-change": 0x40, "key-changed": 0x48}
    vector = read("s-arp.txt")
    for word, kind in kinds.items():
        frame = bytes.fromhex(vector[f"{word}.frame"])
        found.append((frame, {"ringwall_sarp.type": kind, "ringwall_sarp.time_s": struct.unpack(">I", frame[50:54])[0]}))
    vector = read("broadcast.txt")
    found.append((bytes.fromhex(vector["single.frame.0"]), {"ringwall.type": 2}))
    return found


def write(name):
    with open(name, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for frame, _ in cases():
            file.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)


def fields(layer, into):
    """Every field of a packet, by its name."""
    for name, value in layer.items():
        if isinstance(value, dict):
            fields(value, into)
        else:
            into[name] = value[0] if isinstance(value, list) else value
    return into


def is_said(said, wanted):
    if said is None:
        return False
    if isinstance(wanted, str):
        return said.replace(":", "") == wanted
    return int(said, 0) == wanted


def check(name):
    packets = json.loads(pathlib.Path(name).read_text())
    wanted = cases()
    faults = [] if len(packets) == len(wanted) else [f"{len(packets)} packets instead of {len(wanted)}"]
    for place, (packet, (_, values)) in enumerate(zip(packets, wanted)):
        said = fields(packet["_source"]["layers"], {})
        for field, value in values.items():
            if not is_said(said.get(field), value):
                faults.append(f"frame {place + 1}: {field} is {said.get(field)}, not {value}")
        faults += [f"frame {place + 1}: {field}" for field in said if field.endswith(".short")]
    if faults:
        sys.exit("\n".join(faults))
    print(f"dissector: {len(wanted)} frames of the golden vectors, {sum(len(values) for _, values in wanted)} fields right")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](sys.argv[2])
