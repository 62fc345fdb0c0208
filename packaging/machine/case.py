"""What all cases have in common: two machines, guarded and restarted, and the authority of their site."""

import time

from machine import (Failed, Machine, Watch, await_both_reached, await_reached, check_nothing_left, in_clear,
                     kill_daemon, outage, restart, run)
from managers import manage
from rights import check_confined


class Case:
    """Two machines, guarded from their first boot on. A kind of case changes some of the steps."""

    numbers = (10, 11)

    def __init__(self, name, site, boots):
        self.name, self.site, self.boots = name, site, boots
        self.machines = [Machine(site.directory, name, number) for name, number in zip("ab", self.numbers)]
        self.watch = None
        # When which daemon began anew, by the clock of the captures and the hardware address.
        self.begun = []
        self.row = {"case": name, "boots": 0}

    def play(self):
        """The row of the table; whatever fails is in its verdict."""
        try:
            for machine in self.machines:
                machine.start()
            for machine in self.machines:
                machine.await_boot()
            self.row["kernel"] = self.machines[0].must("uname -r").strip()
            self.take_steps()
            self.row["verdict"] = "ok"
        except Failed as failed:
            self.row["verdict"] = f"FAILED: {failed}"
            for machine in self.machines:
                if machine.line:
                    machine.keep_journal(self.name)
        finally:
            if self.watch:
                self.watch.stop()
            for machine in self.machines:
                machine.stop()
        return self.row

    def take_steps(self):
        self.prepare()
        # From here on nothing may leave in clear.
        for machine in self.machines:
            for card, _, _ in machine.cards:
                machine.must(f"ip link set {card} down 2>/dev/null || true")
        self.watch = Watch(self.site.directory, self.watched())
        for number in range(self.boots):
            self.note_begun(*self.machines)
            restart(self.machines)
            self.row["reached_after_s"] = await_both_reached(*self.machines, "after a boot")
            for machine in self.machines:
                self.check_guarded(machine)
            self.row["boots"] = number + 1
            print(f"   {self.name}: boot {number + 1} of {self.boots}: guarded, reached", flush=True)
        self.disturb()
        self.check_clear()
        self.row["released_s"] = self.give_back()

    def note_begun(self, *machines):
        self.begun += [(time.time(), machine.mac) for machine in machines]

    def prepare(self):
        for machine in self.machines:
            units = manage(machine, self.name)
            machine.put("/etc/ringwall/identity.pem", self.site.identity(machine))
            self.guard(machine, "mode = \"cll\"\n", units)

    def guard(self, machine, text, units, daemon="ringwall"):
        machine.put(machine.config, f'[host]\ninterface = "{machine.interface}"\n{text}')
        machine.must(f"systemctl enable {units} {self.guards(machine, daemon)} && sync", 120)

    def guards(self, machine, daemon):
        return f"ringwall-closed@{machine.interface} {daemon}@{machine.interface}"

    def watched(self):
        return in_clear(self.machines)

    def check_guarded(self, machine):
        status = machine.status()
        if status["takeover"]["way"] != "in-place":
            raise Failed(f"{machine.name}: {status['takeover']}")
        if status["layers"]["in_force"] != "kernel":
            raise Failed(f"{machine.name}: {status['layers']}")
        check_confined(machine, f"{self.daemon_of(machine)}@{machine.interface}")

    def check_clear(self):
        """Nothing has left a machine in clear so far."""
        self.row["frames_in_clear"] = len(self.watch.frames())
        if self.row["frames_in_clear"]:
            raise Failed(f"in clear: {self.watch.frames()[:5]}")

    def daemon_of(self, _machine):
        return "ringwall"

    def disturb(self):
        """The daemon of the second machine is killed and comes back."""
        one, other = self.machines
        self.row["kill_s"] = outage(one, other, lambda: kill_daemon(other), 25)
        if self.row["kill_s"] < 1:
            raise Failed(f"a dead daemon was missed for {self.row['kill_s']} s: it lived, or frames pass without it")

    def give_back(self):
        for machine in self.machines:
            machine.must(f"ringwall host release --config {machine.config}", 120)
        took = await_reached(*self.machines, "after the release")
        for machine in self.machines:
            check_nothing_left(machine)
        return round(took, 1)


EAGER = """[Unit]
DefaultDependencies=no
After=local-fs.target
StartLimitIntervalSec=0
[Service]
ExecStart=/bin/ping -q -n -i 0.2 {ip}
Restart=always
RestartSec=300ms
[Install]
WantedBy=sysinit.target
"""


def put_eager(machine, ip):
    """A program that pings from early in the boot on, and does not wait for the network."""
    machine.put("/etc/systemd/system/eager.service", EAGER.format(ip=ip), "644")
    machine.must("systemctl daemon-reload && systemctl enable eager && sync")


class Site:
    """An authority that issues the machines' identities."""

    def __init__(self, program, directory):
        self.program, self.directory = program, directory
        run("rm", "-rf", str(directory / "site"))
        run(program, "site", "init", "--name", "machines", "--dir", str(directory / "site"))

    def identity(self, machine, words=None):
        """For its address, or for what these words of the command say in its place."""
        file = self.directory / f"{machine.name}.pem"
        run(self.program, "site", "issue", "--dir", str(self.directory / "site"), "--name", machine.name, "--mac",
            machine.mac, "--out", str(file), "--force", *(("--ip", machine.ip) if words is None else words))
        return file.read_text()
