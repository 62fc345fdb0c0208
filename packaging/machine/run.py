#!/usr/bin/python3
"""Takes guarded machines through restarts, kills and a release, under each manager of the network and on
cards of several kinds, through an upgrade and the removal of the package, and through joining by one command."""

import argparse
import json
import pathlib
import re
import signal
import subprocess
import sys
import time

import attacker
from case import Case, Site, put_eager
from dhcp import Leased
from ipsec import Shielded
from machine import (BRIDGE, CARD, NAMESPACE, SECOND_CARD, Failed, await_both_reached, await_reached,
                     check_nothing_left, in_clear, in_namespace, kill_daemon, make_lan, outage, remove_lan, restart)
from managers import make_again, manage, put_access_point
from plug import Plugged
from rights import check_exposure, check_rights, count_of_looks, let_taps_be, put_foreign_program
from service import Service

# Another revision of the package, which image.sh has put there.
UPGRADE = "/opt/ringwall/second.deb"
# Of the card of a radio that mac80211_hwsim makes first.
RADIO_MAC = "02:00:00:00:00:00"
# A host of the LAN that nobody guards, a guest of a machine, and the port of its host's bridge.
PLAIN_IP = "192.0.2.2"
GUEST = "guest"
GUEST_PORT = "guest0"
IN_GUEST = f"ip netns exec {GUEST}"


class Namespace(Case):
    """The first machine's card is in a namespace, which its unit is loosened for; the other's stays in place."""

    def prepare(self):
        one, other = self.machines
        for machine, way in ((one, "namespace"), (other, "auto")):
            units = manage(machine, "networkd")
            let_taps_be(machine)
            machine.put("/etc/ringwall/identity.pem", self.site.identity(machine))
            self.guard(machine, f"mode = \"cll\"\ntakeover = \"{way}\"\n", units)

    def check_guarded(self, machine):
        if machine is self.machines[0]:
            check_namespace(machine)
        else:
            super().check_guarded(machine)

    def disturb(self):
        super().disturb()
        one, other = self.machines
        self.row["kill_loosened_s"] = outage(other, one, lambda: kill_daemon(one), 25)
        one.must(f"systemctl restart ringwall@{one.interface}", 120)
        await_both_reached(one, other, "after a restart")
        self.check_guarded(one)
        if count_of_looks(one) or count_of_looks(other):
            raise Failed("a daemon had not the rights that it needs")


def check_namespace(machine):
    status = machine.status()
    if status["takeover"]["way"] != "namespace":
        raise Failed(f"{machine.name}: {status['takeover']}")
    check_rights(machine, f"ringwall@{machine.interface}", is_loosened=True)


class GoneOver(Namespace):
    """A program of somebody else is in front of the first machine's card, so "auto" goes over to a namespace; once that
    is gone, the card stays in place again."""

    def prepare(self):
        self.name = "networkd"
        Case.prepare(self)
        self.name = "go-over"
        one = self.machines[0]
        let_taps_be(one)
        put_foreign_program(one)

    def check_guarded(self, machine):
        super().check_guarded(machine)
        if machine is self.machines[0]:
            looks = count_of_looks(machine)
            # The first boot finds it out, and leaves a note for the others.
            if looks != (self.row["boots"] == 0):
                raise Failed(f"{machine.name}: looked {looks} times what rights are needed")

    def disturb(self):
        one, other = self.machines
        self.row["kill_loosened_s"] = outage(other, one, lambda: kill_daemon(one), 25)
        one.must("systemctl disable foreign && sync")
        for _ in range(2):
            restart(self.machines)
            await_both_reached(one, other, "without the other program")
        for machine in self.machines:
            Case.check_guarded(self, machine)


# What a client fetches through the gateway, and how: as soon as the server answers.
STREAM_LEN = 30_000_000
FETCH = """
import hashlib, sys, time, urllib.request
for attempt in range(60):
    try:
        print(hashlib.sha256(urllib.request.urlopen(sys.argv[1], timeout=60).read()).hexdigest())
        break
    except OSError:
        time.sleep(1)
"""


