//! strongSwan on a host of the LAN, with a mount tree of its own so that several run on one machine.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::{Frame, Host, Namespace, Running, pcap, process};

use crate::stage::{Outcome, SOON, Stage};

/// Where Debian's package has the daemon.
const CHARON: &str = "/usr/lib/ipsec/charon";
/// The SPIs that it gives out.
pub const SPI_MIN: u32 = 0xc000_0100;
pub const SPI_MAX: u32 = 0xc000_10ff;
/// The plugins, in this order: ESP by the library before the kernel's, or it would not be asked.
const PLUGINS: &str =
    "random nonce aes sha1 sha2 hmac kdf gmp curve25519 openssl kernel-libipsec kernel-netlink socket-default vici";

/// The address that stands for the network behind `host`.
pub fn inner_address(host: &Host) -> Ipv4Addr {
    let [.., last] = host.ip.octets();
    Ipv4Addr::new(10, 88, 0, last)
}

/// Sends `frames` from the attacker's card once, as fast as it can.
pub fn inject(stage: &Stage, attacker: &Host, frames: &[Frame]) -> Outcome {
    process::must(sender(stage, attacker, frames, &["--topspeed"])?).map(drop)
}

/// Sends `frames` from the attacker's card again and again, so many a second, until it is stopped.
pub fn flood(stage: &Stage, attacker: &Host, frames: &[Frame], per_second: u32) -> Result<Running, Failure> {
    let pace = format!("--pps={per_second}");
    Running::start(sender(stage, attacker, frames, &["--loop=0", &pace])?, &stage.file("flood.log"))
}

/// Under the attacker's own hardware address, so that no switch learns a wrong one.
fn sender(stage: &Stage, attacker: &Host, frames: &[Frame], options: &[&str]) -> Result<Command, Failure> {
    let file = stage.file("forged.pcap");
    let frames: Vec<Frame> =
        frames.iter().map(|frame| frame.with_addresses(attacker.mac, frame.destination())).collect();
    pcap::write(&file, &frames)?;
    let mut command = attacker.namespace.command("tcpreplay");
    command.args(options).args(["--preload-pcap", "-i", INTERFACE]).arg(&file);
    Ok(command)
}

/// A running strongSwan.
pub struct Swan {
    namespace: Namespace,
    directory: PathBuf,
    process: Running,
}

impl Swan {
    /// Whether Debian's packages are there.
    pub fn is_installed() -> bool {
        Path::new(CHARON).exists() && process::installed("swanctl")
    }

    /// Starts it on `host` for a tunnel to `peer` between their addresses `outer`, whose associations are replaced after `rekey`.
    pub fn start(
        stage: &Stage,
        [host, peer]: [&Host; 2],
        outer: [IpAddr; 2],
        rekey: Option<Duration>,
    ) -> Result<Swan, Failure> {
        host.namespace.ip(&format!("address replace {}/32 dev lo", inner_address(host)))?;
        let directory = stage.file(&format!("swan-{}", host.name));
        for folder in ["etc/x509", "etc/x509ca"] {
            let folder = directory.join(folder);
            std::fs::create_dir_all(&folder).map_err(Failure::file("making", &folder))?;
        }
        let write = |name: &str, text: String| {
            let file = directory.join(name);
            std::fs::write(&file, text).map_err(Failure::file("writing", &file))
        };
        write("strongswan.conf", daemon_settings())?;
        write("etc/swanctl.conf", connection([host, peer], outer, rekey))?;
        let process = Running::start(command(host, &directory), &directory.join("log"))?;
        let swan = Swan { namespace: stage.host(host.name).namespace.clone(), directory, process };
        process::until(&format!("strongSwan on {}", host.name), SOON, || Ok(swan.ask(&["--stats"]).is_ok()))?;
        swan.ask(&["--load-all"])?;
        Ok(swan)
    }

    /// Opens the tunnel.
    pub fn initiate(&self, limit: Duration) -> Outcome {
        process::until("the tunnel", limit, || Ok(self.ask(&["--initiate", "--child", "tunnel"]).is_ok()))
    }

    /// Whether it has given this SPI out or been given it.
    pub fn knows_spi(&self, spi: u32) -> Result<bool, Failure> {
        Ok(self.ask(&["--list-sas", "--raw"])?.contains(&format!("spi-in={spi:08x}")))
    }

    /// What it has written.
    pub fn log(&self) -> String {
        self.process.output()
    }

    fn ask(&self, words: &[&str]) -> Result<String, Failure> {
        let mut command = self.namespace.command("swanctl");
        command.args(words).arg("--uri").arg(format!("unix://{}", self.directory.join("vici").display()));
        command.env("SWANCTL_DIR", self.directory.join("etc"));
        process::must(command)
    }
}

/// The daemon's directory is seen at another place, because its process file in `/run` would be in the other one's way.
fn command(host: &Host, directory: &Path) -> Command {
    let mut command = host.namespace.command("unshare");
    let script = format!(
        "mount --make-rprivate / && mount --bind '{}' /mnt && mount -t tmpfs tmpfs /run && \
         exec env STRONGSWAN_CONF=/mnt/strongswan.conf {CHARON}",
        directory.display()
    );
    command.args(["--mount", "sh", "-c", &script]);
    command
}

fn daemon_settings() -> String {
    format!(
        "charon {{\n load_modular = no\n load = {PLUGINS}\n port = 500\n port_nat_t = 4500\n install_routes = yes\n \
         spi_min = {SPI_MIN:#x}\n spi_max = {SPI_MAX:#x}\n \
         plugins {{\n vici {{\n socket = unix:///mnt/vici\n }}\n }}\n \
         filelog {{\n stderr {{\n default = 1\n esp = 0\n }}\n }}\n syslog {{\n daemon {{\n default = -1\n }}\n auth {{\n \
         default = -1\n }}\n }}\n}}\n"
    )
}

fn connection([host, peer]: [&Host; 2], outer: [IpAddr; 2], rekey: Option<Duration>) -> String {
    let rekey = rekey.map_or("rekey_time = 0".to_owned(), |time| {
        format!("rekey_time = {0}s\n life_time = {1}s\n rand_time = 0", time.as_secs(), time.as_secs() * 4)
    });
    format!(
        "connections {{\n pair {{\n version = 2\n local_addrs = {}\n remote_addrs = {}\n encap = yes\n mobike = no\n \
         proposals = aes256-sha256-x25519\n local {{\n auth = psk\n id = {}\n }}\n remote {{\n auth = psk\n id = {}\n }}\n \
         children {{\n tunnel {{\n mode = tunnel\n local_ts = {}/32\n remote_ts = {}/32\n esp_proposals = aes256gcm16\n \
         {rekey}\n }}\n }}\n }}\n}}\nsecrets {{\n ike-pair {{\n id-1 = {}\n id-2 = {}\n secret = laboratory\n }}\n}}\n",
        outer[0],
        outer[1],
        host.name,
        peer.name,
        inner_address(host),
        inner_address(peer),
        host.name,
        peer.name,
    )
}
