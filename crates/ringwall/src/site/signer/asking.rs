//! How the service puts a question to the signer.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::{ANSWER_BYTES_MAX, Answer, Question};

/// How long the signer may take, with those that asked before.
const TIME_MAX: Duration = Duration::from_secs(6);

/// Puts a question to the signer at `socket`. Who hears no answer asks again: nothing is granted
/// twice.
pub(crate) fn ask(socket: &Path, question: &Question) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIME_MAX))?;
    stream.set_write_timeout(Some(TIME_MAX))?;
    let mut line = serde_json::to_vec(question)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut line = Vec::new();
    BufReader::new(&stream).take(ANSWER_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}
