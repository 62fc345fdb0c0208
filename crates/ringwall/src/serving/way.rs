//! Lines of JSON between a door and the process behind it.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// How long the other side may take; either forever where it says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// With a line that is waited for.
    pub(crate) say: Option<Duration>,
    /// With reading what is said to it.
    pub(crate) hear: Duration,
}

/// The way to the other process.
pub(crate) struct Way {
    stream: BufReader<UnixStream>,
    line_bytes_max: u64,
    /// What came of a line that is not whole yet.
    begun: Vec<u8>,
    /// A question was begun and its answer did not come: what comes would be that of another.
    is_lost: bool,
}

impl Way {
    /// # Errors
    /// The stream takes no limits.
    pub(crate) fn new(stream: UnixStream, patience: Patience, line_bytes_max: u64) -> io::Result<Way> {
        stream.set_read_timeout(patience.say)?;
        stream.set_write_timeout(Some(patience.hear))?;
        Ok(Way { stream: BufReader::new(stream), line_bytes_max, begun: Vec::new(), is_lost: false })
    }

    /// The socket, to see when the other side is gone.
    pub(crate) fn socket(&self) -> io::Result<UnixStream> {
        self.stream.get_ref().try_clone()
    }

    /// The next line, without its end. What came of a line in time is kept for the next call.
    ///
    /// # Errors
    /// The other side is gone, says nothing in time, or says too much.
    pub(crate) fn line(&mut self) -> io::Result<Vec<u8>> {
        let room = self.line_bytes_max.saturating_sub(self.begun.len() as u64);
        self.stream.by_ref().take(room).read_until(b'\n', &mut self.begun)?;
        let mut line = std::mem::take(&mut self.begun);
        if line.pop() == Some(b'\n') { Ok(line) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    /// What the next line says.
    ///
    /// # Errors
    /// As [`Way::line`], or it says something else.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        Ok(serde_json::from_slice(&self.line()?)?)
    }

    /// Says this, and waits for no answer.
    ///
    /// # Errors
    /// The other side is gone, or does not read. Nothing is said to it after that.
    pub(crate) fn say(&mut self, what: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        self.send(&line)
    }

    /// As [`Way::say`], with bytes as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_lost {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let sent = self.stream.get_ref().write_all(bytes);
        self.is_lost = sent.is_err();
        sent
    }

    /// The answer to this question.
    ///
    /// # Errors
    /// As [`Way::say`] and [`Way::receive`]; nothing is asked after that.
    pub(crate) fn ask<T: DeserializeOwned>(&mut self, question: &impl Serialize) -> io::Result<T> {
        self.say(question)?;
        let answer = self.receive();
        self.is_lost = answer.is_err();
        answer
    }

    /// What `heard` makes of each answer to these questions, in their order. All are put before the
    /// first answer is read, and the other side looks for the next one meanwhile. So they have to be
    /// few and short.
    ///
    /// # Errors
    /// As [`Way::ask`].
    pub(crate) fn ask_all<T: DeserializeOwned, U>(
        &mut self,
        questions: &[impl Serialize],
        mut heard: impl FnMut(T) -> U,
    ) -> io::Result<Vec<U>> {
        let said = questions.iter().try_for_each(|question| self.say(question));
        let answers = said.and_then(|()| questions.iter().map(|_| self.receive().map(&mut heard)).collect());
        self.is_lost = answers.is_err();
        answers
    }

    /// Whether nothing can be asked any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Short enough for a test, which says nothing of how long it takes.
    const SHORT: Duration = Duration::from_millis(20);

    fn way(say: Option<Duration>) -> (Way, UnixStream) {
        let (near, far) = UnixStream::pair().expect("a pair");
        (Way::new(near, Patience { say, hear: SHORT }, 100).expect("a way"), far)
    }

    #[test]
    fn an_answer_that_comes_too_late_is_not_taken_for_that_of_another_question() {
        let (mut way, mut far) = way(Some(SHORT));
        assert!(way.ask::<String>(&"one").is_err());
        far.write_all(b"\"of one\"\n").expect("sent");
        assert!(way.is_lost() && way.ask::<String>(&"two").is_err());
    }

    #[test]
    fn questions_that_are_put_together_are_answered_in_their_order_or_nothing_is_asked_any_more() {
        let (mut way, mut far) = way(Some(SHORT));
        far.write_all(b"\"one\"\n\"two\"\n\"late").expect("sent");
        let heard = way.ask_all(&["1?", "2?"], |answer: String| answer.len());
        assert_eq!(heard.ok(), Some(vec![3, 3]));
        let mut asked = [0; 10];
        far.read_exact(&mut asked).expect("both questions");
        assert_eq!(&asked, b"\"1?\"\n\"2?\"\n");
        assert!(way.ask_all(&["3?"], |answer: String| answer).is_err() && way.is_lost());
        assert!(way.ask_all::<String, _>(&["4?"], |answer| answer).is_err());
    }

    #[test]
    fn a_line_in_pieces_is_one_and_one_without_end_is_none() {
        let (mut way, mut far) = way(Some(SHORT));
        far.write_all(b"\"a").expect("sent");
        assert!(way.line().is_err(), "not whole yet");
        far.write_all(b"b\"\n").expect("sent");
        assert_eq!(way.receive::<String>().ok().as_deref(), Some("ab"));
        far.write_all(&[b'a'; 101]).expect("sent");
        assert!(way.line().is_err());
    }

    /// A process that hangs was waited for without end, by one that holds the keys or root.
    #[test]
    fn who_does_not_read_is_waited_for_no_longer_than_it_may_take() {
        let (mut way, _far) = way(None);
        let full = (0..10_000).find_map(|_| way.say(&"a".repeat(10_000)).err());
        let kind = full.map(|error| error.kind());
        assert!(matches!(kind, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{kind:?}");
        assert!(way.is_lost());
    }
}
