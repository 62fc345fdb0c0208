"""A tunnel of strongSwan through the kernel's own ESP, both ends of it behind a shield."""

import re
import time

import attacker
from case import Case
from machine import (NAMESPACE, BRIDGE, Failed, await_both_reached, await_reached, check_nothing_left, kill_daemon,
                     outage, restart, run)
from managers import manage
from rights import check_rights, count_of_looks, let_taps_be

# Both are told the SPIs that the stack gives out, as the manual has it.
SPIS = (0xc0000100, 0xc00010ff)
FORGED = 500
CONNECTION = """connections {{ pair {{
  version = 2
  local_addrs = {own.ip}
  remote_addrs = {peer.ip}
  proposals = aes128-sha256-x25519
  local {{
    auth = psk
    id = {own.name}
  }}
  remote {{
    auth = psk
    id = {peer.name}
  }}
  children {{ tunnel {{
    local_ts = {inner}/32
    remote_ts = {far}/32
    esp_proposals = aes128gcm16
    start_action = trap
  }} }}
}} }}
secrets {{ ike-pair {{
  id-1 = {own.name}
  id-2 = {peer.name}
  secret = machines
}} }}
"""
# The address that stands for the network behind a machine is there before the tunnel's routes are.
BEFORE = "[Unit]\nAfter=systemd-networkd.service\n[Service]\nExecStartPre=ip address replace {inner}/32 dev lo\n"


# What is asked where no packet comes through.
FACTS = """ip rule; ip -d route show table 220; ip route get {far} from {own}; grep -v ' 0$' /proc/net/xfrm_stat
grep . /proc/sys/net/ipv4/conf/*/disable_xfrm | grep -v ':0$'; ping -n -c 1 -W 2 -I {own} {far}; ip neigh
swanctl --list-sas 2>/dev/null; ip -s xfrm policy; journalctl -b -o cat -u strongswan | tail -n 20
ringwall peers --config {config}"""


# For networkd the card that comes back is a new one, and it would take away rules of others with it.
FOREIGN_RULES_STAY = "[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=no\n"


