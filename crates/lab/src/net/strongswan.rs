//! strongSwan on hosts of the LAN, each with a mount tree of its own so that several run on one machine.
//!
//! It carries ESP in UDP by its own library, because this kernel may have no ESP. Each host has a network of its own behind it, of which
//! there is one address, and tunnels are between those.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use wire::EtherType;

use crate::failure::Failure;
use crate::net::{Frame, Host, Namespace, Running, process};

/// Where Debian's package has the daemon.
const CHARON: &str = "/usr/lib/ipsec/charon";
/// The lowest SPI that it gives out.
pub const SPI_MIN: u32 = 0xc000_0100;
/// The highest SPI that it gives out.
pub const SPI_MAX: u32 = 0xc000_10ff;
/// The plugins, in this order: ESP by the library before the kernel's, or it would not be asked.
const PLUGINS: &str =
    "random nonce aes sha1 sha2 hmac kdf gmp curve25519 openssl kernel-libipsec kernel-netlink socket-default vici";
/// How long the daemon may take until it answers.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// Where a packet of ESP in UDP over IPv4 has its SPI, in a frame; the sequence number follows.
pub const SPI_AT: usize = 14 + 20 + 8;
/// Where such a packet has the checksum of its UDP header.
const UDP_CHECKSUM_AT: usize = 14 + 20 + 6;

/// The address that stands for the network behind `host`.
#[must_use]
pub fn inner_address(host: &Host) -> Ipv4Addr {
    let [.., last] = host.ip.octets();
    Ipv4Addr::new(10, 88, 0, last)
}

/// Whether `frame` is ESP in UDP from `source`.
#[must_use]
pub fn is_esp(frame: &Frame, source: Ipv4Addr) -> bool {
    frame.is(EtherType::IPV4)
        && frame.ipv4_source() == Some(source)
        && frame.0.get(23) == Some(&17)
        && frame.0.get(34..38) == Some(&[0x11, 0x94, 0x11, 0x94])
        && frame.0.len() >= SPI_AT + 8
        && frame.0[SPI_AT..SPI_AT + 4] != [0; 4]
}

/// The same packet with another SPI or sequence number, and without checksum.
#[must_use]
pub fn forged(recorded: &Frame, spi: Option<u32>, sequence: Option<u32>) -> Frame {
    let mut frame = recorded.clone();
    frame.0[UDP_CHECKSUM_AT..UDP_CHECKSUM_AT + 2].fill(0);
    for (at, value) in [(SPI_AT, spi), (SPI_AT + 4, sequence)] {
        value.into_iter().for_each(|value| frame.0[at..at + 4].copy_from_slice(&value.to_be_bytes()));
    }
    frame
}

/// One tunnel of a host.
#[derive(Clone, Copy, Debug)]
pub struct Tunnel<'a> {
    /// To whom.
    pub peer: &'a Host,
    /// Between which addresses, the own one first.
    pub outer: [IpAddr; 2],
    /// After what time its associations are replaced, by this end.
    pub rekey: Option<Duration>,
}

/// A running strongSwan.
#[derive(Debug)]
pub struct Swan {
    namespace: Namespace,
    directory: PathBuf,
    process: Running,
}

impl Swan {
    /// Whether Debian's packages are there.
    #[must_use]
    pub fn is_installed() -> bool {
        Path::new(CHARON).exists() && process::installed("swanctl")
    }

