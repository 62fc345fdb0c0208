//! Frames of the stack to a group: control signs them, so they leave the lane as the plain frames they stand for.

use bump::{DropReason, Fate, Frame, Meta, Now, Side};
use wire::offload::complete_checksum;

use super::outbound::{Cutting, write_piece};
use super::{Lane, Outputs};
use crate::message::Request;

impl Lane {
    /// Hands a frame of the stack to control, a super-frame in pieces, each of which has its own fate from then on.
    pub(super) fn send_to_group(&mut self, now: Now, frame: &mut Frame<'_>, out: &mut Outputs<'_>) -> Option<Fate> {
        let pieces = match pieces(frame) {
            Ok(pieces) => pieces,
            Err(reason) => return Some(Fate::Dropped(reason)),
        };
        for (number, piece) in pieces.into_iter().enumerate() {
            if number > 0 {
                self.ledger.receive(Side::STACK);
            }
            if let Some(fate) = out.ask_control(Request::StackGroup(piece)) {
                self.ledger.settle(now.since_boot, Side::STACK, fate, frame.bytes);
            }
        }
        None
    }
}

/// The frames for which `frame` stands, with complete checksums: in a group frame no flag says that one is not.
fn pieces(frame: &mut Frame<'_>) -> Result<Vec<Vec<u8>>, DropReason> {
    let plan = match Cutting::of(frame)? {
        Cutting::Whole { checksum_partial } => {
            if checksum_partial && let Some((start, offset)) = wire::layer::transport_checksum(frame.bytes) {
                complete_checksum(frame.bytes, start, offset).map_err(|_| DropReason::BadSuperFrame)?;
            }
            frame.meta = Meta::plain();
            return Ok(vec![frame.bytes.to_vec()]);
        }
        Cutting::Pieces(plan) | Cutting::CompletedPieces(plan) => plan,
    };
    let piece = |index| {
        let mut piece = vec![0; plan.segment_len(index)];
        write_piece(&plan, frame.bytes, index, true, &mut piece).then_some(piece).ok_or(DropReason::BadSuperFrame)
    };
    (0..plan.segments()).map(piece).collect()
}
