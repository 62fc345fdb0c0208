//! What the kernel keeps for the daemon where it joins card and stack by itself: once in the words of the socket that hears it,
//! once in the words of the hook that lets nothing of it pass.
//!
//! The sockets hear every frame before the hook, through a filter of the kernel's classic kind that takes what is kept; so
//! a tagged frame still has its tag, and the daemon can say why it drops it. Both lists say the same: what the filter does not
//! take and the hook does not join reaches nobody.

/// Which frames are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// ARP.
    #[default]
    Arp,
    /// ARP and DHCP over IPv4.
    ArpAndDhcp,
    /// IKE, ESP and AH over IPv4 and IPv6, and what may turn out to be those: later fragments, and
    /// IPv6 behind extension headers.
    Ipsec,
}

/// One instruction of a classic filter: operation, jumps if true and if false, operand.
pub type Instruction = (u16, u8, u8, u32);

// Operations of linux/bpf_common.h: load absolute or indexed, load the length of an IPv4 header, jump, return.
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF_AT_INDEX: u16 = 0x48;
const LOAD_IP_HEADER_LEN: u16 = 0xb1;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_SET: u16 = 0x45;
const RETURN: u16 = 0x06;

const ARP: u32 = 0x0806;
const IPV4: u32 = 0x0800;
const UDP: u32 = 17;
const IPV6: u32 = 0x86dd;
const ESP: u32 = 50;
const AH: u32 = 51;
/// Ports of IKE, and of IKE and ESP behind a translator (RFC 7296, RFC 3948).
const IKE: u32 = 500;
const NAT_TRAVERSAL: u32 = 4500;
/// Ports of DHCP servers and clients (RFC 2131, section 4.1).
const PORTS: [u32; 2] = [67, 68];
const WHOLE_FRAME: u32 = u32::MAX;

const ARP_ONLY: &[Instruction] =
    &[(LOAD_HALF, 0, 0, 12), (JUMP_IF_EQUAL, 0, 1, ARP), (RETURN, 0, 0, WHOLE_FRAME), (RETURN, 0, 0, 0)];

/// Offsets count from the Ethernet header. The port is that of the destination, in what is not a later fragment.
const ARP_OR_DHCP: &[Instruction] = &[
    (LOAD_HALF, 0, 0, 12),
    (JUMP_IF_EQUAL, 9, 0, ARP),
    (JUMP_IF_EQUAL, 0, 9, IPV4),
    (LOAD_BYTE, 0, 0, 23),
    (JUMP_IF_EQUAL, 0, 7, UDP),
    (LOAD_HALF, 0, 0, 20),
    (JUMP_IF_SET, 5, 0, 0x1fff),
    (LOAD_IP_HEADER_LEN, 0, 0, 14),
    (LOAD_HALF_AT_INDEX, 0, 0, 16),
    (JUMP_IF_EQUAL, 1, 0, PORTS[0]),
    (JUMP_IF_EQUAL, 0, 1, PORTS[1]),
    (RETURN, 0, 0, WHOLE_FRAME),
    (RETURN, 0, 0, 0),
];

/// Where the last two instructions of [`IPSEC`] are: it takes, or it does not.
const TAKE: u8 = 33;
const LEAVE: u8 = 34;

/// Instruction `at`: goes on at `then` if the value is `operand`, else at `otherwise`.
const fn branch(at: u8, operand: u32, then: u8, otherwise: u8) -> Instruction {
    (JUMP_IF_EQUAL, then - at - 1, otherwise - at - 1, operand)
}

