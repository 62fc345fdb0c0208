"""What the units may do: what systemd says of them, and what makes a card need another way."""

from machine import Failed

WHEREVER_A_NAMESPACE_IS_USED = "cap_sys_admin"
# In tenths, as packaging/test.sh has it.
MOST_EXPOSED = 25

# A program of somebody else in front of a card, from before its daemon starts: it lets all frames pass.
# Numbers are those of linux/bpf.h: BPF_PROG_LOAD, XDP, BPF_LINK_CREATE at BPF_XDP, generic mode.
FOREIGN = """#!/usr/bin/python3
import ctypes, os, signal, socket, struct, sys
call = ctypes.CDLL(None, use_errno=True).syscall
def bpf(command, attributes):
    held = ctypes.create_string_buffer(attributes, 128)
    descriptor = call(321, command, held, 128)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return descriptor
code = ctypes.create_string_buffer(bytes.fromhex("b7000000020000009500000000000000"))
licence = ctypes.create_string_buffer(b"GPL")
program = bpf(5, struct.pack("=IIQQ", 6, 2, ctypes.addressof(code), ctypes.addressof(licence)))
link = bpf(28, struct.pack("=IIII", program, socket.if_nametoindex(sys.argv[1]), 37, 2))
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
    manager.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
signal.pause()
"""
FOREIGN_UNIT = """[Unit]
DefaultDependencies=no
Wants=sys-subsystem-net-devices-{interface}.device
After=local-fs.target sys-subsystem-net-devices-{interface}.device
Before=ringwall@{interface}.service
[Service]
Type=notify
ExecStart=/usr/bin/python3 /usr/local/lib/machine/foreign.py {interface}
[Install]
WantedBy=multi-user.target
"""
# udev gives each new TAP an address of its own otherwise, also one that stands in for a card.
TAP_AS_IT_IS = "[Match]\nDriver=tun\n[Link]\nNamePolicy=keep\nMACAddressPolicy=none\n"


def put_foreign_program(machine):
    machine.put("/usr/local/lib/machine/foreign.py", FOREIGN)
    machine.put("/etc/systemd/system/foreign.service", FOREIGN_UNIT.format(interface=machine.interface), "644")
    machine.must("systemctl daemon-reload && systemctl enable foreign", 120)


def let_taps_be(machine):
    machine.put("/etc/systemd/network/05-tap.link", TAP_AS_IT_IS, "644")


def check_confined(machine, unit):
    check_rights(machine, unit, is_loosened=False)
    check_exposure(machine, unit)


def check_exposure(machine, unit):
    """What systemd says of the unit as it is loaded."""
    told = machine.must(f"systemd-analyze security {unit} --no-pager | tail -n 1", 120)
    if not any(f" {tenths / 10} " in told for tenths in range(MOST_EXPOSED + 1)):
        raise Failed(f"{machine.name}: {told}")


def check_rights(machine, unit, is_loosened):
    told = machine.must(f"systemctl show --property CapabilityBoundingSet --value {unit}")
    if (WHEREVER_A_NAMESPACE_IS_USED in told.split()) != is_loosened:
        raise Failed(f"{machine.name}: {unit} {'needs' if is_loosened else 'needs no'} namespace, and has {told}")


def count_of_looks(machine):
    """How often in this boot a daemon had ended for want of rights."""
    unit = f"ringwall-rights@ringwall@{machine.interface}"
    return int(machine.must(f"journalctl -b -o cat -u {unit} | grep -c '^Starting' || true"))
