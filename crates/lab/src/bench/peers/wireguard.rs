//! wireguard-go: layer 3, ChaCha20-Poly1305, UDP with segmentation offloads.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::tools::{Tools, version_line};
use super::{End, Peer};
use crate::failure::Failure;
use crate::net::{Running, process};

/// Where the newest version comes from.
const MODULE: &str = "golang.zx2c4.com/wireguard";
/// Where the program puts its configuration sockets.
const SOCKETS: &str = "/var/run/wireguard";
/// UDP port of both ends.
const PORT: u16 = 51820;
/// How long it may take to open its configuration socket or to answer on it.
const SOCKET_LIMIT: Duration = Duration::from_secs(5);
/// Length of an X25519 key, which ends both DER forms of it (RFC 8410).
const KEY_LEN: usize = 32;

/// The user-space implementation by WireGuard's authors.
pub struct WireguardGo;

impl WireguardGo {
    fn program(tools: &Tools<'_>) -> PathBuf {
        tools.cached("go-bin/wireguard")
    }

    fn socket(&self, end: &End) -> PathBuf {
        PathBuf::from(format!("{SOCKETS}/{}.sock", self.interface(end)))
    }
}

impl Peer for WireguardGo {
    fn name(&self) -> &'static str {
        "wireguard-go"
    }

    fn version(&self, tools: &Tools<'_>) -> Result<String, Failure> {
        let program = WireguardGo::program(tools);
        let go = tools.go();
        if !program.is_file() {
            let go = go.ok_or_else(|| Failure::MissingTool("go".to_owned()))?;
            let mut install = Command::new(go);
            install.args(["install", &format!("{MODULE}@latest")]).env("GOBIN", tools.cached("go-bin"));
            tools.fetch(install)?;
        }
        // The program's own number lags behind the module's.
        let Some(go) = go else { return version_line(&program) };
        let mut list = Command::new(go);
        list.args(["version", "-m"]).arg(&program);
        let listing = process::must(list)?;
        let module = listing.lines().find_map(|line| line.trim().strip_prefix("mod\t")?.split('\t').nth(1));
        module.map(str::to_owned).ok_or_else(|| Failure::Unreadable("go version -m".to_owned()))
    }

    fn mtu(&self) -> u16 {
        1420
    }

    /// Its socket's name holds the interface's, machine-wide; so the interface's holds this process's.
    fn interface(&self, end: &End) -> String {
        format!("wg{}{}", std::process::id(), end.host.name)
    }

    fn start(&self, tools: &Tools<'_>, ends: &[End; 2]) -> Result<[Running; 2], Failure> {
        std::fs::create_dir_all(SOCKETS).map_err(Failure::io(format!("making {SOCKETS}")))?;
        let program = WireguardGo::program(tools);
        let keys = [KeyPair::make(&ends[0])?, KeyPair::make(&ends[1])?];
        let start = |own: usize, other: usize| {
            let mut running = ends[own].start(&program, &["-f", &self.interface(&ends[own])])?;
            let socket = self.socket(&ends[own]);
            process::until("wireguard-go's socket", SOCKET_LIMIT, || {
                running.ensure_alive()?;
                Ok(socket.exists())
            })?;
            configure(&socket, &settings(&keys[own], &keys[other], &ends[other]))?;
            Ok(running)
        };
        Ok([start(0, 1)?, start(1, 0)?])
    }
}

/// Keys of one end, in the hexadecimal form of the configuration protocol.
struct KeyPair {
    private: String,
    public: String,
}

impl KeyPair {
    fn make(end: &End) -> Result<KeyPair, Failure> {
        let (private, public) = (end.directory.join("private.der"), end.directory.join("public.der"));
        let mut generate = Command::new("openssl");
        generate.args(["genpkey", "-algorithm", "X25519", "-outform", "DER", "-out"]).arg(&private);
        process::must(generate)?;
        let mut derive = Command::new("openssl");
        derive.args(["pkey", "-inform", "DER", "-pubout", "-outform", "DER", "-in"]).arg(&private);
        derive.arg("-out").arg(&public);
        process::must(derive)?;
        let read = |path: &PathBuf| {
            let bytes = std::fs::read(path).map_err(Failure::file("reading", path))?;
            hexadecimal_tail(&bytes).ok_or_else(|| Failure::Unreadable(format!("{}", path.display())))
        };
        Ok(KeyPair { private: read(&private)?, public: read(&public)? })
    }
}

fn hexadecimal_tail(bytes: &[u8]) -> Option<String> {
    let key = bytes.last_chunk::<KEY_LEN>()?;
    Some(key.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _written = write!(text, "{byte:02x}");
        text
    }))
}

fn settings(own: &KeyPair, other: &KeyPair, end: &End) -> String {
    let (private, public) = (&own.private, &other.public);
    let (endpoint, inner) = (end.host.ip, end.inner);
    format!(
        "set=1\nprivate_key={private}\nlisten_port={PORT}\npublic_key={public}\nendpoint={endpoint}:{PORT}\n\
         allowed_ip={inner}/32\n\n"
    )
}

fn configure(socket: &PathBuf, text: &str) -> Result<(), Failure> {
    let failed = || Failure::file("configuring", socket);
    let mut stream = UnixStream::connect(socket).map_err(failed())?;
    stream.set_read_timeout(Some(SOCKET_LIMIT)).map_err(failed())?;
    stream.write_all(text.as_bytes()).map_err(failed())?;
    let mut answer = [0; 64];
    let len = stream.read(&mut answer).map_err(failed())?;
    match answer[..len].starts_with(b"errno=0\n") {
        true => Ok(()),
        false => Err(Failure::Unreadable(String::from_utf8_lossy(&answer[..len]).into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_tail_of_its_encoding() {
        let mut der = vec![0x30, 0x2e];
        der.extend([0xab; KEY_LEN]);
        assert_eq!(hexadecimal_tail(&der), Some("ab".repeat(KEY_LEN)));
        assert_eq!(hexadecimal_tail(&[1, 2, 3]), None);
    }
}