class Shielded(Case):
    """Both machines are in mode shield, which has no way in place."""

    def take_steps(self):
        one, other = self.machines
        for machine, peer in ((one, other), (other, one)):
            let_taps_be(machine)
            machine.put("/etc/systemd/networkd.conf.d/rules.conf", FOREIGN_RULES_STAY, "644")
            put_tunnel(machine, peer)
        # So that what follows could fail: without a shield the stack has each forged packet.
        await_tunnel(one, other, "without a shield")
        before = unknown_to_stack(other)
        attacker.send_esp(other, one, FORGED)
        time.sleep(2)
        self.row["forged_to_stack"] = unknown_to_stack(other) - before
        if self.row["forged_to_stack"] < FORGED * 9 // 10:
            raise Failed(f"without a shield {self.row['forged_to_stack']} of {FORGED} forged packets came to the stack")
        self.shield()
        for number in range(self.boots):
            restart(self.machines)
            self.row["reached_after_s"] = await_both_reached(one, other, "after a boot")
            for machine, peer in ((one, other), (other, one)):
                await_tunnel(machine, peer, "after a boot")
                self.check_shielded(machine, peer)
            self.row["boots"] = number + 1
            print(f"   {self.name}: boot {number + 1} of {self.boots}: shielded, tunnel open", flush=True)
        self.check_wire()
        self.row["kill_s"] = outage(one, other, lambda: kill_daemon(other), 25, inner(other))
        self.row["released_s"] = self.give_back()

    def shield(self):
        """Each has its file of the pair's keys, and is guarded from the next boot on."""
        files = [self.site.directory / f"{machine.name}.keys" for machine in self.machines]
        for file in files:
            file.unlink(missing_ok=True)
        run(self.site.program, "shield", "keys", "make", *map(str, files))
        for machine, peer, file in zip(self.machines, reversed(self.machines), files):
            machine.put("/etc/ringwall/pair.keys", file.read_text())
            section = f"mode = \"shield\"\n[shield]\nspi_min = {SPIS[0]}\nspi_max = {SPIS[1]}\n"
            peers = f"[[shield.peers]]\naddress = \"{peer.ip}\"\nkeys = \"/etc/ringwall/pair.keys\"\n"
            self.guard(machine, section + peers, "systemd-networkd")

    def check_shielded(self, machine, peer):
        status = machine.status()
        if status["takeover"]["way"] != "namespace" or status["layers"]["in_force"] != "kernel":
            raise Failed(f"{machine.name}: {status['takeover']} {status['layers']}")
        check_rights(machine, f"ringwall@{machine.interface}", is_loosened=True)
        if count_of_looks(machine):
            raise Failed("a daemon had not the rights that it needs")
        before = unknown_to_stack(machine)
        attacker.send_esp(machine, peer, FORGED)
        await_tunnel(peer, machine, "after forged packets")
        self.row["forged_to_stack"] = unknown_to_stack(machine) - before
        if self.row["forged_to_stack"]:
            raise Failed(f"{machine.name}: {self.row['forged_to_stack']} of {FORGED} forged packets came to the stack")

    def check_wire(self):
        """No SPI of the wire is one of the stack's, and none comes twice."""
        one, other = self.machines
        one.must(f"ping -n -q -i 0.1 -c 40 {inner(other)} > /dev/null 2>&1 &")
        said = run("ip", "netns", "exec", NAMESPACE, "timeout", "60", "tcpdump", "-nn", "-c", "40", "-i", BRIDGE,
                   f"esp and src {one.ip}", check=False)
        seen = re.findall(r"spi=(0x[0-9a-f]+)", said)
        known = re.findall(r"spi (0x[0-9a-f]+)", one.must("ip xfrm state"))
        if len(seen) < 40 or len(set(seen)) < len(seen) or not known or set(seen) & set(known):
            raise Failed(f"on the wire {seen}, in the stack {known}")

    def give_back(self):
        one, other = self.machines
        for machine in self.machines:
            machine.must(f"ringwall host release --config {machine.config}", 120)
        took = await_reached(one, other, "after the release")
        await_tunnel(one, other, "after the release")
        for machine in self.machines:
            check_nothing_left(machine)
        return round(took, 1)


def put_tunnel(machine, peer):
    units = manage(machine, "networkd")
    words = {"own": machine, "peer": peer, "inner": inner(machine), "far": inner(peer)}
    machine.put("/etc/swanctl/conf.d/pair.conf", CONNECTION.format(**words))
    machine.put("/etc/strongswan.d/spis.conf", f"charon-systemd {{\n spi_min = {SPIS[0]}\n spi_max = {SPIS[1]}\n}}\n")
    machine.put("/etc/systemd/system/strongswan.service.d/inner.conf", BEFORE.format(inner=inner(machine)), "644")
    machine.must(f"systemctl daemon-reload && systemctl enable --now {units} strongswan && sync", 120)


def inner(machine):
    return f"10.88.0.{machine.ip.rpartition('.')[2]}"


def await_tunnel(one, other, what):
    """The first packet opens it."""
    deadline = time.monotonic() + 90
    while one.ask(f"ping -n -c 1 -W 2 -I {inner(one)} {inner(other)}", 20)["status"]:
        if time.monotonic() > deadline:
            said = one.ask(FACTS.format(own=inner(one), far=inner(other), config=one.config))
            raise Failed(f"no tunnel {what}: {said and said['said']}")
        time.sleep(0.5)
    if "esp" not in one.must("ip xfrm state"):
        raise Failed(f"what passes {what} is not in ESP of the kernel")


def unknown_to_stack(machine):
    """Packets of ESP that came to the machine's stack under an SPI that it does not know."""
    return int(machine.must("awk '$1 == \"XfrmInNoStates\" { print $2 }' /proc/net/xfrm_stat"))
