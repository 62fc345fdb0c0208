//! Capture files as ports: pcap and pcapng, read and written as a stream, so that a pipe serves as well as a file.
//!
//! A captured frame carries no metadata: its checksum may be right, wrong, or only begun because the capture was taken
//! on the sending host.

mod link;
mod notes;
mod reader;
mod refusal;
mod source;
mod unpack;
mod wireless;
mod writer;

use std::fmt;

pub use notes::Note;
pub use reader::{CaptureReader, LeftOut};
pub use unpack::{Counted, unpacked};
pub use writer::{CaptureWriter, Format};

/// Link type of Ethernet, in either format.
const ETHERNET: u16 = 1;

/// Why a capture could not be read.
#[derive(Debug)]
pub enum CaptureError {
    /// It is neither pcap nor pcapng.
    NotACapture,
    /// It has not a single byte.
    Empty,
    /// It is compressed in a way that is not read here, and this program takes it apart.
    Compressed(&'static str),
    /// It ends in the middle of a frame.
    Truncated,
    /// A block in it is malformed or longer than anything this program writes.
    Malformed,
    /// Reading failed.
    Read(std::io::Error),
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureError::NotACapture => write!(f, "neither pcap nor pcapng; convert it with editcap -F pcapng"),
            CaptureError::Empty => write!(f, "it is empty: whoever wrote it wrote nothing"),
            CaptureError::Compressed(tool) => {
                write!(f, "it is compressed; {tool} FILE | ringwall gate replay --read -")
            }
            CaptureError::Truncated => write!(f, "the capture ends in the middle of a frame; repair it with pcapfix"),
            CaptureError::Malformed => write!(f, "the capture has a malformed block; repair it with pcapfix"),
            CaptureError::Read(error) => write!(f, "cannot read the capture: {error}"),
        }
    }
}

impl std::error::Error for CaptureError {}

impl From<CaptureError> for std::io::Error {
    fn from(error: CaptureError) -> std::io::Error {
        match error {
            CaptureError::Read(error) => error,
            other => std::io::Error::new(std::io::ErrorKind::InvalidData, other),
        }
    }
}

#[cfg(test)]
mod tests;
