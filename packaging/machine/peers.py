#!/usr/bin/python3
"""What a LAN of two machines carries in clear, under Ringwall, and under what the kernel of Debian has for the same:
WireGuard, MACsec, and ESP with strongSwan. All is between the same two cards, in turn, as ratios to the plain card."""

import argparse
import json
import pathlib
import re
import signal
import statistics
import sys
import time

from case import Site
from ipsec import await_tunnel, inner, put_tunnel
from machine import ACCELERATOR, CARD, Failed, Machine, await_reached, make_lan, remove_lan

SECONDS = 10
PINGS = 200
MACSEC_KEYS = ("0f" * 16, "f0" * 16)


class Plain:
    """The card as it is."""

    name = "plain"
    # Where its addresses are; the last number is that of the card's own.
    network = "192.0.2"

    def __init__(self, machines):
        self.machines = machines

    def address(self, machine):
        return f"{self.network}.{machine.ip.rpartition('.')[2]}"

    def start(self):
        pass

    def stop(self):
        pass


class Ringwall(Plain):
    """Mode cll, in place: every frame of the card is sealed, ARP and broadcast as well."""

    name = "ringwall"

    def start(self):
        for machine in self.machines:
            machine.must(f"systemctl start ringwall@{machine.interface}", 120)

    def stop(self):
        for machine in self.machines:
            machine.must(f"ringwall host release --config {machine.config}", 120)


class WireGuard(Plain):
    """The tunnel of the kernel: packets of IP to known ends, nothing else of the LAN."""

    name = "wireguard"
    network = "10.78.0"

    def start(self):
        public = {}
        for machine in self.machines:
            machine.must("umask 077 && wg genkey > /run/wg.key && ip link add wg0 type wireguard")
            machine.must("wg set wg0 private-key /run/wg.key listen-port 51820")
            public[machine.name] = machine.must("wg pubkey < /run/wg.key").strip()
        for machine, peer in zip(self.machines, reversed(self.machines)):
            machine.must(f"wg set wg0 peer {public[peer.name]} allowed-ips {self.address(peer)}/32 "
                         f"endpoint {peer.ip}:51820")
            machine.must(f"ip address add {self.address(machine)}/24 dev wg0 && ip link set wg0 up")

    def stop(self):
        for machine in self.machines:
            machine.must("ip link delete wg0")


class Macsec(Plain):
    """IEEE 802.1AE with fixed keys, encrypted (GCM-AES-128): every frame of the card, without who agrees on keys."""

    name = "macsec"
    network = "10.77.0"

    def start(self):
        ends = list(zip(self.machines, MACSEC_KEYS))
        for (machine, own), (peer, other) in zip(ends, reversed(ends)):
            commands = [f"ip link add link {CARD} macsec0 type macsec encrypt on",
                        f"ip macsec add macsec0 tx sa 0 pn 1 on key 01 {own}",
                        f"ip macsec add macsec0 rx port 1 address {peer.mac}",
                        f"ip macsec add macsec0 rx port 1 address {peer.mac} sa 0 pn 1 on key 02 {other}",
                        f"ip address add {self.address(machine)}/24 dev macsec0", "ip link set macsec0 up"]
            machine.must(" && ".join(commands))

    def stop(self):
        for machine in self.machines:
            machine.must("ip link delete macsec0")


class Esp(Plain):
    """strongSwan, with the ESP of the kernel (AES-128-GCM): packets of IP to known ends."""

    name = "strongswan"

    def address(self, machine):
        return inner(machine)

    def start(self):
        for machine in self.machines:
            machine.must("systemctl start strongswan", 120)
        await_tunnel(*self.machines, "to be measured")

    def stop(self):
        for machine in self.machines:
            machine.must("systemctl stop strongswan; ip xfrm state flush; ip xfrm policy flush", 120)


WAYS = (Plain, Ringwall, WireGuard, Macsec, Esp)


