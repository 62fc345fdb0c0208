//! Receivers that are programs of their own, because they are written in other languages: `crates/lab/stacks/`.
//!
//! Records go both ways: a letter, a length of two bytes (the higher first), and as many bytes. To the program: `F`, a frame;
//! `R`, what was read?; `N`, begin anew. It answers each with any number of records and then `D`, done: `F`, a frame that it
//! sends; `U`, a datagram that its application read; `S`, the stream that it read.

use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::cleanup;
use crate::failure::Failure;
use crate::receivers::neighbour::{self, Said};
use crate::receivers::{Carrier, Reading, Receiver};

/// The programs, by their names in the table, which are their files' names too.
pub(super) const NAMES: [&str; 2] = ["gvisor", "lwip"];

/// A running program. It ends when its pipe does.
pub(super) struct Program {
    name: &'static str,
    child: Child,
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
    datagrams: Vec<Vec<u8>>,
    stream: Vec<u8>,
}

impl Program {
    /// Starts the program `name` of the directory `programs`.
    pub(super) fn start(name: &'static str, programs: &Path) -> Result<Program, Failure> {
        let file = programs.join(name);
        if !file.is_file() {
            let said = format!("there is no program {}: packaging/receivers.sh builds it", file.display());
            return Err(Failure::Usage(said));
        }
        let _permit = cleanup::permit()?;
        let mut command = Command::new(&file);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(Failure::file("starting", &file))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::Unreadable(format!("{name}: no pipe")));
        };
        let (to, from) = (BufWriter::new(to), BufReader::new(from));
        Ok(Program { name, child, to, from, datagrams: Vec::new(), stream: Vec::new() })
    }

    /// Sends a record and takes in what comes back; the frames are for the caller.
    fn ask(&mut self, letter: u8, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        let exchange = self.write(letter, bytes).and_then(|()| self.answers());
        exchange.map_err(Failure::io(format!("speaking with {}", self.name)))
    }

    fn write(&mut self, letter: u8, bytes: &[u8]) -> std::io::Result<()> {
        self.to.write_all(&[letter])?;
        self.to.write_all(&(bytes.len() as u16).to_be_bytes())?;
        self.to.write_all(bytes)?;
        self.to.flush()
    }

    fn answers(&mut self) -> std::io::Result<Vec<Vec<u8>>> {
        let mut frames = Vec::new();
        loop {
            let mut head = [0; 3];
            self.from.read_exact(&mut head)?;
            let mut bytes = vec![0; u16::from_be_bytes([head[1], head[2]]).into()];
            self.from.read_exact(&mut bytes)?;
            match head[0] {
                b'F' => frames.push(bytes),
                b'U' => self.datagrams.push(bytes),
                b'S' => self.stream = bytes,
                _ => return Ok(frames),
            }
        }
    }
}

impl Receiver for Program {
    fn name(&self) -> &str {
        self.name
    }

    fn cannot(&self, _carrier: Carrier) -> Option<&'static str> {
        None
    }

    fn begin_anew(&mut self) -> Result<(), Failure> {
        // What it still says of the last case nobody hears, but where it asks for its neighbour it would wait for the answer.
        for frame in self.ask(b'N', &[])? {
            if let Said::Question(answer) = neighbour::judge(&frame) {
                self.ask(b'F', &answer)?;
            }
        }
        self.datagrams.clear();
        Ok(())
    }

    fn take(&mut self, frame: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        self.ask(b'F', frame)
    }

    fn read(&mut self) -> Result<Reading, Failure> {
        self.ask(b'R', &[])?;
        Ok(Reading { stream: self.stream.clone(), datagrams: self.datagrams.clone() })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
