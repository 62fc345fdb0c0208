//! What a stranger can make grow, and how fast, each with its reason.

/// Peers of one host. Each costs some hundred bytes beside its associations.
pub const PEERS_MAX: usize = 1024;
/// Inbound associations that are remembered of one peer; the one unheard for longest makes room. An IPsec peer has two for
/// each pair of networks while it rekeys.
pub const KNOWN_MAX: usize = 256;
/// Outbound associations whose laps are remembered for each peer.
pub const OUTBOUND_MAX: usize = 256;
/// Exchanges of IKE that are remembered of one peer, of each kind; the one used longest ago makes room. A pair has one association, and two
/// while it is replaced; where first messages in a peer's name pass at 200 a second, an answer may take 160 ms.
pub const IKE_KNOWN_MAX: usize = 32;
/// Epochs in a key file. Each one costs a forged packet as much again; two are enough to change without a gap.
pub const EPOCHS_MAX: usize = 2;
/// Laps that an inbound packet is tried under: those of associations that have sent more than 2^31 packets.
pub const LAPS_MAX: usize = 4;
/// Indexes that were met once and wait to be met again, for all peers together: 1 MiB here, half of it in the kernel. A flood of 200,000 forged packets a
/// second replaces each within a third of a second.
pub const CANDIDATES: usize = 1 << 16;
/// Sequence numbers below the highest that are told apart. Receivers of ESP have 32 to 1024 (RFC 4303, section 3.4.3).
pub const WINDOW_PACKETS: u64 = 1024;
/// How far a sequence number may be above the highest seen. What is further needs a second packet near it, because one forged
/// packet in 2^32 meets a known index by chance and must not move the window away from its sender.
pub const NEAR_PACKETS: u64 = 1 << 16;
/// Associations whose windows the kernel sees, for all peers together: 2.1 MB. Of further ones it does not know which numbers
/// have passed, and hands none of their packets on.
pub const KERNEL_WINDOWS_MAX: u32 = 4096;
/// Events that wait for somebody to read them; the oldest goes.
pub const EVENTS_MAX: usize = 64;
/// Headers that are followed in front of what an IPv6 packet carries.
pub const HEADERS_MAX: usize = 8;

const _: () = assert!(NEAR_PACKETS > WINDOW_PACKETS, "a window lies within what is near");
const _: () = assert!(CANDIDATES.is_power_of_two());
const _: () = assert!(CANDIDATES == 1 << 16 && PEERS_MAX <= u16::MAX as usize, "as a candidate is in the kernel");