def prepare(machines, site):
    for machine, peer in zip(machines, reversed(machines)):
        put_tunnel(machine, peer)
        machine.must("systemctl disable --now strongswan")
        machine.put("/etc/ringwall/identity.pem", site.identity(machine))
        machine.put(machine.config, f"[host]\ninterface = \"{machine.interface}\"\nmode = \"cll\"\n")


def measure(machines, way):
    """Mbit/s of a stream, and the median round trip in microseconds."""
    one, other = machines
    target = way.address(other)
    for _ in range(30):
        if one.ask(f"ping -n -c 1 -W 2 {target}", 20)["status"] == 0:
            break
        time.sleep(1)
    told = one.must(f"ping -n -i 0.02 -c {PINGS} {target}", 120)
    times = [float(text) * 1000 for text in re.findall(r"time=([\d.]+) ms", told)]
    if len(times) < PINGS * 9 // 10:
        raise Failed(f"{way.name}: {len(times)} of {PINGS} answers")
    other.must("iperf3 --server --one-off --daemon --pidfile /run/iperf3.pid")
    time.sleep(1)
    told = json.loads(one.must(f"iperf3 --json --time {SECONDS} --omit 1 --client {target}", 120))
    return {"mbit_per_s": told["end"]["sum_received"]["bits_per_second"] / 1e6, "rtt_us": statistics.median(times)}


def check_sealed(machines):
    """So that nobody measures a card that is not guarded."""
    for machine in machines:
        peers = json.loads(machine.must(f"ringwall peers --json --config {machine.config}"))
        if [peer["state"] for peer in peers] != ["established"] or machine.status()["takeover"]["way"] != "in-place":
            raise Failed(f"{machine.name}: not sealed, or not in place: {peers}")


def rounds(machines, count):
    """What each way carried in each round; the order turns, so that none is always first."""
    found = {kind.name: [] for kind in WAYS}
    for number in range(count):
        turn = number % len(WAYS)
        for kind in WAYS[turn:] + WAYS[:turn]:
            way = kind(machines)
            way.start()
            found[kind.name].append(measure(machines, way))
            if kind is Ringwall:
                check_sealed(machines)
            way.stop()
            await_reached(*machines, f"after {kind.name}")
            print(f"   round {number + 1}, {kind.name}: {found[kind.name][-1]}", flush=True)
    return found


def rows(found):
    """Medians, quartiles, and the median of each round's ratio to the plain card."""
    for name, measured in found.items():
        for unit in ("mbit_per_s", "rtt_us"):
            values = [one[unit] for one in measured]
            ratios = [one[unit] / plain[unit] for one, plain in zip(measured, found["plain"])]
            low, _, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
            yield {"way": name, "unit": unit, "median": round(statistics.median(values), 1), "q1": round(low, 1),
                   "q3": round(high, 1), "of_plain": round(statistics.median(ratios), 3), "runs": len(values)}


def show(table):
    columns = ["way", "unit", "median", "q1", "q3", "of_plain", "runs"]
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in table:
        print("| " + " | ".join(str(row[column]) for column in columns) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=pathlib.Path, help="where image.sh has put its files")
    parser.add_argument("program", help="the ringwall program that issues identities")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured (5)")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    directory = options.directory.resolve()
    make_lan()
    machines = [Machine(directory, name, number) for name, number in (("a", 10), ("b", 11))]
    try:
        for machine in machines:
            machine.start()
        for machine in machines:
            machine.await_boot()
        prepare(machines, Site(options.program, directory))
        await_reached(*machines, "in clear")
        kernel, processor = (machines[0].must(command).strip() for command in (
            "uname -r", "sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1"))
        print(f"== Linux {kernel}, one processor each: {processor} ({ACCELERATOR})", flush=True)
        table = list(rows(rounds(machines, options.rounds)))
    finally:
        for machine in machines:
            machine.stop()
        remove_lan()
    show(table)
    if options.json:
        found = {"kernel": kernel, "processor": processor, "accelerator": ACCELERATOR, "rows": table}
        options.json.write_text(json.dumps(found, indent=2) + "\n")


main()
