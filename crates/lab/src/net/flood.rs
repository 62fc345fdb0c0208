//! A flood of forged frames, handed to an interface as a card hands up what came by wire.
//!
//! A program in the kernel makes it (`bpf/flood.c`), because with a packet socket the way to the wire costs an attacker more than the
//! same frame costs its victim, and the two share a machine here; or a packet socket does, as attackers have one. It runs in a process
//! of its own, which a signal ends.
//!
//! Trusts: that it runs as root, and that the interface is one end of a veth pair in a namespace that the lab has made.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bump::Generator;
use rustix::process::Signal;
use siphasher::sip::SipHasher24;
use system::bpf::{Instruction, Keys, Kind, Map, Program, Shape};
use system::port::Sender;

use super::{Frame, Namespace, Running, link, pcap};
use crate::failure::Failure;

/// The instructions, made of `bpf/flood.c`.
const PROGRAM: &[u8] = include_bytes!("../../bpf/flood.bpf");
/// Frames that the program sends together.
const HANDFUL: f64 = 16.0;
/// Frames of a call by a packet socket.
const HANDFUL_OF_SOCKET: usize = 64;
/// Bytes of the program's settings.
const SETTINGS_LEN: usize = 32 + HINT_KEY_LEN + 8;
/// Bytes of the key of hints.
const HINT_KEY_LEN: usize = 16;
/// Bytes of a tag, and of what its hint follows from.
const TAG_LEN: usize = 16;
const HINT_AT: usize = 12;
/// Most bytes of a frame, and of the frame with its length in front.
const FRAME_MAX: usize = 2047;
const ENTRY_LEN: usize = 4 + FRAME_MAX + 1;
/// Most frames that follow one another before they repeat themselves.
pub const FRAMES_MAX: usize = 1 << 15;
/// What the process says when it is about to begin.
const READY: &str = "ready";
const READY_LIMIT: Duration = Duration::from_secs(30);
/// Steps of the attacker's scheduling class by which it stands behind everybody else.
const NICENESS: &str = "19";

/// How fast frames are wanted, and with it who makes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// So many a second, by the kernel.
    PerSecond(f64),
    /// As fast as a program can with a packet socket.
    OfSocket,
    /// As fast as the kernel itself can.
    OfKernel,
}

/// What a flood sends, over and over.
#[derive(Clone, Debug)]
pub struct Forged {
    /// The frames, one after the other.
    pub frames: Vec<Vec<u8>>,
    /// Where each of them, each time, gets another tag under the site key.
    pub new_tags: Option<NewTags>,
}

/// Tags of somebody who has the site key and does not repeat himself. They are made up but for their hints, which is all that is looked
/// at before the whole message is hashed.
#[derive(Clone, Debug)]
pub struct NewTags {
    /// Where in the frame they stand.
    pub at: usize,
    /// What their hints are made with.
    pub hint_key: [u8; HINT_KEY_LEN],
}

impl From<Vec<Vec<u8>>> for Forged {
    fn from(frames: Vec<Vec<u8>>) -> Forged {
        Forged { frames, new_tags: None }
    }
}

/// A flood that goes on.
#[derive(Debug)]
pub struct Flood {
    process: Running,
}

impl Flood {
    /// Sends what is `forged` over and over out by `interface` of `namespace`, on processor `core` when nobody else wants it. Files go to
    /// `directory`.
    ///
    /// # Errors
    /// The kernel cannot, or a frame is too long.
    pub fn start(
        (namespace, interface): (&Namespace, &str),
        forged: Forged,
        rate: Rate,
        core: usize,
        directory: &Path,
    ) -> Result<Flood, Failure> {
        let capture = directory.join("flood.pcap");
        pcap::write(&capture, &forged.frames.into_iter().map(Frame).collect::<Vec<_>>())?;
        let mut command = namespace.command("taskset");
        command.args(["-c", &core.to_string(), "nice", "-n", NICENESS]);
        command.arg(std::env::current_exe().map_err(Failure::io("finding this program"))?);
        command.args(["flood", "--interface", interface, "--frames"]).arg(&capture);
        match rate {
            Rate::PerSecond(rate) => drop(command.args(["--per-second", &rate.to_string()])),
            Rate::OfSocket => drop(command.arg("--by-socket")),
            Rate::OfKernel => {}
        }
        if let Some(NewTags { at, hint_key }) = forged.new_tags {
            let key = directory.join("flood.key");
            keep(&key, &hint_key).map_err(Failure::file("writing", &key))?;
            command.args(["--new-tags-at", &at.to_string(), "--hint-key"]).arg(key);
        }
        let mut process = Running::start(command, &directory.join("flood.log"))?;
        process.await_output(READY, READY_LIMIT)?;
        Ok(Flood { process })
    }

