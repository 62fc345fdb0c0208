"""The site's service and its signer under systemd: a machine joins and renews over the LAN, with the authority's key in
a token of PKCS#11 and the repository first in a file, then in etcd."""

import json

from case import Case
from machine import Failed, await_both_reached, restart
from managers import manage
from rights import check_exposure

PORT = 9478
PIN = "765432"
TOKENS = "/var/lib/softhsm/tokens"
KEY = f"pkcs11:token=site;object=authority?module-path=/usr/lib/softhsm/libsofthsm2.so" \
      f"&pin-source=file:/etc/ringwall/pin&x-files={TOKENS}"
UNITS = "ringwall-signer ringwall-site"
MEMBER = "http://127.0.0.1:2379"
# Its presets name localhost, which such a small machine does not know.
ETCD = f"ETCD_LISTEN_CLIENT_URLS={MEMBER}\nETCD_ADVERTISE_CLIENT_URLS={MEMBER}\n" \
       "ETCD_LISTEN_PEER_URLS=http://127.0.0.1:2380\nETCD_INITIAL_ADVERTISE_PEER_URLS=http://127.0.0.1:2380\n" \
       "ETCD_INITIAL_CLUSTER=a=http://127.0.0.1:2380\n"


class Service(Case):
    """The first machine is the site, and guards itself; the second one joins it by a token."""

    def take_steps(self):
        site, host = self.machines
        for machine in self.machines:
            machine.must(f"systemctl enable --now {manage(machine, 'networkd')} && sync", 120)
        self.found(site)
        self.join(site, host)
        for number in range(self.boots):
            restart(self.machines)
            self.row["reached_after_s"] = await_both_reached(site, host, "after a boot")
            self.renew(site, host)
            self.row["boots"] = number + 1
            print(f"   {self.name}: boot {number + 1} of {self.boots}: renewed", flush=True)
        self.move_to_etcd(site)
        self.renew(site, host)
        restart([site])
        self.row["reached_after_s"] = await_both_reached(site, host, "with etcd, after a boot")
        self.renew(site, host)
        for unit in UNITS.split():
            check_exposure(site, unit)

    def found(self, site):
        site.must("softhsm2-util --init-token --free --label site --so-pin 12345678 --pin " + PIN)
        site.put("/etc/ringwall/pin", PIN)
        site.must(f"ringwall site init --name machines --key '{KEY}'")
        site.must(f"ringwall site issue --name a --mac {site.mac} --ip {site.ip} --out /etc/ringwall/identity.pem")
        # The generator lets the signer reach the token.
        site.must(f"systemctl daemon-reload && systemctl enable --now {UNITS} && sync", 120)
        self.guard(site, "mode = \"cll\"\n[cll]\nmigration = \"observe\"\n", "")
        site.must(f"systemctl start ringwall@{site.interface}", 120)

    def join(self, site, host):
        made = site.must(f"ringwall site token b --ip {host.ip} --mac {host.mac} --preapproved --by-service --json")
        token = json.loads(made)["token"]
        said = host.ask(f"ringwall join {token} --service {site.ip}:{PORT} --interface {host.interface} "
                       f"--migration observe --json", 240)
        if said is None or said["status"]:
            raise Failed(f"{host.name} does not join: {said} {journal(site)}")
        await_both_reached(site, host, "after joining")
        # What hosts are given of the shared keys is signed from now on.
        site.must("ringwall site rekey-shared", 120)
        self.renew(site, host)

    def renew(self, site, host):
        """The host is given the keys that all share, under the signature of the token."""
        said = host.ask(f"ringwall host renew --config {host.config}", 120)
        if said is None or said["status"] or "generation 1" not in said["said"]:
            raise Failed(f"{host.name} is not renewed: {said} {journal(site)}")
        if host.status()["identity"]["shared_keys"] != 1:
            raise Failed(f"the daemon has other keys: {host.status()['identity']}")

    def move_to_etcd(self, site):
        site.put("/etc/default/etcd", ETCD, "644")
        site.must("systemctl enable --now etcd && sync", 120)
        said = site.must(f"ringwall site repository import --etcd {MEMBER}", 120)
        # What it says is to be typed next.
        command = said.strip().rpartition(": ")[2]
        if not command.startswith("systemctl daemon-reload"):
            raise Failed(f"not what to do next: {said}")
        site.must(command, 120)


def journal(site):
    said = site.ask(f"journalctl -b -o cat {' '.join('-u ' + unit for unit in UNITS.split())} | tail -n 40")
    return said and said["said"]
