"""Addresses by DHCP: the server proves what it gives, and each lease comes with a certificate."""

from case import Case
from machine import Failed, await_reached
from managers import manage

SERVED = "192.0.2.128/25"
# So long that no client renews it while the case runs: a daemon that was killed must have its host's
# address again by itself.
LEASE_S = 3600
SERVER = """[Unit]
After=systemd-networkd.service
StartLimitIntervalSec=0
[Service]
ExecStart=/usr/sbin/dnsmasq --keep-in-foreground --conf-file=/dev/null --user=root --port=0 \
    --interface={interface} --bind-dynamic --dhcp-authoritative --dhcp-leasefile=/run/leases \
    --dhcp-range=192.0.2.128,static,255.255.255.0,{lease}s --dhcp-host={client.mac},{client.ip}
Restart=always
RestartSec=1
[Install]
WantedBy=multi-user.target
"""


class Leased(Case):
    """The first machine gives addresses, the second one has its own by DHCP, under the manager of the case's name."""

    # The second one's is one of those that the first one serves.
    numbers = (10, 129)

    def prepare(self):
        server, client = self.machines
        units = manage(server, "networkd")
        server.put("/etc/ringwall/identity.pem",
                   self.site.identity(server, ["--role", "dhcp", "--ip", server.ip, "--serves", SERVED]))
        unit = SERVER.format(interface=server.interface, lease=LEASE_S, client=client)
        server.put("/etc/systemd/system/addresses.service", unit, "644")
        self.guard(server, "mode = \"cll\"\n[dhcp]\nserver = true\n", f"{units} addresses")
        units = manage(client, self.name)
        # Its address comes with the lease.
        client.put("/etc/ringwall/identity.pem", self.site.identity(client, []))
        self.guard(client, "mode = \"cll\"\n[dhcp]\nclient = true\n", units)

    def check_guarded(self, machine):
        super().check_guarded(machine)
        status = machine.status()
        if not status.get("leases"):
            raise Failed(f"{machine.name}: no lease: {status}")

    def give_back(self):
        took = super().give_back()
        server, client = self.machines
        # Whoever gives addresses goes on, in clear.
        client.must(f"ip -4 -o address show {client.interface} | grep -q {client.ip}")
        await_reached(client, server, "by the address of before")
        return took
