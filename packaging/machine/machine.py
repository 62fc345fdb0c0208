"""The machines, their LAN in a network namespace, and what they are asked."""

import json
import pathlib
import signal
import socket
import subprocess
import time

NAMESPACE = "rwmachine"
BRIDGE = "lan"
# Names by the slot on the PCI bus, which systemd gives.
CARD = "ens3"
SECOND_CARD = "ens4"
SEALED = 0x07D0
# Emulation where the machine below has no KVM that carries a machine.
HAS_KVM = subprocess.run([pathlib.Path(__file__).with_name("kvm.sh")], check=False).returncode == 0
ACCELERATOR = "kvm" if HAS_KVM else "tcg,thread=multi"
# A machine that shares its processors with a build boots in minutes.
BOOT_LIMIT_S = 600
REACHED_LIMIT_S = 90
# An emulated machine may be late by so much with its last ping.
END_OF_PINGS_S = 3


class Failed(Exception):
    """What must hold does not."""


def run(*words, check=True, given=None):
    return subprocess.run(words, check=check, capture_output=True, text=True, input=given).stdout


def in_namespace(*words, given=None):
    return run("ip", "netns", "exec", NAMESPACE, *words, given=given)


def make_lan():
    run("ip", "netns", "add", NAMESPACE)
    in_namespace("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
    in_namespace("ip", "link", "add", BRIDGE, "type", "bridge")
    in_namespace("ip", "link", "set", BRIDGE, "up")


def remove_lan():
    run("ip", "netns", "del", NAMESPACE)


def device(card, slot, mac):
    """A card, as QEMU is told of it."""
    return f"virtio-net-pci,id={card}-card,netdev={card},addr={slot},mac={mac}"


class Machine:
    """One machine; `number` is the last byte of its addresses, `interface` what is guarded."""

    def __init__(self, directory: pathlib.Path, name: str, number: int):
        self.directory, self.name = directory, name
        self.ip, self.mac = f"192.0.2.{number}", f"02:00:00:00:03:{number:02x}"
        self.cards = [(CARD, 3, self.mac)]
        self.interface = CARD
        self.asked = 0
        self.process = self.line = None

    @property
    def config(self):
        return f"/etc/ringwall/{self.interface}.toml"

    def add_card(self):
        """A second card, on the same LAN."""
        self.cards.append((SECOND_CARD, 4, self.mac.replace("03:", "04:")))

    def port(self, card):
        """The machine's end of a card's cable, in the namespace."""
        return f"{card}-{self.name}"

    def path(self, what):
        return self.directory / f"{self.name}.{what}"

    def start(self):
        network = []
        for card, slot, mac in self.cards:
            port = self.port(card)
            in_namespace("ip", "tuntap", "add", port, "mode", "tap", "vnet_hdr")
            in_namespace("ip", "link", "set", port, "master", BRIDGE, "up")
            network += ["-netdev", f"tap,id={card},ifname={port},script=no,downscript=no",
                        "-device", device(card, slot, mac)]
        disk, agent = self.path("qcow2"), self.path("agent")
        disk.unlink(missing_ok=True)
        base = str(self.directory / "base.qcow2")
        run("qemu-img", "create", "-q", "-f", "qcow2", "-b", base, "-F", "qcow2", str(disk))
        command = [
            "ip", "netns", "exec", NAMESPACE, "qemu-system-x86_64", "-machine", "pc", "-accel", ACCELERATOR,
            "-cpu", "max", "-m", "768", "-display", "none", "-nodefaults", "-no-user-config",
            "-kernel", str(self.directory / "vmlinuz"), "-initrd", str(self.directory / "initrd.img"),
            "-append", f"root=/dev/vda rw console=ttyS0 panic=-1 systemd.hostname={self.name}",
            "-drive", f"file={disk},if=none,id=disk,cache=unsafe", "-device", "virtio-blk-pci,drive=disk,addr=8",
            "-serial", f"file:{self.path('console')}",
            "-device", "virtio-rng-pci,addr=9", "-device", "virtio-serial-pci,addr=10",
            "-chardev", f"socket,id=agent,path={agent},server=on,wait=off",
            "-device", "virtserialport,chardev=agent,name=agent", *network,
            "-chardev", f"socket,id=monitor,path={self.path('monitor')},server=on,wait=off",
            "-mon", "chardev=monitor,mode=readline",
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

    def tell_qemu(self, command):
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(str(self.path("monitor")))
            monitor.sendall(f"{command}\n".encode())
            time.sleep(1)

    def unplug(self, card):
        """Takes the cable out of a card; the machine sees no carrier there."""
        self.tell_qemu(f"set_link {card} off")

    def take_out(self, card):
        """Takes the card itself out, and waits until the machine has none."""
        self.tell_qemu(f"device_del {card}-card")
        self.must(f"timeout 30 sh -c 'while test -e /sys/class/net/{card}; do sleep 0.2; done'")

    def put_in(self, card):
        self.tell_qemu(f"device_add {next(device(*one) for one in self.cards if one[0] == card)}")

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        if self.line:
            self.line.close()
        for card, _, _ in self.cards:
            run("ip", "netns", "exec", NAMESPACE, "ip", "link", "del", self.port(card), check=False)

    def ask(self, command, limit_s=60):
        """What the command says and how it ends; nothing if the machine does not answer."""
        self.asked += 1
        asked = {"number": self.asked, "command": command, "limit_s": limit_s}
        self.line.sendall(json.dumps(asked).encode() + b"\n")
        self.line.settimeout(limit_s + 20)
        held = b""
        try:
            while True:
                more = self.line.recv(1 << 16)
                if not more:
                    return None
                held += more
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

    def keep_journal(self, case):
        """Writes the end of the journal of this boot beside the machine's disk, for whoever asks why a
        case failed."""
        answer = None
        try:
            answer = self.ask("journalctl -b -o short-precise --no-pager | tail -n 500; ip addr")
        except OSError:
            pass
        self.path(f"{case}.journal").write_text(answer["said"] if answer else "the machine does not answer\n")

    def status(self):
        return json.loads(self.must(f"ringwall status --json --config {self.config} || test $? -le 2"))

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
    """What passes the LAN and matches `what`, from now on."""

    def __init__(self, directory, what):
        self.file = directory / "clear.pcap"
        self.file.unlink(missing_ok=True)
        command = ["ip", "netns", "exec", NAMESPACE, "tcpdump", "-i", BRIDGE, "-U", "-s", "96", "-w", str(self.file),
                   what]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(1)

    def frames(self, *options):
        return run("tcpdump", "-nn", "-e", *options, "-r", str(self.file), check=False).splitlines()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def in_clear(machines, tag=""):
    """What a machine sends and is not sealed; `tag` is what stands before a tagged frame's own EtherType."""
    sources = {mac for machine in machines for mac in (machine.mac, *(mac for _, _, mac in machine.cards))}
    named = " or ".join(f"ether src {mac}" for mac in sorted(sources))
    return f"({named}) and not ({tag}ether proto {SEALED:#x})"


def await_reached(one, other, what):
    """Seconds until `one` reaches `other`."""
    start = time.monotonic()
    while time.monotonic() < start + REACHED_LIMIT_S:
        answer = one.ask(f"ping -n -c 1 -W 1 {other.ip}", 20)
        if answer and answer["status"] == 0:
            return time.monotonic() - start
        time.sleep(0.3)
    journal = f"journalctl -b -o cat -u ringwall@{one.interface} | tail -n 20"
    facts = one.ask(f"ip addr; ringwall status --config {one.config}; {journal}")
    raise Failed(f"{one.name} does not reach {other.name} {what}: {facts and facts['said']}")


def await_both_reached(one, other, what):
    return round(max(await_reached(one, other, what), await_reached(other, one, what)), 1)


def restart(machines):
    boots = [machine.await_boot() for machine in machines]
    for machine in machines:
        machine.must("systemctl reboot --no-block")
    for machine, boot in zip(machines, boots):
        machine.await_boot(boot)


def check_nothing_left(machine):
    left = machine.must("ip -o link; nft list tables; ls /sys/fs/bpf/ringwall 2>/dev/null || true")
    if "rw." in left or "ringwall" in left or "_guard" in left:
        raise Failed(f"{machine.name}: left: {left}")


def outage(one, other, action, seconds, address=None):
    """The longest gap between two answers of `other`, in seconds, around `action`; pings are sent for so long."""
    # With a deadline of its own (-w) ping ends at the first neighbour that does not answer ARP.
    one.must(f"timeout -s INT {seconds} ping -n -D -i 0.2 {address or other.ip} > /run/pings 2>&1 &")
    start = time.monotonic()
    time.sleep(4)
    action()
    time.sleep(max(0, start + seconds + 3 - time.monotonic()))
    times = [float(text) for text in one.must(r"sed -n 's/^\[\([0-9.]*\)\].* time=.*/\1/p' /run/pings").split()]
    if len(times) < 10:
        raise Failed(f"{len(times)} answers of {other.name} in {seconds} s")
    end = times[0] + seconds
    if times[-1] < end - END_OF_PINGS_S:
        raise Failed(f"{other.name} did not come back within {end - times[-1]:.0f} s")
    times.append(max(times[-1], end))
    return round(max(later - before for before, later in zip(times, times[1:])), 1)


def kill_daemon(machine, unit="ringwall", instance=None):
    machine.must(f"kill -9 $(systemctl show --property MainPID --value {unit}@{instance or machine.interface})")