/// ESP, AH and UDP of either port, from or to it; of UDP later fragments, too, and of IPv6 whatever
/// is behind another header.
const IPSEC: &[Instruction] = &[
    (LOAD_HALF, 0, 0, 12),
    branch(1, IPV4, 2, 15),
    (LOAD_BYTE, 0, 0, 23),
    branch(3, ESP, TAKE, 4),
    branch(4, AH, TAKE, 5),
    branch(5, UDP, 6, LEAVE),
    (LOAD_HALF, 0, 0, 20),
    (JUMP_IF_SET, TAKE - 8, 0, 0x1fff),
    (LOAD_IP_HEADER_LEN, 0, 0, 14),
    (LOAD_HALF_AT_INDEX, 0, 0, 14),
    branch(10, IKE, TAKE, 11),
    branch(11, NAT_TRAVERSAL, TAKE, 12),
    (LOAD_HALF_AT_INDEX, 0, 0, 16),
    branch(13, IKE, TAKE, 14),
    branch(14, NAT_TRAVERSAL, TAKE, LEAVE),
    branch(15, IPV6, 16, LEAVE),
    (LOAD_BYTE, 0, 0, 20),
    branch(17, UDP, 27, 18),
    branch(18, 0, TAKE, 19),
    branch(19, 43, TAKE, 20),
    branch(20, 44, TAKE, 21),
    branch(21, ESP, TAKE, 22),
    branch(22, AH, TAKE, 23),
    branch(23, 60, TAKE, 24),
    branch(24, 135, TAKE, 25),
    branch(25, 139, TAKE, 26),
    branch(26, 140, TAKE, LEAVE),
    (LOAD_HALF, 0, 0, 54),
    branch(28, IKE, TAKE, 29),
    branch(29, NAT_TRAVERSAL, TAKE, 30),
    (LOAD_HALF, 0, 0, 56),
    branch(31, IKE, TAKE, 32),
    branch(32, NAT_TRAVERSAL, TAKE, LEAVE),
    (RETURN, 0, 0, WHOLE_FRAME),
    (RETURN, 0, 0, 0),
];

