#!/usr/bin/python3
"""Takes two guarded machines through restarts, a kill and a release, under each manager of the network,
through an upgrade and the removal of the package, and through joining by one command."""

import argparse
import json
import pathlib
import signal
import socket
import subprocess
import sys
import time

NAMESPACE = "rwmachine"
BRIDGE = "lan"
# A name by the slot on the PCI bus, which systemd gives.
INTERFACE = "ens3"
SEALED = 0x07D0
CONFIG = f"/etc/ringwall/{INTERFACE}.toml"
BOOT_LIMIT_S = 300
REACHED_LIMIT_S = 90

# What each manager is told, and what is switched on. {ip} is the machine's address.
MANAGERS = {
    "NetworkManager": {
        "file": "/etc/NetworkManager/system-connections/lan.nmconnection",
        "text": "[connection]\nid=lan\ntype=ethernet\ninterface-name={interface}\n[ipv4]\nmethod=manual\n"
                "address1={ip}/24\n[ipv6]\nmethod=disabled\n",
        "units": "NetworkManager",
    },
    "networkd": {
        "file": "/etc/systemd/network/50-lan.network",
        "text": "[Match]\nName={interface}\n[Network]\nAddress={ip}/24\nLinkLocalAddressing=no\n",
        "units": "systemd-networkd",
    },
    "ifupdown-auto": {
        "file": "/etc/network/interfaces",
        "text": "auto lo\niface lo inet loopback\nauto {interface}\niface {interface} inet static\naddress {ip}/24\n",
        "units": "networking",
    },
    "ifupdown-hotplug": {
        "file": "/etc/network/interfaces",
        "text": "auto lo\niface lo inet loopback\nallow-hotplug {interface}\niface {interface} inet static\n"
                "address {ip}/24\n",
        "units": "networking",
    },
}


# What the package is put through, beside the managers.
PACKAGE = "package"
# Joining and leaving by one command, with restarts between.
JOIN = "join"
# Another revision of the package, which image.sh has put there.
UPGRADE = "/opt/ringwall/second.deb"


class Failed(Exception):
    """What must hold does not."""


def run(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True).stdout


def in_namespace(*words):
    return run("ip", "netns", "exec", NAMESPACE, *words)


class Machine:
    """One machine; `number` is the last byte of its addresses."""

    def __init__(self, directory, name, number):
        self.directory, self.name = directory, name
        self.ip, self.mac = f"192.0.2.{number}", f"02:00:00:00:03:{number:02x}"
        self.tap = f"port-{name}"
        self.asked = 0
        self.process = self.line = None

    def path(self, what):
        return self.directory / f"{self.name}.{what}"

    def start(self):
        in_namespace("ip", "tuntap", "add", self.tap, "mode", "tap", "vnet_hdr")
        in_namespace("ip", "link", "set", self.tap, "master", BRIDGE, "up")
        disk, agent = self.path("qcow2"), self.path("agent")
        disk.unlink(missing_ok=True)
        base = str(self.directory / "base.qcow2")
        run("qemu-img", "create", "-q", "-f", "qcow2", "-b", base, "-F", "qcow2", str(disk))
        command = [
            "ip", "netns", "exec", NAMESPACE, "qemu-system-x86_64", "-machine", "pc", "-accel", "tcg,thread=multi",
            "-cpu", "max", "-m", "768", "-display", "none", "-nodefaults", "-no-user-config",
            "-kernel", str(self.directory / "vmlinuz"), "-initrd", str(self.directory / "initrd.img"),
            "-append", f"root=/dev/vda rw console=ttyS0 panic=-1 systemd.hostname={self.name}",
            "-drive", f"file={disk},if=none,id=disk,cache=unsafe", "-device", "virtio-blk-pci,drive=disk,addr=8",
            "-serial", f"file:{self.path('console')}",
            "-device", "virtio-rng-pci,addr=9", "-device", "virtio-serial-pci,addr=10",
            "-chardev", f"socket,id=agent,path={agent},server=on,wait=off",
            "-device", "virtserialport,chardev=agent,name=agent",
            "-netdev", f"tap,id=lan,ifname={self.tap},script=no,downscript=no",
            "-device", f"virtio-net-pci,netdev=lan,addr=3,mac={self.mac}",
        ]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while self.line is None:
            line = socket.socket(socket.AF_UNIX)
            try:
                line.connect(str(agent))
                self.line = line
            except OSError:
                line.close()
                if time.monotonic() > deadline:
                    raise Failed(f"{self.name}: QEMU does not start") from None
                time.sleep(0.2)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        if self.line:
            self.line.close()
        run("ip", "netns", "exec", NAMESPACE, "ip", "link", "del", self.tap, check=False)

    def ask(self, command, limit_s=60):
        """What the command says and how it ends; nothing if the machine does not answer."""
        self.asked += 1
        asked = {"number": self.asked, "command": command, "limit_s": limit_s}
        self.line.sendall(json.dumps(asked).encode() + b"\n")
        self.line.settimeout(limit_s + 20)
        held = b""
        try:
            while True:
                held += self.line.recv(1 << 16)
                *whole, held = held.split(b"\n")
                for text in whole:
                    answer = json.loads(text)
                    if answer["number"] == self.asked:
                        return answer
        except TimeoutError:
            return None

    def must(self, command, limit_s=60):
        answer = self.ask(command, limit_s)
        if answer is None or answer["status"]:
            raise Failed(f"{self.name}: {command!r}: {answer and answer['said'].strip()}")
        return answer["said"]

    def await_boot(self, former=None):
        """Waits until another boot than `former` has come to its end; its number."""
        deadline = time.monotonic() + BOOT_LIMIT_S
        while time.monotonic() < deadline:
            answer = self.ask("cat /proc/sys/kernel/random/boot_id; systemctl is-system-running", 20)
            boot, state = (answer["said"].split() + ["", ""])[:2] if answer else ("", "")
            if boot and boot != former and state in ("running", "degraded"):
                return boot
            time.sleep(1)
        raise Failed(f"{self.name}: no boot within {BOOT_LIMIT_S} s")

    def put(self, path, text, mode="600"):
        quoted = text.replace("'", "'\\''")
        self.must(f"mkdir -p $(dirname {path}) && printf %s '{quoted}' > {path} && chmod {mode} {path}")


