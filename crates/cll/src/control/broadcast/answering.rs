//! Who asks for our certificate and for what our clock shows: the answer is announced under a signature.
//!
//! A question costs us a signature at most, often shared with other questions, and only within
//! budgets. The tag shows that the asker has the site key. The asker's time in it keeps recordings
//! from the budget of live questions.

use bump::{DropReason, Fate};
use wire::cll::Question;
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use super::super::core::Call;
use super::super::machines::Machines;

impl Machines {
    /// A question from the wire.
    pub(super) fn question(&mut self, call: &mut Call<'_>, header: &Header, frame: &[u8]) -> Result<Fate, DropReason> {
        let now = call.now.since_boot;
        let question = Question::parse(&frame[ETHERNET_LEN..]).map_err(|_| DropReason::Malformed)?;
        if header.destination != call.core.settings.mac {
            return Err(DropReason::NotForUs);
        }
        self.check_group_tag(call, frame)?;
        let is_proved = call.is_proved(header.source);
        let may_ask = self.broadcasts.answer_budget.take(now, header.source, is_proved, question.time_ms)
            && self.queue_answer(header.source, question.nonce);
        if !may_ask {
            return Err(DropReason::GroupBudget);
        }
        self.sign_next(call);
        Ok(Fate::Answered)
    }
}