    /// The process that makes it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ends it.
    ///
    /// # Errors
    /// It had ended before.
    pub fn stop(mut self) -> Result<(), Failure> {
        self.process.ensure_alive()?;
        self.process.stop(Signal::KILL);
        Ok(())
    }
}

/// Writes a key that only its owner may read.
fn keep(file: &Path, key: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file)?.write_all(key)
}

/// What the process is told.
#[derive(Clone, Debug, clap::Args)]
pub struct FloodArgs {
    /// Where the frames leave: the near end of a veth pair, whose other end receives them
    #[arg(long, value_name = "INTERFACE")]
    interface: String,
    /// A capture of the frames
    #[arg(long, value_name = "FILE")]
    frames: PathBuf,
    /// How many a second; as fast as it goes if not said
    #[arg(long, value_name = "NUMBER")]
    per_second: Option<f64>,
    /// Sends them by a packet socket, as fast as it goes, instead of having the kernel make them
    #[arg(long, conflicts_with = "per_second")]
    by_socket: bool,
    /// Where each frame gets a new tag of its site each time, counted from its first byte
    #[arg(long, value_name = "BYTES", requires = "hint_key")]
    new_tags_at: Option<usize>,
    /// What the ends of these tags are made with, 16 bytes
    #[arg(long, value_name = "FILE", requires = "new_tags_at")]
    hint_key: Option<PathBuf>,
}

impl FloodArgs {
    fn new_tags(&self) -> Result<Option<NewTags>, Failure> {
        let (Some(at), Some(file)) = (self.new_tags_at, &self.hint_key) else { return Ok(None) };
        let bytes = fs::read(file).map_err(Failure::file("reading", file))?;
        let no_key = |_| Failure::Usage(format!("{}: not a key of {HINT_KEY_LEN} bytes", file.display()));
        Ok(Some(NewTags { at, hint_key: bytes.try_into().map_err(no_key)? }))
    }
}

impl NewTags {
    /// Puts another tag into a frame that is long enough for one.
    fn renew(&self, Frame(bytes): &mut Frame, random: &mut Generator) {
        let Some(tag) = bytes.get_mut(self.at..self.at + TAG_LEN) else { return };
        tag[..HINT_AT].copy_from_slice(&random.bytes::<HINT_AT>());
        let hint = SipHasher24::new_with_key(&self.hint_key).hash(&tag[..HINT_AT]) as u32;
        tag[HINT_AT..].copy_from_slice(&hint.to_be_bytes());
    }
}

/// Floods an interface of this namespace until a signal ends it.
///
/// # Errors
/// This is the machine's own namespace, there is nothing to send, or the kernel refuses.
pub fn run(args: &FloodArgs) -> Result<ExitCode, Failure> {
    refuse_outside_of_the_lab()?;
    let frames = pcap::read(&args.frames)?;
    if frames.is_empty() || frames.len() > FRAMES_MAX {
        return Err(Failure::Usage(format!("{} frames to flood with; 1 to {FRAMES_MAX}", frames.len())));
    }
    let new_tags = args.new_tags()?;
    if args.by_socket {
        return by_socket(&args.interface, frames, new_tags.as_ref());
    }
    by_kernel(args, &frames, new_tags.as_ref())
}

/// Has the kernel flood for ever.
fn by_kernel(args: &FloodArgs, frames: &[Frame], new_tags: Option<&NewTags>) -> Result<ExitCode, Failure> {
    let longest = frames.iter().map(|frame| frame.0.len()).max().unwrap_or(0);
    let program =
        load(&settings(args, frames, new_tags)?, frames).map_err(Failure::io("loading the flood's program"))?;
    say_ready()?;
    loop {
        let ran = program.run_live(&vec![0; longest], u32::MAX);
        ran.map_err(Failure::io(format!("flooding {}", args.interface)))?;
    }
}

