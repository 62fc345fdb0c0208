"""What each manager of the network is told, so that it gives a machine its address at each boot."""

from machine import CARD

PASSPHRASE = "no secret here"
NETWORK = "machines"

NETWORKD = "[Match]\nName={interface}\n[Network]\nAddress={ip}/24\nLinkLocalAddressing=no\n"
IFUPDOWN = "auto lo\niface lo inet loopback\n{how} {{interface}}\n" \
           "iface {{interface}} inet static\naddress {{ip}}/24\n"
# NetworkManager refuses files that others may read.
MANAGERS = {
    "NetworkManager": {
        "interface": CARD,
        "files": {
            "/etc/NetworkManager/system-connections/lan.nmconnection":
                "[connection]\nid=lan\ntype=ethernet\ninterface-name={interface}\n[ipv4]\nmethod=manual\n"
                "address1={ip}/24\n[ipv6]\nmethod=disabled\n",
        },
        "mode": "600",
        "units": "NetworkManager",
    },
    "NetworkManager-wifi": {
        "interface": "wlan0",
        "files": {
            "/etc/NetworkManager/system-connections/air.nmconnection":
                "[connection]\nid=air\ntype=wifi\ninterface-name={interface}\n"
                f"[wifi]\nssid={NETWORK}\n[wifi-security]\nkey-mgmt=wpa-psk\npsk={PASSPHRASE}\n"
                "[ipv4]\nmethod=manual\naddress1={ip}/24\n[ipv6]\nmethod=disabled\n",
        },
        "mode": "600",
        "units": "NetworkManager",
    },
    "networkd": {
        "interface": CARD,
        "files": {"/etc/systemd/network/50-lan.network": NETWORKD},
        "mode": "644",
        "units": "systemd-networkd",
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
