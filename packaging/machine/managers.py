"""What each manager of the network is told, so that it gives a machine its address at each boot."""

from machine import CARD, SECOND_CARD

PASSPHRASE = "no secret here"
NETWORK = "machines"

# A bond has one address of hardware in all boots, which its certificate names; one of its cards is idle.
BOND_BY_NETWORKD = {
    "/etc/systemd/network/40-bond.netdev":
        "[NetDev]\nName={interface}\nKind=bond\nMACAddress={mac}\n[Bond]\nMode=active-backup\n"
        "MIIMonitorSec=100ms\n",
    "/etc/systemd/network/40-cards.network": f"[Match]\nName={CARD} {SECOND_CARD}\n[Network]\nBond={{interface}}\n",
}
VLAN_BY_NETWORKD = {
    "/etc/systemd/network/40-vlan.netdev": "[NetDev]\nName={interface}\nKind=vlan\n[VLAN]\nId=5\n",
    "/etc/systemd/network/40-card.network":
        f"[Match]\nName={CARD}\n[Network]\nVLAN={{interface}}\nLinkLocalAddressing=no\n",
}
# A bridge has one address in all boots as well. What is made on the machine for a guest is no business of its manager.
BRIDGE_BY_NETWORKD = {
    "/etc/systemd/network/40-bridge.netdev": "[NetDev]\nName={interface}\nKind=bridge\nMACAddress={mac}\n",
    "/etc/systemd/network/40-card.network": f"[Match]\nName={CARD}\n[Network]\nBridge={{interface}}\n",
}
NETWORKD = "[Match]\n{known_by}\n[Network]\nAddress={ip}/24\nLinkLocalAddressing=no\n"
NETWORKD_BY_NAME = NETWORKD.replace("{known_by}", "Name={interface}")
# Whoever takes a card away, or another's address for it, would lose this one.
NETWORKD_BY_ADDRESS = NETWORKD.replace("{known_by}", "PermanentMACAddress={mac}")
NETWORKD_BY_LEASE = "[Match]\nName={interface}\n[Network]\nDHCP=ipv4\nLinkLocalAddressing=no\n"
DHCPCD_BY_LEASE = "interface {interface}\nnoipv6\nnoipv4ll\ndenyinterfaces rw*\n"
DHCPCD = "interface {interface}\nstatic ip_address={ip}/24\nnoipv6\ndenyinterfaces rw*\n"
IFUPDOWN_BY_LEASE = "auto lo\niface lo inet loopback\nauto {interface}\niface {interface} inet dhcp\n"
IFUPDOWN = "auto lo\niface lo inet loopback\n{how} {{interface}}\n" \
           "iface {{interface}} inet static\naddress {{ip}}/24\n"
# What NetworkManager keeps of a connection, in a file each.
PROFILES = "/etc/NetworkManager/system-connections"
BY_LEASE = "[ipv4]\nmethod=auto\n[ipv6]\nmethod=disabled\n"
BY_HAND = "[ipv4]\nmethod=manual\naddress1={ip}/24\n[ipv6]\nmethod=disabled\n"
WITHOUT_ADDRESS = "[ipv4]\nmethod=disabled\n[ipv6]\nmethod=disabled\n"


def port_of(kind, card):
    return f"[connection]\nid={card}\ntype=ethernet\ninterface-name={card}\nmaster={{interface}}\nslave-type={kind}\n"