/// Floods for ever by a packet socket. What a full card refuses is tried again with the next call.
fn by_socket(interface: &str, mut frames: Vec<Frame>, new_tags: Option<&NewTags>) -> Result<ExitCode, Failure> {
    let mut port = link::open_to_send(interface)?;
    let mut random = Generator::from_seed([7; 32]);
    say_ready()?;
    loop {
        for handful in frames.chunks_mut(HANDFUL_OF_SOCKET) {
            for frame in handful {
                new_tags.iter().for_each(|tags| tags.renew(frame, &mut random));
                link::put(&mut port, frame);
            }
            port.sender.flush();
        }
    }
}

fn say_ready() -> Result<(), Failure> {
    writeln!(io::stdout(), "{READY}").map_err(Failure::io("writing to standard output"))
}

/// Nobody floods a real network with this: the lab, which starts it, is in the machine's own namespace.
fn refuse_outside_of_the_lab() -> Result<(), Failure> {
    let namespace = |process: u32| {
        let path = PathBuf::from(format!("/proc/{process}/ns/net"));
        fs::read_link(&path).map_err(Failure::file("reading", &path))
    };
    if namespace(std::process::id())? == namespace(parent_id())? {
        return Err(Failure::Usage("floods are for namespaces that the lab has made".to_owned()));
    }
    Ok(())
}

/// As `struct settings` of the program.
fn settings(args: &FloodArgs, frames: &[Frame], new_tags: Option<&NewTags>) -> Result<[u8; SETTINGS_LEN], Failure> {
    let interval_ns = match args.per_second {
        None => 0,
        Some(rate) if rate >= 1.0 => (HANDFUL * 1e9 / rate) as u64,
        Some(rate) => return Err(Failure::Usage(format!("{rate} frames a second; at least 1"))),
    };
    let mut settings = [0; SETTINGS_LEN];
    settings[..8].copy_from_slice(&interval_ns.to_ne_bytes());
    settings[24..28].copy_from_slice(&link::index_of(&args.interface)?.to_ne_bytes());
    settings[28..32].copy_from_slice(&(frames.len() as u32).to_ne_bytes());
    if let Some(tags) = new_tags {
        settings[32..48].copy_from_slice(&tags.hint_key);
        settings[48..].copy_from_slice(&(tags.at as u64).to_ne_bytes());
    }
    Ok(settings)
}

fn load(settings: &[u8], frames: &[Frame]) -> io::Result<Program> {
    let shape = |value_len, entries| Shape { keys: Keys::Places, shared: false, key_len: 4, value_len, entries };
    let maps = [Map::create(shape(SETTINGS_LEN, 1))?, Map::create(shape(ENTRY_LEN, frames.len() as u32))?];
    maps[0].put(&0_u32.to_ne_bytes(), settings)?;
    for (place, Frame(bytes)) in (0_u32..).zip(frames) {
        let mut entry = [0; ENTRY_LEN];
        let room = entry[4..4 + FRAME_MAX].get_mut(..bytes.len()).ok_or(io::ErrorKind::InvalidInput)?;
        room.copy_from_slice(bytes);
        entry[..4].copy_from_slice(&(bytes.len() as u32).to_ne_bytes());
        maps[1].put(&place.to_ne_bytes(), &entry)?;
    }
    Program::load(Kind::Xdp, "flood", &Instruction::read(PROGRAM), &maps)
}

#[cfg(test)]
mod tests {
    use identity::site_key::SiteKey;

    use super::*;

    #[test]
    fn a_renewed_tag_has_the_right_hint_and_is_another_each_time() {
        let key = SiteKey::from_bytes([3; 32]);
        let tags = NewTags { at: 2, hint_key: *key.hint_key() };
        let (mut frame, mut random) = (Frame(vec![9; 40]), Generator::from_seed([7; 32]));
        let mut renewed = || {
            tags.renew(&mut frame, &mut random);
            assert_eq!((&frame.0[..2], &frame.0[18..]), (&[9; 2][..], &[9; 22][..]), "nothing else changes");
            <[u8; TAG_LEN]>::try_from(&frame.0[2..18]).expect("a tag")
        };
        let (first, second) = (renewed(), renewed());
        assert!(key.fits_hint(&first) && key.fits_hint(&second) && first != second);
        tags.renew(&mut Frame(vec![9; 17]), &mut random);
    }
}
