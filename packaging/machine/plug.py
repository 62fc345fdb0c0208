"""A card that is not there at the boot, and one that is taken out and comes back: as in a dock, or as its driver is
loaded anew. A program that does not wait for the network shows by its ARP whether the card was ever open."""

import time

from case import Case, put_eager
from machine import CARD, Failed, await_both_reached, await_reached, check_nothing_left, outage, restart

# A boot waits 15 s for the card, not the 90 s of systemd.
WAIT_LIMIT_S = 45


class Plugged(Case):
    """The second machine's card is taken out and put in: under its daemon, while that cannot start, and over a boot."""

    def prepare(self):
        self.name = "NetworkManager" if self.name.endswith("NetworkManager") else "networkd"
        super().prepare()
        self.name = self.row["case"]
        for machine, asked in zip(self.machines, reversed(self.machines)):
            put_eager(machine, asked.ip)

    def disturb(self):
        super().disturb()
        one, other = self.machines
        self.row["plugged_again_s"] = outage(one, other, lambda: plug_again(other), 60)
        self.check_guarded(other)
        self.plug_without_daemon(one, other)
        self.boot_without_card(one, other)

    def plug_without_daemon(self, one, other):
        """What comes while the daemon cannot start is shut, and guarded once it can."""
        other.must("mv /etc/ringwall/identity.pem /run/identity.pem")
        plug_again(other)
        until = f"until ip -4 -o addr show {CARD} | grep -q {other.ip}; do sleep 0.2; done"
        other.must(f"timeout 60 sh -c '{until}'", 80)
        # It has its address, and the program that pings asks for the other's by ARP.
        other.must("sleep 3")
        self.check_clear()
        other.must("mv /run/identity.pem /etc/ringwall/identity.pem")
        await_both_reached(one, other, "after the identity came back")
        self.check_guarded(other)

    def boot_without_card(self, one, other):
        other.take_out(CARD)
        restart([other])
        since = "systemctl show --property ActiveEnterTimestampMonotonic --value"
        times = [int(other.must(f"{since} {target}")) for target in ("local-fs.target", "network-pre.target")]
        self.row["boot_waits_s"] = round((times[1] - times[0]) / 1e6, 1)
        if self.row["boot_waits_s"] > WAIT_LIMIT_S:
            raise Failed(f"a boot waits {self.row['boot_waits_s']} s for a card that is not there")
        start = time.monotonic()
        other.put_in(CARD)
        await_both_reached(one, other, "after the card was put in")
        self.row["put_in_s"] = round(time.monotonic() - start, 1)
        self.check_guarded(other)

    def give_back(self):
        """What nobody guards any more comes open."""
        took = super().give_back()
        one, other = self.machines
        for machine in self.machines:
            machine.must(f"systemctl disable ringwall@{CARD} && systemctl disable --now ringwall-closed@{CARD}")
        plug_again(other)
        await_reached(one, other, "after the release, by a card that was put in again")
        check_nothing_left(other)
        return took


def plug_again(machine):
    machine.take_out(CARD)
    machine.put_in(CARD)