    /// Starts it on `host` for these tunnels, with its files in a directory below `directory`.
    ///
    /// # Errors
    /// It cannot be started, or does not answer within 30 s.
    pub fn start(directory: &Path, host: &Host, tunnels: &[Tunnel<'_>]) -> Result<Swan, Failure> {
        host.namespace.ip(&format!("address replace {}/32 dev lo", inner_address(host)))?;
        let directory = directory.join(format!("swan-{}", host.name));
        for folder in ["etc/x509", "etc/x509ca"] {
            let folder = directory.join(folder);
            std::fs::create_dir_all(&folder).map_err(Failure::file("making", &folder))?;
        }
        let write = |name: &str, text: String| {
            let file = directory.join(name);
            std::fs::write(&file, text).map_err(Failure::file("writing", &file))
        };
        write("strongswan.conf", daemon_settings())?;
        write("etc/swanctl.conf", connections(host, tunnels))?;
        let process = Running::start(command(host, &directory), &directory.join("log"))?;
        let swan = Swan { namespace: host.namespace.clone(), directory, process };
        process::until(&format!("strongSwan on {}", host.name), READY_LIMIT, || Ok(swan.ask(&["--stats"]).is_ok()))?;
        swan.ask(&["--load-all"])?;
        Ok(swan)
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Gives its sockets room for so many bytes. It has no setting for that, and what the kernel gives is full within milliseconds
    /// when it computes a key.
    ///
    /// # Errors
    /// It has ended, or the kernel refuses.
    pub fn widen_sockets(&self, bytes: usize) -> Result<(), Failure> {
        let doing = || "widening the sockets of strongSwan".to_owned();
        let failed = |source: Errno| Failure::Io { doing: doing(), source: source.into() };
        let pid = i32::try_from(self.id()).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH).map_err(failed)?;
        let strongswan = pidfd_open(pid, PidfdFlags::empty()).map_err(failed)?;
        for entry in std::fs::read_dir(format!("/proc/{}/fd", self.id())).map_err(Failure::io(doing()))?.flatten() {
            let number = entry.file_name().to_string_lossy().parse().ok();
            let is_socket = entry.path().read_link().is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
            if let Some(number) = number.filter(|_| is_socket) {
                let socket = pidfd_getfd(&strongswan, number, PidfdGetfdFlags::empty()).map_err(failed)?;
                set_socket_recv_buffer_size_force(&socket, bytes).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Opens the tunnel to `peer`, however often it takes.
    ///
    /// # Errors
    /// It is not open within `limit`.
    pub fn initiate(&self, peer: &Host, limit: Duration) -> Result<(), Failure> {
        process::until("the tunnel", limit, || Ok(self.initiate_once(peer, limit).is_ok()))
    }

    /// Asks once for the tunnel to `peer`; its daemon repeats what is not answered.
    ///
    /// # Errors
    /// It is not open within `limit`, in whole seconds.
    pub fn initiate_once(&self, peer: &Host, limit: Duration) -> Result<(), Failure> {
        let (child, limit) = (format!("tunnel-{}", peer.name), limit.as_secs().to_string());
        self.ask(&["--initiate", "--child", &child, "--timeout", &limit]).map(drop)
    }

    /// Forgets the tunnel to `peer`, which need not hear of it.
    ///
    /// # Errors
    /// There is none.
    pub fn terminate(&self, peer: &Host) -> Result<(), Failure> {
        let pair = format!("pair-{}", peer.name);
        self.ask(&["--terminate", "--ike", &pair, "--force", "--timeout", "1"]).map(drop)
    }

    /// Whether it has given this SPI out or been given it.
    ///
    /// # Errors
    /// It does not answer.
    pub fn knows_spi(&self, spi: u32) -> Result<bool, Failure> {
        Ok(self.ask(&["--list-sas", "--raw"])?.contains(&format!("spi-in={spi:08x}")))
    }

    /// What it has written.
    #[must_use]
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

fn connections(host: &Host, tunnels: &[Tunnel<'_>]) -> String {
    let each =
        |part: fn(&Host, &Tunnel<'_>) -> String| tunnels.iter().map(|tunnel| part(host, tunnel)).collect::<String>();
    format!("connections {{\n{}}}\nsecrets {{\n{}}}\n", each(connection), each(secret))
}

fn connection(host: &Host, Tunnel { peer, outer, rekey }: &Tunnel<'_>) -> String {
    let rekey = rekey.map_or("rekey_time = 0".to_owned(), |time| {
        format!("rekey_time = {0}s\n life_time = {1}s\n rand_time = 0", time.as_secs(), time.as_secs() * 4)
    });
    format!(
        " pair-{3} {{\n version = 2\n local_addrs = {0}\n remote_addrs = {1}\n encap = yes\n mobike = no\n unique = replace\n \
         proposals = aes256-sha256-x25519\n local {{\n auth = psk\n id = {2}\n }}\n remote {{\n auth = psk\n id = {3}\n }}\n \
         children {{\n tunnel-{3} {{\n mode = tunnel\n local_ts = {4}/32\n remote_ts = {5}/32\n \
         esp_proposals = aes256gcm16\n {rekey}\n }}\n }}\n }}\n",
        outer[0],
        outer[1],
        host.name,
        peer.name,
        inner_address(host),
        inner_address(peer),
    )
}

fn secret(host: &Host, Tunnel { peer, .. }: &Tunnel<'_>) -> String {
    format!(" ike-{1} {{\n id-1 = {0}\n id-2 = {1}\n secret = laboratory\n }}\n", host.name, peer.name)
}