class Gateway(Case):
    """The second machine scrubs between the first and the LAN's namespace, which has the cable of its other card."""

    unit, file, address = "ringwall-gate@gate", "/etc/ringwall/gate.toml", "192.0.2.99"

    def __init__(self, name, site, boots):
        super().__init__(name, site, boots)
        self.machines[1].add_card()

    def take_steps(self):
        host, gate = self.machines
        cable = gate.port(SECOND_CARD)
        in_namespace("ip", "link", "set", cable, "nomaster")
        in_namespace("ip", "addr", "add", f"{self.address}/24", "dev", cable)
        host.must(f"systemctl enable --now {manage(host, 'networkd')} && sync", 120)
        self.configure("closed")
        gate.must(f"systemctl enable {self.unit} && sync", 120)
        for number in range(self.boots):
            restart([gate])
            self.check_passes("after a boot")
            check_exposure(gate, self.unit)
            self.row["boots"] = number + 1
        kill_daemon(gate, "ringwall-gate", "gate")
        self.check_passes("after a kill")
        gate.must(f"systemctl stop {self.unit}", 120)
        if self.passes() or not self.holds():
            raise Failed("a gateway that was stopped is not closed")
        gate.must(f"systemctl start {self.unit}", 120)
        self.check_passes("after a stop")
        self.check_carried()
        self.check_speaks_ip()
        self.check_released(f"ringwall gate release --config {self.file}")
        self.configure("restore")
        gate.must(f"systemctl start {self.unit}", 120)
        self.check_passes("with on_exit = \"restore\"")
        self.check_released(f"systemctl stop {self.unit}")

    def configure(self, on_exit, more=""):
        cards = f"trusted = \"{SECOND_CARD}\"\nuntrusted = \"{CARD}\"\n"
        self.machines[1].put(self.file, f"[gate]\n{cards}on_exit = \"{on_exit}\"\n{more}")

    def check_carried(self):
        """From Linux 6.11 on the kernel carries a stream past the daemon; before, the gateway says why it does not."""
        host, gate = self.machines
        numbers = re.findall(r"\d+", gate.must("uname -r"))
        is_new = [int(number) for number in numbers[:2]] >= [6, 11]
        carries = self.status()["probes"]["carries"]
        if carries.startswith("yes") != is_new or not is_new and "Linux 6.11" not in carries:
            raise Failed(f"the kernel carries: {carries}")
        host.must(f"head -c {STREAM_LEN} /dev/urandom > /tmp/stream")
        host.must("systemd-run --unit stream --working-directory /tmp python3 -m http.server 8000")
        wanted = host.must("sha256sum /tmp/stream").split()[0]
        fetch = ["ip", "netns", "exec", NAMESPACE, "python3", "-c", FETCH, f"http://{host.ip}:8000/stream"]
        fetched = subprocess.run(fetch, capture_output=True, text=True, timeout=300, check=False)
        if fetched.stdout.strip() != wanted:
            raise Failed(f"a stream of {STREAM_LEN} bytes: {fetched.stdout} {fetched.stderr}")
        carried = self.status()["segments_carried"]
        if is_new and carried < STREAM_LEN // 65536:
            raise Failed(f"the kernel carried {carried} segments of {STREAM_LEN} bytes")
        host.must("systemctl stop stream")

    def status(self):
        return json.loads(self.machines[1].must(f"ringwall status --json --config {self.file} || test $? -le 2"))

    def check_speaks_ip(self):
        """The unit lets it speak with the addresses of its configuration, and with no other."""
        gate = self.machines[1]
        gate.put("/etc/ringwall/pair.key", "5c" * 32)
        ends = "local = \"127.0.0.1:4790\"\npeer = \"127.0.0.2:4790\"\n"
        scrapers = "[records]\nmetrics_listen = \"127.0.0.1:9477\"\n"
        self.configure("closed", f"[pair]\nkey_file = \"/etc/ringwall/pair.key\"\n{ends}{scrapers}")
        gate.must(f"systemctl daemon-reload && systemctl restart {self.unit}", 120)
        self.check_passes("as one of a pair that is alone")
        heard = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind((\"127.0.0.2\", 4790)); " \
                "s.settimeout(20); s.recv(4096)"
        gate.must(f"python3 -c '{heard}'", 60)
        asked = "import urllib.request as r; print(r.urlopen(\"http://127.0.0.1:9477/metrics\", timeout=20).read())"
        if "ringwall_build_info" not in gate.must(f"python3 -c '{asked}'", 60):
            raise Failed("no metrics at the port of the configuration")
        told = gate.must(f"systemctl show --property IPAddressAllow --value {self.unit}").split()
        if sorted(told) != ["127.0.0.1/32", "127.0.0.2/32"]:
            raise Failed(f"the unit may speak with {told}")
        self.configure("closed")
        gate.must(f"systemctl daemon-reload && systemctl restart {self.unit}", 120)
        self.check_passes("alone again")

    def passes(self):
        command = ["ip", "netns", "exec", NAMESPACE, "ping", "-n", "-c", "1", "-W", "1", self.machines[0].ip]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def check_passes(self, what):
        deadline = time.monotonic() + 60
        while not self.passes():
            if time.monotonic() > deadline:
                said = self.machines[1].ask(f"journalctl -b -o cat -u {self.unit} | tail -n 20; ip addr")
                raise Failed(f"nothing passes {what}: {said and said['said']}")

    def holds(self):
        """Whether the namespace of the cards is there, and has both."""
        gate = self.machines[1]
        pin = f"/run/ringwall/{SECOND_CARD}.netns"
        inside = gate.ask(f"nsenter --net={pin} ip -br link")["said"]
        return CARD in inside and SECOND_CARD in inside

    def check_released(self, how):
        gate = self.machines[1]
        gate.must(how, 120)
        left = gate.ask("ls /run/ringwall/*.netns /var/lib/ringwall/*.gateway.json; grep ringwall /proc/mounts")
        if ".netns" in left["said"].replace("*.netns", "") or "No such file" not in left["said"]:
            raise Failed(f"left after {how}: {left['said']}")
        gate.must(f"ip link show {CARD} && ip link show {SECOND_CARD}")


class Virtual(Case):
    """A device that the manager makes in each boot is guarded, and so is the next one of its name. A program that does
    not wait for the network shows by its ARP whether the device was ever open."""

    def prepare(self):
        one, other = self.machines
        for machine, asked in ((one, other), (other, one)):
            put_eager(machine, asked.ip)
        super().prepare()

    def guards(self, machine, daemon):
        return f"ringwall-virtual@{machine.interface}"

    def disturb(self):
        super().disturb()
        one, other = self.machines
        before = number_of(other)
        self.row["made_again_s"] = outage(one, other, lambda: make_again(other, self.name), 40)
        if number_of(other) == before:
            raise Failed("the device is the same as before")
        self.check_guarded(other)
        self.make_again_without_daemon(one, other)

    def make_again_without_daemon(self, one, other):
        """What is made while the daemon cannot start is shut, and guarded once it can."""
        other.must("mv /etc/ringwall/identity.pem /run/identity.pem")
        make_again(other, self.name)
        other.must(f"systemctl is-active ringwall-virtual@{other.interface}")
        until = f"until ip -4 -o addr show {other.interface} | grep -q {other.ip}; do sleep 0.2; done"
        other.must(f"timeout 30 sh -c '{until}'")
        # It has its address, and the program that pings asks for the other's by ARP.
        other.must("sleep 3")
        self.check_clear()
        other.must("mv /run/identity.pem /etc/ringwall/identity.pem")
        await_both_reached(one, other, "after the identity came back")
        self.check_guarded(other)

    def give_back(self):
        took = super().give_back()
        for machine in self.machines:
            machine.must(f"systemctl disable --now ringwall-virtual@{machine.interface}")
            make_again(machine, self.name)
        await_reached(*self.machines, "after the release, by a device that was made again")
        for machine in self.machines:
            check_nothing_left(machine)
        return took


def number_of(machine):
    return machine.must(f"cat /sys/class/net/{machine.interface}/ifindex")


class Bond(Virtual):
    """The bond is guarded, and loses the cable of the card that it uses."""

    def __init__(self, name, site, boots):
        super().__init__(name, site, boots)
        for machine in self.machines:
            machine.add_card()

    def disturb(self):
        super().disturb()
        one, other = self.machines
        active = f"cat /sys/class/net/{other.interface}/bonding/active_slave"
        used = other.must(active).strip()
        self.row["cable_s"] = outage(one, other, lambda: other.unplug(used), 25)
        if other.must(active).strip() == used:
            raise Failed("the bond still uses the card without a cable")


class Bridge(Virtual):
    """The card is the port of a bridge that is guarded. A guest behind it reaches the LAN as ever, and its host not."""

    def prepare(self):
        in_namespace("ip", "address", "replace", f"{PLAIN_IP}/24", "dev", BRIDGE)
        super().prepare()

    def check_guarded(self, machine):
        super().check_guarded(machine)
        if machine.ask(f"ip link show {GUEST_PORT}")["status"]:
            self.add_guest(machine)
        # A bridge that was made again has lost it.
        machine.must(f"ip link set {GUEST_PORT} master {machine.interface} up")
        machine.must(f"{IN_GUEST} ping -n -c 10 -i 0.5 -W 5 {PLAIN_IP} | grep -q ' 10 received'")
        if machine.ask(f"{IN_GUEST} ping -n -c 1 -W 2 {machine.ip}")["status"] == 0:
            raise Failed(f"{machine.name}: answers its guest in clear")
        # Mostly that it asked for the machine's address.
        drops = machine.status()["drops"]
        if not drops["unsealed"] + drops["plain-arp"]:
            raise Failed(f"{machine.name}: what the guest said is not counted: {drops}")

    def add_guest(self, machine):
        """A network namespace is a guest as good as any; it is gone with the boot."""
        number = machine.ip.rpartition(".")[2]
        for command in (f"ip netns add {GUEST}", f"ip link add {GUEST_PORT} type veth peer name eth0 netns {GUEST}",
                        f"{IN_GUEST} ip link set eth0 address 02:00:00:00:07:{int(number):02x} up",
                        f"{IN_GUEST} ip address add 192.0.2.1{number}/24 dev eth0"):
            machine.must(command)


class Vlan(Virtual):
    """The device of a VLAN is guarded; the card below carries the tag."""

    def watched(self):
        return in_clear(self.machines, "vlan and ")


class Wireless(Case):
    """The first machine is a station of a wireless network, whose access point leads to the LAN of the other."""

    def prepare(self):
        station, other = self.machines
        station.mac = RADIO_MAC
        put_access_point(station)
        for machine, manager in ((station, "NetworkManager-wifi"), (other, "networkd")):
            units = manage(machine, manager)
            machine.put("/etc/ringwall/identity.pem", self.site.identity(machine))
            self.guard(machine, "mode = \"cll\"\n", units)

    def watched(self):
        # An access point tells the bridges where a new station is, by a frame of LLC in the station's name.
        # What it says for itself by the first machine's wired card is nobody's who is guarded.
        _, _, access_point = self.machines[0].cards[0]
        return f"{in_clear(self.machines)} and not (ether[12:2] <= 1500) and not ether src {access_point}"

    def disturb(self):
        super().disturb()
        station, other = self.machines
        leave_and_return = "nmcli device disconnect wlan0; nmcli connection up air"
        try:
            self.row["rejoin_s"] = outage(other, station, lambda: station.must(leave_and_return, 90), 60)
        except Failed as failed:
            units = "-u NetworkManager -u wpa_supplicant -u ringwall@wlan0 -u air"
            facts = station.ask(f"nmcli -t device; ip -br addr; journalctl -b -o short-monotonic {units} | tail -n 60")
            raise Failed(f"{failed}: {facts and facts['said']}") from failed


class Hardship(Case):
    """The second machine's line delays and loses frames, by the administrator's own queue; then the machine sleeps."""

    def prepare(self):
        self.name = "networkd-address"
        super().prepare()
        self.name = "hardship"

    def disturb(self):
        super().disturb()
        one, other = self.machines
        other.must(f"tc qdisc replace dev {other.interface} root netem delay 10ms 3ms loss 5% duplicate 1%")
        told = one.must(f"ping -n -q -c 200 -i 0.1 -W 2 {other.ip}", 120)
        self.row["answers_of_200"] = int(re.search(r"(\d+) received", told)[1])
        if self.row["answers_of_200"] < 150:
            raise Failed(f"a twentieth is to be lost: {told}")
        other.must(f"tc qdisc show dev {other.interface} | grep -q netem && tc qdisc del dev {other.interface} root")
        self.row["sleep_s"] = outage(one, other, lambda: other.must("rtcwake -m mem -s 15", 60), 60)
        if self.row["sleep_s"] < 10:
            raise Failed(f"it has not slept: {self.row['sleep_s']} s")
        self.check_guarded(other)
        await_both_reached(one, other, "after it slept")


class SignedArp(Case):
    """The first machine is the key distributor; both sign ARP, and a liar on the LAN is believed by none."""

    def prepare(self):
        distributor, host = self.machines
        distributor.must("ringwall site init --name machines")
        outputs = ((distributor, "--role akd --out /etc/ringwall/identity.pem"), (host, "--out /run/b.pem"))
        for machine, options in outputs:
            names = f"--name {machine.name} --mac {machine.mac} --ip {machine.ip}"
            distributor.must(f"ringwall site issue {names} {options}")
        host.put("/etc/ringwall/identity.pem", distributor.must("cat /run/b.pem"))
        self.guard(distributor, "mode = \"sarp\"\n[akd]\n", manage(distributor, "networkd"), "ringwall-akd")
        self.guard(host, "mode = \"sarp\"\n", manage(host, "networkd"))

    def daemon_of(self, machine):
        return "ringwall-akd" if machine is self.machines[0] else "ringwall"

    def watched(self):
        sources = " or ".join(f"ether src {machine.mac}" for machine in self.machines)
        return f"({sources}) and arp[6:2] == 2"

    def check_clear(self):
        """All answers are signed, but for those of a daemon that does not have the time yet. Those of the stack
        are shorter, and none of them may leave."""
        daemon_len, wrong, signs = 60, [], dict.fromkeys((machine.mac for machine in self.machines), False)
        signed = set()
        begun = sorted(self.begun)
        for frame in self.watch.frames("-tt"):
            when, mac, length = re.match(r"([0-9.]+) (\S+) > .* length (\d+): Reply", frame).groups()
            while begun and begun[0][0] < float(when):
                signs[begun.pop(0)[1]] = False
            if int(length) < daemon_len or (int(length) == daemon_len and signs[mac]):
                wrong.append(frame)
            if int(length) > daemon_len:
                signs[mac] = True
                signed.add(mac)
        self.row["frames_in_clear"] = len(wrong)
        if wrong:
            raise Failed(f"in clear: {wrong[:5]}")
        if signed != set(signs):
            raise Failed(f"none but these ever signed an answer: {signed}")

    def disturb(self):
        distributor, host = self.machines

        def kill():
            self.note_begun(host)
            kill_daemon(host)

        self.row["kill_s"] = outage(distributor, host, kill, 25)
        for machine, owner in ((host, distributor), (distributor, host)):
            for _ in range(20):
                attacker.claim(machine, owner.ip)
            known = machine.must(f"ip neigh show {owner.ip} dev {machine.interface}")
            if owner.mac not in known:
                raise Failed(f"{machine.name} believes: {known}")
            await_reached(machine, owner, "after forged answers")
            attacks = machine.status()["attacks"]
            if [attack["source"]["mac"] for attack in attacks] != [attacker.MAC]:
                raise Failed(f"{machine.name} tells of other attacks: {attacks}")
            check_journal(machine, owner)
        self.row["forged_believed"] = 0


def check_journal(machine, owner):
    """Waits until the journal's warnings, read as JSON, have the attack in the name of `owner`, field by field."""
    wanted = {"PRIORITY": "4", "SYSLOG_IDENTIFIER": "ringwall", "RINGWALL_KIND": "arp-spoofing",
              "RINGWALL_PHASE": "opened", "RINGWALL_INTERFACE": machine.interface,
              "RINGWALL_SOURCE_MAC": attacker.MAC, "RINGWALL_CLAIMED_IP": owner.ip}
    end = time.monotonic() + 30
    while True:
        told = machine.must("journalctl -b -p warning -o json -t ringwall --no-pager")
        entries = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
        if any(wanted.items() <= entry.items() for entry in entries):
            return
        if time.monotonic() > end:
            found = [{key: entry.get(key) for key in wanted} for entry in entries]
            raise Failed(f"{machine.name}: no warning in the journal has {wanted}: {found}")
        time.sleep(1)


class Package(Case):
    """The package of the second machine is replaced under ping, then both are purged."""

    def prepare(self):
        self.name = "networkd"
        super().prepare()
        self.name = "package"

    def disturb(self):
        one, other = self.machines
        process = f"systemctl show --property MainPID --value ringwall@{other.interface}"
        before = other.must(process)
        self.row["upgrade_s"] = outage(one, other, lambda: other.must(f"dpkg --install {UPGRADE}", 110), 120)
        if other.must(process) == before:
            raise Failed("the daemon of the version before goes on")
        if other.must("dpkg-query --show --showformat='${Version}' ringwall").rpartition("-")[2] != "2":
            raise Failed("the package is not the second one")
        self.check_guarded(other)
        await_reached(one, other, "after the upgrade")

    def give_back(self):
        """The package goes, the cards are given back, and nothing is left."""
        for machine in self.machines:
            machine.must("dpkg --purge ringwall", 120)
        took = await_reached(*self.machines, "after the purge")
        for machine in self.machines:
            check_nothing_left(machine)
            places = "/etc/ringwall /var/lib/ringwall /run/ringwall /usr/sbin/ringwall"
            left = machine.must(f"ls -d {places} 2>/dev/null || true")
            if left:
                raise Failed(f"{machine.name}: left after the purge: {left}")
        return round(took, 1)


class PackageNamespace(Package):
    """The same from a package whose units were as open for everybody as for a card in a namespace."""

    def prepare(self):
        for machine in self.machines:
            units = manage(machine, "networkd")
            let_taps_be(machine)
            machine.must(AS_BEFORE)
            machine.put("/etc/ringwall/identity.pem", self.site.identity(machine))
            self.guard(machine, "mode = \"cll\"\ntakeover = \"namespace\"\n", units)

    def check_guarded(self, machine):
        check_namespace(machine)

    def disturb(self):
        super().disturb()
        other = self.machines[1]
        other.must("test -e /usr/lib/systemd/system-generators/ringwall")
        if count_of_looks(other):
            raise Failed("a daemon had not the rights that it needs")


# The units of a former package: no generator, and what it adds is in the unit.
AS_BEFORE = ("cd /usr/lib/systemd && cat ../ringwall/namespace.conf >> system/ringwall@.service && "
             "sed -i '/^OnFailure=/d; /^RestartPreventExitStatus=/d' system/ringwall@.service && "
             "rm system-generators/ringwall system/ringwall-rights@.service && systemctl daemon-reload")


class Joining(Case):
    """Two machines join by one command each, one after a try that must be taken back, and leave again."""

    def take_steps(self):
        a, b = self.machines
        for machine in self.machines:
            units = manage(machine, "networkd")
            machine.must(f"systemctl enable --now {units} && sync", 120)
            machine.put("/etc/ringwall/identity.pem", self.site.identity(machine))
        await_reached(a, b, "in clear")
        self.try_alone(a, b)
        for machine, options in ((a, "--migration observe --force"), (b, f"--migration observe --peer {a.ip}")):
            told, status = join(machine, options)
            if status or not told["joined"]:
                raise Failed(f"{machine.name}: {told}")
            check_kept(machine)
            await_reached(a, b, "after joining")
        for number in range(self.boots):
            restart(self.machines)
            self.row["reached_after_s"] = await_both_reached(a, b, "after a boot")
            for machine in self.machines:
                check_kept(machine)
            peers = json.loads(a.must(f"ringwall peers --json --config {a.config}"))
            if "established" not in [peer["state"] for peer in peers]:
                raise Failed(f"nobody seals after a boot: {peers}")
            self.row["boots"] = number + 1
            print(f"   {self.name}: boot {number + 1} of {self.boots}: guarded, sealed", flush=True)
        self.row["released_s"] = self.leave()

    def try_alone(self, a, b):
        """Who enforces does not hear a host that nobody guards."""
        told, status = join(a, f"--migration enforce --peer {b.ip}")
        if status == 0 or told["joined"] or f"host {b.ip}" not in told["error"]:
            raise Failed(f"a host that is alone was kept: {told}")
        drop_in = f"/run/systemd/system/ringwall@{a.interface}.service.d"
        if is_enabled(a, "ringwall") or a.ask(f"ls {drop_in}")["status"] == 0:
            raise Failed("the trial left something behind")
        check_nothing_left(a)
        await_reached(a, b, "after the way back")

    def leave(self):
        for machine in self.machines:
            machine.must("ringwall leave --forget", 120)
            if is_enabled(machine, "ringwall") or machine.ask("ls /etc/ringwall/identity.pem")["status"] == 0:
                raise Failed(f"{machine.name}: left, but not gone")
            check_nothing_left(machine)
        return round(await_reached(*self.machines, "after leaving"), 1)


def is_enabled(machine, unit):
    return machine.ask(f"systemctl is-enabled {unit}@{machine.interface}")["said"].strip() == "enabled"


def join(machine, options):
    """What `ringwall join` says in JSON, and how it ends."""
    answer = machine.ask(f"ringwall join --json --interface {machine.interface} {options} 2>/run/join.err", 240)
    if answer is None or not answer["said"].startswith("{"):
        raise Failed(f"{machine.name}: join says nothing: {answer} {machine.ask('cat /run/join.err')}")
    return json.loads(answer["said"]), answer["status"]


def check_kept(machine):
    """It is guarded for good, by the unit, which the next boot starts."""
    status = machine.status()
    if status["state"] != "running" or "reverts_in_s" in status["takeover"]:
        raise Failed(f"{machine.name}: {status['state']} {status['takeover']}")
    machine.must(f"systemctl is-active ringwall@{machine.interface}")
    if not (is_enabled(machine, "ringwall") and is_enabled(machine, "ringwall-closed")):
        raise Failed(f"{machine.name}: the units are not enabled")


CASES = {
    "NetworkManager": Case, "networkd": Case, "networkd-address": Case, "dhcpcd": Case,
    "ifupdown-auto": Case, "ifupdown-hotplug": Case, "namespace": Namespace, "go-over": GoneOver,
    "shield": Shielded, "gateway": Gateway, "package-namespace": PackageNamespace, "hardship": Hardship,
    "bond": Bond, "vlan": Vlan, "bond-NetworkManager": Bond, "vlan-NetworkManager": Vlan,
    "bridge": Bridge, "bridge-NetworkManager": Bridge,
    "plug": Plugged, "plug-NetworkManager": Plugged,
    "wifi": Wireless, "sarp": SignedArp, "package": Package, "join": Joining, "site": Service,
    "dhcp-networkd": Leased, "dhcp-NetworkManager": Leased, "dhcp-dhcpcd": Leased, "dhcp-ifupdown": Leased,
}


def show(rows):
    columns = ["case", "kernel", "boots", "reached_after_s", "kill_s", "kill_loosened_s", "made_again_s", "cable_s",
               "plugged_again_s", "boot_waits_s", "put_in_s", "rejoin_s", "upgrade_s", "answers_of_200", "sleep_s",
               "frames_in_clear", "forged_believed", "forged_to_stack", "released_s", "verdict"]
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(str(row.get(column, "")) for column in columns) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=pathlib.Path, help="where image.sh has put its files")
    parser.add_argument("program", help="the ringwall program that issues identities")
    parser.add_argument("--only", choices=CASES, action="append", help="this case; may be given several times")
    parser.add_argument("--boots", type=int, default=3, help="restarts in each case (3)")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    directory = options.directory.resolve()
    make_lan()
    rows = []
    try:
        for name in options.only or CASES:
            print(f"== {name}", flush=True)
            rows.append(CASES[name](name, Site(options.program, directory), options.boots).play())
            print(f"   {rows[-1]}", flush=True)
            if options.json:
                # Each at once: the whole takes hours, and may be interrupted.
                options.json.write_text(json.dumps(rows, indent=2) + "\n")
    finally:
        remove_lan()
    show(rows)
    sys.exit(any(row["verdict"] != "ok" for row in rows))


main()