class Watch:
    """What leaves the machines in clear, from now on."""

    def __init__(self, directory, machines):
        self.file = directory / "clear.pcap"
        self.file.unlink(missing_ok=True)
        sources = " or ".join(f"ether src {machine.mac}" for machine in machines)
        command = ["ip", "netns", "exec", NAMESPACE, "tcpdump", "-i", BRIDGE, "-U", "-s", "64", "-w", str(self.file),
                   f"({sources}) and not ether proto {SEALED:#x}"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(1)

    def frames(self):
        return run("tcpdump", "-nn", "-e", "-r", str(self.file), check=False).splitlines()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def manage(machine, manager):
    """Has `manager` give the machine its address at each boot."""
    told = MANAGERS[manager]
    machine.must("systemd-machine-id-setup")
    # networkd is a user of its own; NetworkManager refuses what others may read.
    mode = "600" if manager == "NetworkManager" else "644"
    machine.put(told["file"], told["text"].format(interface=INTERFACE, ip=machine.ip), mode)
    machine.must("systemd-sysusers && systemctl daemon-reload", 120)


def prepare(machine, manager, identity):
    told = MANAGERS[manager]
    manage(machine, manager)
    machine.put("/etc/ringwall/identity.pem", identity)
    machine.put(CONFIG, f'[host]\ninterface = "{INTERFACE}"\nmode = "cll"\n')
    machine.must(f"systemctl enable {told['units']} ringwall-closed@{INTERFACE} ringwall@{INTERFACE} && sync", 120)


def await_reached(one, other, what):
    """Seconds until `one` reaches `other`."""
    start = time.monotonic()
    while time.monotonic() < start + REACHED_LIMIT_S:
        answer = one.ask(f"ping -n -c 1 -W 1 {other.ip}", 20)
        if answer and answer["status"] == 0:
            return time.monotonic() - start
        time.sleep(0.3)
    journal = f"journalctl -b -o cat -u ringwall@{INTERFACE} | tail -n 20"
    facts = one.ask(f"ip addr; ringwall status --config {CONFIG}; {journal}")
    raise Failed(f"{one.name} does not reach {other.name} {what}: {facts and facts['said']}")


def restart(machines):
    boots = [machine.await_boot() for machine in machines]
    for machine in machines:
        machine.must("systemctl reboot --no-block")
    for machine, boot in zip(machines, boots):
        machine.await_boot(boot)


def check_guarded(machine):
    status = json.loads(machine.must(f"ringwall status --json --config {CONFIG} || test $? -le 2"))
    if status["takeover"]["way"] != "in-place":
        raise Failed(f"{machine.name}: {status['takeover']}")
    if status["layers"]["in_force"] != "kernel":
        raise Failed(f"{machine.name}: {status['layers']}")


def outage(one, other, command, seconds, limit_s=60):
    """The longest gap between two answers, in seconds, while `other` carries out `command`; pings are sent for so long."""
    one.must(f"ping -n -D -i 0.2 -w {seconds} {other.ip} > /run/pings 2>&1 &")
    start = time.monotonic()
    time.sleep(4)
    other.must(command, limit_s)
    time.sleep(max(0, start + seconds + 3 - time.monotonic()))
    times = [float(text) for text in one.must(r"sed -n 's/^\[\([0-9.]*\)\].* time=.*/\1/p' /run/pings").split()]
    if len(times) < 10:
        raise Failed(f"{len(times)} answers around: {command}")
    return max(later - before for before, later in zip(times, times[1:]))


def outage_of_a_kill(one, other):
    """The same while the daemon of `other` is killed and comes back."""
    longest = outage(one, other, f"kill -9 $(systemctl show --property MainPID --value ringwall@{INTERFACE})", 25)
    if longest < 1:
        raise Failed(f"a dead daemon was missed for {longest:.1f} s only: it was not dead, or frames pass without it")
    return longest


def upgrade(one, other):
    """The other's package is replaced while it is pinged: another daemon guards then, and the card was never given back."""
    process = f"systemctl show --property MainPID --value ringwall@{INTERFACE}"
    before = other.must(process)
    longest = outage(one, other, f"dpkg --install {UPGRADE}", 120, 110)
    if other.must(process) == before:
        raise Failed("the daemon of the version before goes on")
    if other.must("dpkg-query --show --showformat='${Version}' ringwall").rpartition("-")[2] != "2":
        raise Failed("the package is not the second one")
    check_guarded(other)
    await_reached(one, other, "after the upgrade")
    return longest


def purge(machines):
    """The package goes, the cards are given back, and nothing is left."""
    for machine in machines:
        machine.must("dpkg --purge ringwall", 120)
    took = await_reached(*machines, "after the purge")
    for machine in machines:
        check_nothing_left(machine)
        left = machine.must("ls -d /etc/ringwall /var/lib/ringwall /run/ringwall /usr/sbin/ringwall 2>/dev/null || true")
        if left:
            raise Failed(f"{machine.name}: left after the purge: {left}")
    return took


def check_nothing_left(machine):
    left = machine.must("ip -o link; nft list tables; ls /sys/fs/bpf/ringwall 2>/dev/null || true")
    if "rw." in left or "ringwall" in left or "_guard" in left:
        raise Failed(f"{machine.name}: left: {left}")


def release(machines):
    for machine in machines:
        machine.must(f"ringwall host release --config {CONFIG}", 120)
    took = await_reached(*machines, "after the release")
    for machine in machines:
        check_nothing_left(machine)
    return took


def is_enabled(machine, unit):
    return machine.ask(f"systemctl is-enabled {unit}@{INTERFACE}")["said"].strip() == "enabled"


def join(machine, options):
    """What `ringwall join` says in JSON, and how it ends."""
    answer = machine.ask(f"ringwall join --json --interface {INTERFACE} {options} 2>/run/join.err", 240)
    if answer is None or not answer["said"].startswith("{"):
        raise Failed(f"{machine.name}: join says nothing: {answer} {machine.ask('cat /run/join.err')}")
    return json.loads(answer["said"]), answer["status"]


def check_kept(machine):
    """It is guarded for good, by the unit, which the next boot starts."""
    status = json.loads(machine.must(f"ringwall status --json --config {CONFIG} || test $? -le 2"))
    if status["state"] != "running" or "reverts_in_s" in status["takeover"]:
        raise Failed(f"{machine.name}: {status['state']} {status['takeover']}")
    machine.must(f"systemctl is-active ringwall@{INTERFACE}")
    if not (is_enabled(machine, "ringwall") and is_enabled(machine, "ringwall-closed")):
        raise Failed(f"{machine.name}: the units are not enabled")


def play_joining(directory, identities, boots):
    """Two machines join by one command each, one after a try that must be taken back, and leave again."""
    machines = [Machine(directory, "a", 10), Machine(directory, "b", 11)]
    row = {"manager": JOIN, "boots": 0}
    drop_in = f"/run/systemd/system/ringwall@{INTERFACE}.service.d"
    try:
        for machine in machines:
            machine.start()
        for machine in machines:
            machine.await_boot()
            manage(machine, "networkd")
            machine.must("systemctl enable --now systemd-networkd && sync", 120)
            machine.put("/etc/ringwall/identity.pem", identities[machine.name])
        a, b = machines
        row["kernel"] = a.must("uname -r").strip()
        await_reached(a, b, "in clear")
        # Who enforces does not hear a host that nobody guards.
        told, status = join(a, f"--migration enforce --peer {b.ip}")
        if status == 0 or told["joined"] or f"host {b.ip}" not in told["error"]:
            raise Failed(f"a host that is alone was kept: {told}")
        if is_enabled(a, "ringwall") or a.ask(f"ls {drop_in}")["status"] == 0:
            raise Failed("the trial left something behind")
        check_nothing_left(a)
        await_reached(a, b, "after the way back")
        for machine, options in ((a, "--migration observe --force"), (b, f"--migration observe --peer {a.ip}")):
            told, status = join(machine, options)
            if status or not told["joined"]:
                raise Failed(f"{machine.name}: {told}")
            check_kept(machine)
            await_reached(a, b, "after joining")
        for number in range(boots):
            restart(machines)
            row["reached_after_s"] = round(max(await_reached(a, b, "after a boot"), await_reached(b, a, "back")), 1)
            for machine in machines:
                check_kept(machine)
            peers = json.loads(a.must(f"ringwall peers --json --config {CONFIG}"))
            if "established" not in [peer["state"] for peer in peers]:
                raise Failed(f"nobody seals after a boot: {peers}")
            row["boots"] = number + 1
            print(f"   {JOIN}: boot {number + 1} of {boots}: guarded, sealed", flush=True)
        for machine in machines:
            machine.must("ringwall leave --forget", 120)
            if is_enabled(machine, "ringwall") or machine.ask("ls /etc/ringwall/identity.pem")["status"] == 0:
                raise Failed(f"{machine.name}: left, but not gone")
            check_nothing_left(machine)
        row["released_s"] = round(await_reached(a, b, "after leaving"), 1)
        row["verdict"] = "ok"
    except Failed as failed:
        row["verdict"] = f"FAILED: {failed}"
    finally:
        for machine in machines:
            machine.stop()
    return row


def play(case, directory, identities, boots):
    if case == JOIN:
        return play_joining(directory, identities, boots)

    machines = [Machine(directory, "a", 10), Machine(directory, "b", 11)]
    watch = None
    row = {"manager": case, "boots": 0}
    try:
        for machine in machines:
            machine.start()
        for machine in machines:
            machine.await_boot()
            prepare(machine, "networkd" if case == PACKAGE else case, identities[machine.name])
        a, b = machines
        row["kernel"] = a.must("uname -r").strip()
        # From here on nothing may leave in clear.
        for number in range(boots):
            if watch is None:
                for machine in machines:
                    machine.must("ip link set ens3 down")
                watch = Watch(directory, machines)
            restart(machines)
            reached = [await_reached(one, other, "after a boot") for one, other in ((a, b), (b, a))]
            row["reached_after_s"] = round(max(reached), 1)
            for machine in machines:
                check_guarded(machine)
            row["boots"] = number + 1
            print(f"   {case}: boot {number + 1} of {boots}: guarded, reached", flush=True)
        if case == PACKAGE:
            row["upgrade_s"] = round(upgrade(a, b), 1)
        else:
            row["kill_s"] = round(outage_of_a_kill(a, b), 1)
        row["frames_in_clear"] = len(watch.frames())
        if row["frames_in_clear"]:
            raise Failed(f"in clear: {watch.frames()[:5]}")
        row["released_s"] = round(purge(machines) if case == PACKAGE else release(machines), 1)
        row["verdict"] = "ok"
    except Failed as failed:
        row["verdict"] = f"FAILED: {failed}"
    finally:
        if watch:
            watch.stop()
        for machine in machines:
            machine.stop()
    return row


def issue_identities(program, directory):
    site = directory / "site"
    run("rm", "-rf", str(site))
    run(program, "site", "init", "--name", "machines", "--dir", str(site))
    found = {}
    for name, number in (("a", 10), ("b", 11)):
        file = directory / f"{name}.pem"
        run(program, "site", "issue", "--dir", str(site), "--name", name, "--mac", f"02:00:00:00:03:{number:02x}",
            "--ip", f"192.0.2.{number}", "--out", str(file), "--force")
        found[name] = file.read_text()
    return found


def show(rows):
    columns = ["manager", "kernel", "boots", "reached_after_s", "kill_s", "upgrade_s", "frames_in_clear", "released_s",
               "verdict"]
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(str(row.get(column, "")) for column in columns) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=pathlib.Path, help="where image.sh has put its files")
    parser.add_argument("program", help="the ringwall program that issues identities")
    parser.add_argument("--only", choices=[*MANAGERS, PACKAGE, JOIN], action="append",
                        help="this case; may be given several times")
    parser.add_argument("--boots", type=int, default=3, help="restarts in each case (3)")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    options = parser.parse_args()
    options.directory = options.directory.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    identities = issue_identities(options.program, options.directory)
    run("ip", "netns", "add", NAMESPACE)
    rows = []
    try:
        in_namespace("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        in_namespace("ip", "link", "add", BRIDGE, "type", "bridge")
        in_namespace("ip", "link", "set", BRIDGE, "up")
        for case in options.only or [*MANAGERS, PACKAGE, JOIN]:
            print(f"== {case}", flush=True)
            rows.append(play(case, options.directory, identities, options.boots))
            print(f"   {rows[-1]}", flush=True)
    finally:
        run("ip", "netns", "del", NAMESPACE)
    show(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    sys.exit(any(row["verdict"] != "ok" for row in rows))


main()
