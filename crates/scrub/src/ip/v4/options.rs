//! Options of IPv4 (RFC 791, section 3.1).

use std::net::Ipv4Addr;

use bump::DropReason;

use super::Header;
use crate::context::Context;
use crate::ip::address::IGMP;
use crate::rule::Rule;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const LOOSE_SOURCE_ROUTE: u8 = 131;
const STRICT_SOURCE_ROUTE: u8 = 137;
/// Set in options that every fragment repeats.
const COPIED: u8 = 0x80;
/// "Every router looks at this packet" (RFC 2113), which IGMP asks for (RFC 3376, section 4).
const ROUTER_ALERT: [u8; 4] = [148, 4, 0, 0];

/// Takes the options out of `header`, but IGMP's router alert.
///
/// # Errors
/// Malformed options, which some hosts skip and others refuse, and source routes.
pub(crate) fn scrub(context: &mut Context<'_>, header: &mut Header) -> Result<(), DropReason> {
    if header.options.is_empty() || !context.on(Rule::Ipv4Options) {
        return Ok(());
    }
    let mut has_alert = false;
    for option in Walk(&header.options) {
        match option {
            Some([LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE, ..]) | None => {
                return Err(context.refused(Rule::Ipv4Options, DropReason::IpOptions));
            }
            Some(option) => has_alert |= option == ROUTER_ALERT,
        }
    }
    let keeps_alert = has_alert && header.protocol == IGMP;
    if context.acts_if(!keeps_alert || header.options != ROUTER_ALERT, Rule::Ipv4Options) {
        header.options.clear();
        header.options.extend_from_slice(if keeps_alert { &ROUTER_ALERT } else { &[] });
    }
    Ok(())
}

/// Those of `options` that every fragment repeats, padded to whole words.
pub(crate) fn copied(options: &[u8]) -> Vec<u8> {
    let copied = Walk(options).flatten().filter(|option| option[0] & COPIED != 0);
    let mut kept: Vec<u8> = copied.flatten().copied().collect();
    kept.resize(kept.len().next_multiple_of(4), END);
    kept
}

/// The last host of a source route that has not been followed to its end: who is to read the
/// packet, while the header names who forwards it next (RFC 791, section 3.1).
pub(crate) fn recipient(options: &[u8]) -> Option<Ipv4Addr> {
    let mut routes =
        Walk(options).flatten().filter(|option| matches!(option[0], LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE));
    let [_, len, pointer, addresses @ ..] = routes.next()? else { return None };
    let last = addresses.last_chunk::<4>().filter(|_| pointer <= len && addresses.len().is_multiple_of(4))?;
    Some(Ipv4Addr::from(*last))
}

/// The options up to their end, without single bytes; `None` for one whose length is wrong, which is the last.
struct Walk<'a>(&'a [u8]);

impl<'a> Iterator for Walk<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        while let [NO_OPERATION, rest @ ..] = self.0 {
            self.0 = rest;
        }
        let len = match self.0 {
            [] | [END, ..] => return None,
            [_, len, ..] => usize::from(*len),
            [_] => 0,
        };
        let option = self.0.get(..len).filter(|option| option.len() >= 2);
        self.0 = if option.is_some() { &self.0[len..] } else { &[] };
        Some(option)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_repeat_the_copied_options_only() {
        // Record route is not copied, security (130) is (RFC 791, section 3.1).
        let options = [1, 7, 3, 4, 130, 6, 1, 2, 3, 4, 148, 4, 0, 0, 0, 9];
        assert_eq!(copied(&options), [130, 6, 1, 2, 3, 4, 148, 4, 0, 0, 0, 0]);
        assert_eq!(copied(&[]), []);
    }

    #[test]
    fn who_reads_a_source_routed_packet_is_the_last_of_its_route() {
        let [one, two] = [[192, 0, 2, 8], [192, 0, 2, 9]];
        // The pointer leads to the next address, counted from one; behind the last the route is
        // done (RFC 791).
        let route = |pointer: u8| [&[1, LOOSE_SOURCE_ROUTE, 11, pointer][..], &one, &two].concat();
        assert_eq!(recipient(&route(4)), Some(two.into()));
        assert_eq!(recipient(&route(8)), Some(two.into()));
        assert_eq!(recipient(&route(12)), None);
        for without in
            [&[][..], &[7, 7, 4, 1, 2, 3, 4], &[STRICT_SOURCE_ROUTE, 3, 4], &[STRICT_SOURCE_ROUTE, 6, 4, 1, 2, 3]]
        {
            assert_eq!(recipient(without), None, "{without:?}");
        }
    }

    #[test]
    fn a_wrong_length_ends_the_walk() {
        for wrong in [&[7_u8][..], &[7, 0, 1, 1], &[7, 1, 1, 1], &[7, 5, 1, 1]] {
            assert_eq!(Walk(wrong).collect::<Vec<_>>(), [None]);
        }
        assert_eq!(Walk(&[1, 1, 0, 7]).count(), 0);
    }
}