BOND_BY_NETWORKMANAGER = {
    f"{PROFILES}/lan.nmconnection":
        "[connection]\nid=lan\ntype=bond\ninterface-name={interface}\n[ethernet]\ncloned-mac-address={mac}\n"
        f"[bond]\nmode=active-backup\nmiimon=100\n{BY_HAND}",
    f"{PROFILES}/first.nmconnection": port_of("bond", CARD),
    f"{PROFILES}/second.nmconnection": port_of("bond", SECOND_CARD),
}
BRIDGE_BY_NETWORKMANAGER = {
    f"{PROFILES}/lan.nmconnection":
        "[connection]\nid=lan\ntype=bridge\ninterface-name={interface}\n[bridge]\nmac-address={mac}\nstp=false\n"
        f"{BY_HAND}",
    f"{PROFILES}/card.nmconnection": port_of("bridge", CARD),
}
VLAN_BY_NETWORKMANAGER = {
    f"{PROFILES}/card.nmconnection":
        f"[connection]\nid=card\ntype=ethernet\ninterface-name={CARD}\n{WITHOUT_ADDRESS}",
    f"{PROFILES}/lan.nmconnection":
        f"[connection]\nid=lan\ntype=vlan\ninterface-name={{interface}}\n[vlan]\nid=5\nparent={CARD}\n{BY_HAND}",
}
# NetworkManager refuses files that others may read.
MANAGERS = {
    "NetworkManager": {
        "interface": CARD,
        "files": {
            f"{PROFILES}/lan.nmconnection":
                f"[connection]\nid=lan\ntype=ethernet\ninterface-name={{interface}}\n{BY_HAND}",
        },
        "mode": "600",
        "units": "NetworkManager",
    },
    "NetworkManager-wifi": {
        "interface": "wlan0",
        "files": {
            f"{PROFILES}/air.nmconnection":
                "[connection]\nid=air\ntype=wifi\ninterface-name={interface}\n"
                f"[wifi]\nssid={NETWORK}\n[wifi-security]\nkey-mgmt=wpa-psk\npsk={PASSPHRASE}\n"
                f"{BY_HAND}",
        },
        "mode": "600",
        "units": "NetworkManager",
    },
    "networkd": {
        "interface": CARD,
        "files": {"/etc/systemd/network/50-lan.network": NETWORKD_BY_NAME},
        "mode": "644",
        "units": "systemd-networkd",
    },
    "networkd-address": {
        "interface": CARD,
        "files": {"/etc/systemd/network/50-lan.network": NETWORKD_BY_ADDRESS},
        "mode": "644",
        "units": "systemd-networkd",
    },
    "dhcpcd": {
        "interface": CARD,
        "files": {"/etc/dhcpcd.conf": DHCPCD},
        "mode": "644",
        "units": "dhcpcd",
    },
    "ifupdown-auto": {
        "interface": CARD,
        "files": {"/etc/network/interfaces": IFUPDOWN.format(how="auto")},
        "mode": "644",
        "units": "networking",
    },
    "ifupdown-hotplug": {
        "interface": CARD,
        "files": {"/etc/network/interfaces": IFUPDOWN.format(how="allow-hotplug")},
        "mode": "644",
        "units": "networking",
    },
    "dhcp-NetworkManager": {
        "interface": CARD,
        "files": {
            f"{PROFILES}/lan.nmconnection":
                f"[connection]\nid=lan\ntype=ethernet\ninterface-name={{interface}}\n{BY_LEASE}",
        },
        "mode": "600",
        "units": "NetworkManager",
    },
    "dhcp-networkd": {
        "interface": CARD,
        "files": {"/etc/systemd/network/50-lan.network": NETWORKD_BY_LEASE},
        "mode": "644",
        "units": "systemd-networkd",
    },
    "dhcp-dhcpcd": {
        "interface": CARD,
        "files": {"/etc/dhcpcd.conf": DHCPCD_BY_LEASE},
        "mode": "644",
        "units": "dhcpcd",
    },
    "dhcp-ifupdown": {
        "interface": CARD,
        "files": {"/etc/network/interfaces": IFUPDOWN_BY_LEASE},
        "mode": "644",
        "units": "networking",
    },
    "bond": {
        "interface": "bond0",
        "files": {**BOND_BY_NETWORKD, "/etc/systemd/network/50-lan.network": NETWORKD_BY_NAME},
        "mode": "644",
        "units": "systemd-networkd",
        "again": "networkctl delete {interface} && systemctl restart systemd-networkd",
    },
    "bridge": {
        "interface": "br-lan",
        "files": {**BRIDGE_BY_NETWORKD, "/etc/systemd/network/50-lan.network": NETWORKD_BY_NAME},
        "mode": "644",
        "units": "systemd-networkd",
        "again": "networkctl delete {interface} && systemctl restart systemd-networkd",
    },
    "bridge-NetworkManager": {
        "interface": "br-lan",
        "files": BRIDGE_BY_NETWORKMANAGER,
        "mode": "600",
        "units": "NetworkManager",
        "again": "nmcli connection down lan && nmcli connection up lan",
    },
    "vlan": {
        "interface": f"{CARD}.5",
        "files": {**VLAN_BY_NETWORKD, "/etc/systemd/network/50-lan.network": NETWORKD_BY_NAME},
        "mode": "644",
        "units": "systemd-networkd",
        "again": "networkctl delete {interface} && systemctl restart systemd-networkd",
    },
    "bond-NetworkManager": {
        "interface": "bond0",
        "files": BOND_BY_NETWORKMANAGER,
        "mode": "600",
        "units": "NetworkManager",
        "again": "nmcli connection down lan && nmcli connection up lan",
    },
    "vlan-NetworkManager": {
        "interface": f"{CARD}.5",
        "files": VLAN_BY_NETWORKMANAGER,
        "mode": "600",
        "units": "NetworkManager",
        "again": "nmcli connection down lan && nmcli connection up lan",
    },
}


def manage(machine, manager):
    """Has `manager` give the machine its address at each boot; the units that do."""
    told = MANAGERS[manager]
    machine.interface = told["interface"]
    machine.must("systemd-machine-id-setup")
    for file, text in told["files"].items():
        machine.put(file, text.format(interface=machine.interface, ip=machine.ip, mac=machine.mac), told["mode"])
    machine.must("systemd-sysusers && systemctl daemon-reload", 120)
    return told["units"]


def make_again(machine, manager):
    """Has `manager` delete the device that it had made, and make it again."""
    machine.must(MANAGERS[manager]["again"].format(interface=machine.interface), 120)


# The access point: a radio and the machine's card, bridged in a network namespace of their own.
AIR = f"""#!/bin/sh
set -eu
modprobe mac80211_hwsim radios=2
ip netns add air
phy=$(basename $(readlink /sys/class/net/wlan1/phy80211))
iw phy $phy set netns name air
ip link set {CARD} netns air
inside() {{ ip netns exec air "$@"; }}
inside ip link add air0 type bridge
inside ip link set {CARD} master air0 up
inside ip link set air0 up
exec ip netns exec air hostapd /etc/air.conf
"""
AIR_CONF = f"""interface=wlan1
bridge=air0
driver=nl80211
ssid={NETWORK}
hw_mode=g
channel=1
wpa=2
wpa_key_mgmt=WPA-PSK
rsn_pairwise=CCMP
wpa_passphrase={PASSPHRASE}
"""
AIR_UNIT = """[Unit]
DefaultDependencies=no
After=local-fs.target systemd-udevd.service
Before=network-pre.target
Wants=network-pre.target
[Service]
ExecStart=/usr/local/sbin/air
[Install]
WantedBy=multi-user.target
"""


def put_access_point(machine):
    machine.put("/usr/local/sbin/air", AIR, "755")
    machine.put("/etc/air.conf", AIR_CONF)
    machine.put("/etc/systemd/system/air.service", AIR_UNIT, "644")
    machine.must("systemctl daemon-reload && systemctl enable air", 120)
