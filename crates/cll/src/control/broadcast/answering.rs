//! Who asks for our certificate and for what our clock shows: the answer is announced under a signature.
//!
//! A question costs us a signature at most, often shared with other questions, and only within budgets; who asks must have
//! the site key.

use bump::{DropReason, Fate};
use wire::cll::Question;
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use super::super::{Call, Control};

impl Control {
    /// A question from the wire.
    pub(super) fn question(&mut self, call: &mut Call<'_>, header: &Header, frame: &[u8]) -> Result<Fate, DropReason> {
        let now = call.now.since_boot;
        let question = Question::parse(&frame[ETHERNET_LEN..]).map_err(|_| DropReason::Malformed)?;
        if header.destination != self.settings.mac {
            return Err(DropReason::NotForUs);
        }
        self.check_group_tag(frame)?;
        let is_proved = self.is_proved(header.source);
        let may_ask = self.broadcasts.answer_budget_per_source.of(is_proved).take(now, header.source)
            && self.broadcasts.answer_budget.of(is_proved).take(now)
            && self.queue_answer(header.source, question.nonce);
        if !may_ask {
            return Err(DropReason::GroupBudget);
        }
        self.sign_next(call);
        Ok(Fate::Answered)
    }
}
