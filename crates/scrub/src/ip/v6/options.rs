//! Options for every hop and for the destination (RFC 8200, section 4.2).
//!
//! A host skips an option that it does not know, or drops the packet, as the two high bits of the option's kind say. No
//! option is known to all hosts but padding and MLD's router alert, so a header is written again with that alone, or not at
//! all. Replacing options by padding in place would not do: hosts drop packets with more than seven bytes of padding.

use bump::DropReason;

use crate::context::Context;
use crate::rule::Rule;

const PAD_ONE: u8 = 0;
pub(super) const HOP_BY_HOP: u8 = 0;

/// The bits that say what a host does that does not know the option.
const ACTION: u8 = 0xc0;
/// "Every router looks at this packet" (RFC 2711), in the form that MLD uses (RFC 3810, section 5).
const ROUTER_ALERT: [u8; 4] = [5, 2, 0, 0];
/// Two bytes of padding.
const PADDING: [u8; 2] = [1, 0];

/// The bytes of the options header `header` of `kind` as they leave, or `None` if that is as they came. Empty: it does not.
///
/// # Errors
/// Malformed options, and options for which a host drops the packet.
pub(crate) fn scrub(context: &mut Context<'_>, kind: u8, header: &[u8]) -> Result<Option<Vec<u8>>, DropReason> {
    if !context.on(Rule::Ipv6Options) {
        return Ok(None);
    }
    let Some(has_alert) = judge(&header[2..]) else {
        return Err(context.refused(Rule::Ipv6Options, DropReason::Ipv6Extensions));
    };
    let rewritten = if has_alert && kind == HOP_BY_HOP {
        [&[header[0], 0][..], &ROUTER_ALERT, &PADDING].concat()
    } else {
        Vec::new()
    };
    Ok(context.acts_if(rewritten != header, Rule::Ipv6Options).then_some(rewritten))
}

/// Whether there is a router alert among `options`; `None` where a host drops the packet.
fn judge(mut options: &[u8]) -> Option<bool> {
    let mut has_alert = false;
    while let [kind, rest @ ..] = options {
        if *kind == PAD_ONE {
            options = rest;
            continue;
        }
        let len = 2 + usize::from(*rest.first()?);
        let option = options.get(..len)?;
        if kind & ACTION != 0 {
            return None;
        }
        has_alert |= option == ROUTER_ALERT;
        options = &options[len..];
    }
    Some(has_alert)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_and_unknown_options_are_skipped_and_the_alert_is_found() {
        assert_eq!(judge(&[5, 2, 0, 0, 1, 0]), Some(true));
        assert_eq!(judge(&[0, 0, 0x1e, 2, 9, 9]), Some(false));
        assert_eq!(judge(&[5, 2, 0, 1, 0, 0]), Some(false));
        assert_eq!(judge(&[]), Some(false));
    }

    #[test]
    fn what_a_host_drops_is_refused() {
        for wrong in [&[0x40_u8, 0][..], &[0x80, 0], &[0xc2, 4, 0, 1, 0, 0], &[1], &[1, 3, 0, 0], &[0x1e, 255]] {
            assert_eq!(judge(wrong), None, "{wrong:?}");
        }
    }
}