impl Kept {
    /// The socket's filter.
    #[must_use]
    pub fn filter(self) -> &'static [Instruction] {
        match self {
            Kept::Arp => ARP_ONLY,
            Kept::ArpAndDhcp => ARP_OR_DHCP,
            Kept::Ipsec => IPSEC,
        }
    }

    /// What the socket's filter says of `frame`, run as the kernel runs it, for tests; a load beyond the frame refuses it.
    #[must_use]
    pub fn takes(self, frame: &[u8]) -> bool {
        let half = |at: usize| Some(u32::from(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?])));
        let (mut at, mut value, mut index) = (0, 0, 0);
        loop {
            let (operation, then, otherwise, operand) = self.filter()[at];
            let place = operand as usize;
            let loaded = match operation {
                LOAD_HALF => half(place),
                LOAD_HALF_AT_INDEX => half(place + index),
                LOAD_BYTE => frame.get(place).map(|byte| u32::from(*byte)),
                LOAD_IP_HEADER_LEN => frame.get(place).map(|byte| {
                    index = usize::from(byte & 0x0f) * 4;
                    value
                }),
                RETURN => return operand != 0,
                _ => Some(value),
            };
            let Some(loaded) = loaded else { return false };
            value = loaded;
            let jumps = match operation {
                JUMP_IF_EQUAL if value == operand => then,
                JUMP_IF_SET if value & operand != 0 => then,
                JUMP_IF_EQUAL | JUMP_IF_SET => otherwise,
                _ => 0,
            };
            at += 1 + usize::from(jumps);
        }
    }

    /// The hook's rules, in the words of `nft`: what they drop is kept or harms, what comes after them is joined. Of IPv4 only what
    /// has a whole header is joined where DHCP is kept, because a program that reads packets by itself may find DHCP where
    /// the kernel finds none. Protocol 255 is reserved; to ask for any other is how to ask whether there is a header. Later
    /// fragments come first: nothing can be put together of them alone, and at this hook `nft` reads ports in them, too,
    /// where there are none.
    pub(super) fn rules(self) -> &'static str {
        match self {
            Kept::Arp => "meta protocol arp drop\n",
            Kept::ArpAndDhcp => {
                "meta protocol arp drop\n\
                 meta protocol ip ip frag-off & 0x1fff != 0 goto joined\n\
                 meta protocol ip udp dport { 67, 68 } drop\n\
                 meta protocol ip meta l4proto != 255 goto joined\n\
                 meta protocol ip drop\n"
            }
            Kept::Ipsec => {
                "meta protocol ip ip protocol { 50, 51 } drop\n\
                 meta protocol ip ip protocol 17 ip frag-off & 0x1fff != 0 drop\n\
                 meta protocol ip udp sport { 500, 4500 } drop\n\
                 meta protocol ip udp dport { 500, 4500 } drop\n\
                 meta protocol ip6 ip6 nexthdr { 0, 43, 44, 50, 51, 60, 135, 139, 140 } drop\n\
                 meta protocol ip6 udp sport { 500, 4500 } drop\n\
                 meta protocol ip6 udp dport { 500, 4500 } drop\n"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(kept: Kept, frame: &[u8]) -> bool {
        kept.takes(frame)
    }

    fn udp(port: u16, header_words: u8, fragment: u16) -> Vec<u8> {
        let mut frame = vec![0xff; 12];
        frame.extend([8, 0, 0x40 | header_words, 0, 0, 60, 0, 0]);
        frame.extend(fragment.to_be_bytes());
        frame.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.resize(14 + usize::from(header_words) * 4, 1);
        frame.extend([0x12, 0x34]);
        frame.extend(port.to_be_bytes());
        frame.extend([0; 24]);
        frame
    }

    #[test]
    fn the_filter_takes_what_is_kept_and_nothing_else() {
        let arp = [&[0xff; 12][..], &[8, 6], &[0; 46]].concat();
        assert!(takes(Kept::Arp, &arp) && takes(Kept::ArpAndDhcp, &arp));
        for (port, words, fragment, taken) in [
            (67, 5, 0, true),
            (68, 5, 0, true),
            (68, 15, 0, true),
            // A first fragment tells its ports, a later one does not.
            (67, 5, 0x2000, true),
            (67, 5, 0x2001, false),
            (66, 5, 0, false),
            (69, 6, 0, false),
        ] {
            assert_eq!(takes(Kept::ArpAndDhcp, &udp(port, words, fragment)), taken, "{port} {words} {fragment:x}");
            assert!(!takes(Kept::Arp, &udp(port, words, fragment)));
        }
        let whole = udp(67, 5, 0);
        assert!((0..38).all(|len| !takes(Kept::ArpAndDhcp, &whole[..len])), "cut before the port");
        let mut tcp = udp(67, 5, 0);
        tcp[23] = 6;
        assert!(!takes(Kept::ArpAndDhcp, &tcp));
        let mut ipv6 = udp(67, 5, 0);
        ipv6[12..14].copy_from_slice(&[0x86, 0xdd]);
        assert!(!takes(Kept::ArpAndDhcp, &ipv6));
    }

    #[test]
    fn the_filter_of_a_shield_takes_whatever_may_be_ipsec() {
        let from_port = |port: u16| {
            let mut frame = udp(53, 5, 0);
            frame[34..36].copy_from_slice(&port.to_be_bytes());
            frame
        };
        for (frame, taken) in [
            (udp(500, 5, 0), true),
            (udp(4500, 15, 0), true),
            (udp(4501, 5, 0), false),
            (udp(53, 5, 0x2000), false),
            (udp(53, 5, 0x0001), true),
            (from_port(4500), true),
            (from_port(500), true),
            (from_port(4499), false),
            ([&[0xff; 12][..], &[8, 6], &[0; 46]].concat(), false),
        ] {
            assert_eq!(takes(Kept::Ipsec, &frame), taken, "{frame:?}");
        }
        for protocol in 0..=255 {
            let mut four = udp(53, 5, 0);
            four[23] = protocol;
            assert_eq!(takes(Kept::Ipsec, &four), matches!(protocol, 50 | 51), "IPv4 {protocol}");
            let mut six = vec![0; 14 + 40 + 8];
            six[12..14].copy_from_slice(&[0x86, 0xdd]);
            six[20] = protocol;
            let is_header = [0, 43, 44, 50, 51, 60, 135, 139, 140].contains(&protocol);
            assert_eq!(takes(Kept::Ipsec, &six), is_header, "IPv6 {protocol}");
            for at in [54, 56] {
                six[at..at + 2].copy_from_slice(&4500_u16.to_be_bytes());
                assert_eq!(takes(Kept::Ipsec, &six), is_header || protocol == 17, "IPv6 {protocol} at {at}");
                six[at..at + 2].fill(0);
            }
        }
    }
}
