//! What became of each frame, and the books in which it stands.
//!
//! The law of the house: frames received = forwarded + answered + consumed + dropped + still held. [`Ledger::balance`]
//! states it and every simulation checks it.

use crate::inject::point;
use crate::witness::{Sighting, Witness};
use crate::{Instant, Side};

/// The one fate of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It left on the other side, whole, sealed, opened or in pieces.
    Forwarded,
    /// It was answered on the side it came from, and goes no further.
    Answered,
    /// A copy is kept, within a limit, until it can be forwarded.
    Held,
    /// It was meant for this bump.
    Consumed,
    /// It ends here, for this reason.
    Dropped(DropReason),
}

macro_rules! drop_reasons {
    ($($variant:ident, $word:literal, $meaning:literal, $remedy:literal;)+) => {
        /// Why a frame was dropped: the index of a counter, a word in the log and a row in
        /// `docs/manual/drop-reasons.md`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum DropReason {
            $(#[doc = $meaning] $variant,)+
        }

        impl DropReason {
            /// Every reason, in the order of the counters.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$variant,)+];

            /// The reason as one word for logs, metrics and `explain`.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(DropReason::$variant => $word,)+ }
            }

            /// What was wrong, in a sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(DropReason::$variant => $meaning,)+ }
            }

            /// What an operator can do about it.
            #[must_use]
            pub fn remedy(self) -> &'static str {
                match self { $(DropReason::$variant => $remedy,)+ }
            }
        }
    };
}

drop_reasons! {
    // Any bump.
    Runt, "runt", "The frame is shorter than an Ethernet header.",
        "Nothing: no correct sender makes such a frame.";
    PortFull, "port-full", "The outgoing port had no room.",
        "Look for a slow or stopped link; a few under load are normal.";
    ControlBusy, "control-busy", "The queue to the slow half of the program was full.",
        "Look for a flood of handshakes or ARP; data on existing associations is not affected.";
    Vlan, "vlan-tagged", "The frame carries a VLAN tag and the guarded interface is untagged.",
        "Make the switch port an untagged access port, or guard the VLAN's own interface.";
    BadSuperFrame, "bad-super-frame", "The kernel handed over a large frame whose headers do not say how to cut it.",
        "Switch off the offload in question on the guarded interface and report the frame.";
    TooBig, "too-big", "The frame does not fit the link once it is sealed.",
        "Leave the MTU of the guarded interface as the program set it; in place only what is neither IPv4 nor IPv6 ends here.";

    InternalError, "internal-error", "The program itself failed while it worked on the frame.",
        "Report it with the event of the same name, which names the place in the program.";

    // Outbound, from the stack.
    SourceNotOurs, "source-not-ours", "The stack sent a frame with a source address that is not this interface's.",
        "Do not bridge other machines through a guarded interface; give each its own certificate.";
    Broadcast, "broadcast", "A broadcast by a legacy host that may send none, or any while `cll.broadcast` is off.",
        "Set `broadcast` in the legacy host's entry if its broadcasts are needed here, or switch `cll.broadcast` on.";
    Multicast, "multicast", "A multicast by a legacy host that may send none, or any while `cll.broadcast` is off.",
        "Set `broadcast` in the legacy host's entry if its multicasts are needed here, or switch `cll.broadcast` on.";
    GroupQueueFull, "group-queue-full", "The stack sent more group frames than can be signed in time.",
        "Look for the program that floods the LAN with broadcasts or multicasts.";
    Dhcp, "dhcp", "DHCP in mode cll that this host is not set up to speak, or in another frame than a DHCP frame.",
        "Set dhcp.client or dhcp.server; behind the seal or in clear it is an enrolled or legacy host that plays the server.";
    Ipv6, "ipv6", "IPv6 is switched off on this host, or a legacy host sent it.",
        "Set `ipv6 = true` in [cll]; legacy hosts are reached by IPv4.";
    DiscoveryNotOurs, "nd-not-ours", "The stack sent neighbour discovery that no peer would accept from this host.",
        "Do not bridge other machines through a guarded interface; a host that advertises routes needs the role router.";
    DiscoveryUnasked, "nd-unasked", "The stack sent a neighbour advertisement that nobody waits for.",
        "Nothing: this program answers in its place.";
    BadArp, "bad-arp", "The ARP message is malformed or is neither a request nor a reply for Ethernet and IPv4.",
        "Look for the program that sent it.";
    ArpProbe, "arp-probe", "An ARP probe for an address, which has no sender address that could be proved.",
        "Nothing: the authority keeps addresses unique.";
    ArpNotOurs, "arp-not-ours", "The stack spoke ARP for an address that is not in this host's certificate.",
        "Issue a certificate with that address, or remove the address from the interface.";
    ArpUnasked, "arp-unasked", "The stack sent an ARP reply that nobody waits for.",
        "Nothing: this program answers in its place.";
    HoldFull, "hold-full", "Too many frames already wait for the handshake with this peer.",
        "Nothing if it is short; otherwise see why the handshake does not finish (`peers`, `events`).";
    HoldExpired, "hold-expired", "The handshake with this peer did not finish in time.",
        "The peer is down, does not speak CLL, or refuses us: see `events` on both hosts.";
    SequenceEnd, "sequence-end", "The association's sequence numbers are used up.",
        "Nothing: a new handshake is under way.";

    // Inbound, from the wire.
    NotForUs, "not-for-us", "The frame is addressed to another host.",
        "Nothing: switches flood such frames.";
    GroupSource, "group-source", "The source address is a group address.",
        "Look for the machine that forges frames.";
    OwnSource, "own-source", "A frame from the wire carries our own source address: a reflection or a cloned address.",
        "Look for a loop or for the machine that clones this host's address.";
    Unsealed, "unsealed", "A plain frame from a host that is not on the legacy list.",
        "If `ringwall status` names an attack, see there; otherwise enrol that host, or put it on the legacy list if it cannot be.";
    PlainArp, "plain-arp", "A plain ARP message from a host that is no legacy host and, in mode sarp, no known host.",
        "If `ringwall status` names an attack, see there; otherwise enrol that host, or list it if it cannot be.";
    RevocationList, "revocation-list", "A peer offered or asked for a revocation list that cannot be one.",
        "The peer's program is faulty or the peer attacks: see `peers` for who it is.";
    SitePolicy, "site-policy", "A peer offered or asked for a site policy that cannot be one.",
        "The peer's program is faulty or the peer attacks: see `peers` for who it is.";
    Downgrade, "downgrade", "A plain frame from, or in the name of, a host that has proved itself and must not fall back.",
        "Look for the machine that forges; if the host was taken back to clear, `ringwall host forget` it, or make it an exception.";
    LegacyAddress, "legacy-address", "A legacy host, or a known host in mode sarp, used an address that is not the one on the list.",
        "Correct the list, or look for the machine that clones the legacy host.";
    Malformed, "malformed", "The frame carries our EtherType but is too short or contradicts itself.",
        "Nothing: no correct sender makes such a frame.";
    BadVersion, "bad-version", "The frame speaks another version of the protocol.",
        "Bring all hosts to the same version.";
    UnknownIndex, "unknown-index", "No association has this receiver index.",
        "Nothing: after a restart a handshake repairs it within seconds; a flood is an attack.";
    WrongPeer, "wrong-peer", "The receiver index belongs to an association with another host.",
        "Look for the machine that splices frames.";
    TooOld, "too-old", "The sequence number lies before the replay window.",
        "Look for a replay, or for a link that delays frames by thousands.";
    TooFar, "too-far", "The sequence number lies further ahead than the peer can have come.",
        "Nothing if rare; a flood of them is an attack that costs next to nothing.";
    Replayed, "replayed", "A frame with this sequence number has been delivered already.",
        "Look for a loop or a replay.";
    BadTag, "bad-tag", "The authentication tag is wrong.",
        "Look for a machine that forges frames or a link that corrupts them.";
    BadSpin, "bad-spin", "The spinning nonce is wrong: the frame is forged or corrupted.",
        "Nothing if rare; a flood of them is an attack that costs next to nothing.";
    BadSlowNonce, "bad-slow-nonce", "The slow nonce is wrong: the frame is forged or corrupted.",
        "Nothing if rare; a flood of them is an attack that costs next to nothing.";
    Compressed, "compressed", "The frame is marked as compressed, which was not agreed.",
        "The peer's program is faulty or the peer attacks: see `peers` for who it is.";
    CompressedTooLong, "compressed-too-long", "An authentic frame was compressed and claims to have been longer than a frame can be.",
        "The peer's program is faulty or the peer attacks: see `peers` for who it is.";
    CompressedMalformed, "compressed-malformed", "An authentic frame is marked as compressed and does not expand to what it claims.",
        "The peer's program is faulty or the peer attacks: see `peers` for who it is.";
    InnerMalformed, "inner-malformed", "An authentic frame carries an inner packet that is cut short.",
        "The peer's stack is faulty or the peer attacks: see the peer named in `events`.";
    InnerSource, "inner-source", "An authentic frame carries a source address that is not in the peer's certificate.",
        "An enrolled host lies, or its certificate lacks the address or the role router.";
    InnerArp, "inner-arp", "An authentic frame carries ARP for addresses that are not in the peer's certificate.",
        "An enrolled host lies, or its certificate lacks the address.";

    InnerDiscovery, "inner-nd", "An authentic frame carries neighbour discovery that is malformed, hidden, or names another's hardware address.",
        "An enrolled host lies, or bridges other machines: see its name in `events`.";
    InnerRole, "inner-role", "An authentic frame carries what only a router or a DHCP server may say, and its sender is none.",
        "Issue the router's certificate with the role router, the DHCP server's with the role dhcp; otherwise an enrolled host lies.";
    AddressTaken, "address-taken", "A host speaks for an IPv6 address that another host has.",
        "See `events` for its name: an enrolled host lies, or two have the same address.";
    AddressLimit, "address-limit", "A host speaks for more IPv6 addresses than one host may have.",
        "An enrolled host collects addresses, or machines behind it need certificates of their own.";
    GroupTag, "group-tag", "A group frame, an announcement or a question was not made by any host of the site.",
        "A host of another site, or an outsider who wants this host to check signatures.";
    GroupUnproved, "group-unproved", "A group frame whose sender did not prove in time that it lives now.",
        "Nothing if rare; otherwise look for a replay, or see whether the sender's host answers at all.";
    GroupReplayed, "group-replayed", "A group frame that is not newer than the last one of its sender.",
        "Look for a loop or a replay.";
    GroupBudget, "group-budget", "More group frames or questions arrived than may be checked in this time.",
        "Look for the enrolled host that floods the LAN, or forges in the name of another.";
    GroupIncomplete, "group-incomplete", "Another part of a group frame that travels in parts was lost.",
        "Nothing if rare: lost frames of a group are not repeated.";
    GroupUnicast, "group-unicast", "A group frame carries an IP packet for one host.",
        "An enrolled host sends in clear what belongs under the seal: see the peer's programs.";
    GroupDuplicate, "group-duplicate", "The copy in clear of a group frame whose sender signs: the signed one counts.",
        "Nothing: hosts that are being moved to CLL send both. Once all hosts enforce it ends.";
    GroupUnasked, "group-unasked", "An announcement that answers no question of this host.",
        "Nothing if rare; otherwise look for a replay.";

    // S-ARP.
    SarpMalformed, "sarp-malformed", "An S-ARP message contradicts itself or ends too early.",
        "Nothing: no correct sender makes such a frame.";
    ArpSource, "arp-source", "Ethernet and ARP disagree about the sender.",
        "Look for the machine that forges ARP; some virtual machines behind a bridge do so by mistake.";
    ArpTarget, "arp-target", "The ARP message is for somebody else.",
        "Nothing: requests are broadcast.";
    ArpConflict, "arp-conflict", "Somebody else claims an address of ours.",
        "See `events` for his hardware address; two machines have the same address, or one attacks.";
    SarpUnasked, "sarp-unasked", "A signed answer or announcement that nobody here asked for.",
        "Nothing if rare; otherwise look for a replay.";
    SarpNonce, "sarp-nonce", "An answer to another request than the one that is open.",
        "Nothing if rare; otherwise look for a replay.";
    SarpStale, "sarp-stale", "The message is older or newer than the window allows, or not newer than the last one of its sender.",
        "Look for a replay; if it goes on, the two hosts follow different distributors.";
    SarpNoClock, "sarp-no-clock", "No key distributor has told the time yet, so nothing can be signed or judged.",
        "See whether a distributor can be reached.";
    SarpBudget, "sarp-budget", "More messages arrived than may be answered or checked in this time.",
        "Look for a flood; honest hosts ask again by themselves.";
    SarpSignature, "sarp-signature", "The signature is not that of the address's owner.",
        "Look for the machine that forges ARP.";
    SarpMac, "sarp-mac", "The owner of the address signed another hardware address than the one the site binds to it.",
        "An enrolled host lies about its hardware address, or its card was changed: have the site record the new one.";
    SarpNoKey, "sarp-no-key", "The site has no good key for the address that answered.",
        "Enrol that host, or list it among the known hosts if it cannot be.";
    SarpPendingFull, "sarp-pending-full", "Too many answers already wait for a key.",
        "Look for a flood of answers; honest hosts ask again by themselves.";
    SarpPendingExpired, "sarp-pending-expired", "No key distributor said in time whose key belongs to the answer.",
        "See whether a distributor can be reached.";
    SarpRequestCheck, "sarp-request-check", "A request to this key distributor was not made by the host whose number it has.",
        "A host of another site, one that runs a version from before the change of this check (see the changelog), or somebody who wants this host to sign.";
    SarpRequestTag, "sarp-request-tag", "A request to this key distributor begins as its host made it, and not what follows.",
        "Somebody changes what he has recorded, or a host of the site does not know what it does; the number is in the request.";
    SarpEnrolNumber, "sarp-enrol-number", "A request to enrol names a token that this site has not made.",
        "Look for the machine that sends it: a token of another site, or an outsider's guess.";
    SarpEnrolBudget, "sarp-enrol-budget", "More requests to enrol arrived than are checked in this time.",
        "Look for a flood by somebody who has heard the number of a token; if it keeps a machine from enrolling, enrol that one by file.";
    SarpEnrolTag, "sarp-enrol-tag", "A request to enrol was not made by who has the token that it names.",
        "Look for the machine that sends it: an outsider who has heard the number of a token, or one that changes what he has recorded.";

    // S-DHCP.
    DhcpMalformed, "dhcp-malformed", "A DHCP message that contradicts itself, ends too early or comes with IP options.",
        "Nothing: no correct sender makes such a frame.";
    DhcpHidden, "dhcp-hidden", "A first fragment to a DHCP port, or an IPv4 header so broken that DHCP could hide behind it.",
        "Look for the machine that sends such frames; DHCP messages fit one packet.";
    DhcpUnsigned, "dhcp-unsigned", "A DHCP message without a proof: its sender does not speak S-DHCP.",
        "Look for a DHCP server or client that is not part of the site.";
    DhcpTag, "dhcp-tag", "A DHCP message whose proof was not made by a host of this site.",
        "A host of another site, or an outsider's forgery.";
    DhcpSignature, "dhcp-signature", "A DHCP message that is not signed by the client or by a DHCP server of the site.",
        "Look for the machine that forges DHCP; if a server was enrolled lately, issue this host's identity again.";
    DhcpStale, "dhcp-stale", "A DHCP message that is older or newer than the window allows, or not newer than the last one of its client.",
        "Look for a replay; clients ask again by themselves.";
    DhcpUnasked, "dhcp-unasked", "A DHCP reply to a request that is not open.",
        "Nothing if rare; otherwise look for a replay or a rogue server.";
    DhcpChaddr, "dhcp-chaddr", "A DHCP client's hardware address is not that of the frame, or not the one that the site binds to the host.",
        "Look for the machine that asks in others' names.";
    DhcpRelay, "dhcp-relay", "A DHCP message with the fields of a relay that is not listed.",
        "List the relay in dhcp.relays, or look for the machine that forges its fields.";
    DhcpNotServer, "dhcp-not-server", "A DHCP reply by this host, or a DHCP request to it, and it is no DHCP server of the site.",
        "Nothing: requests are broadcast. If it shall be one, set dhcp.server and issue its identity with the role dhcp.";
    DhcpNotClient, "dhcp-not-client", "A DHCP request by this host, or a DHCP reply to it, and it is no DHCP client.",
        "Set dhcp.client if this host shall get its address by DHCP.";
    DhcpNotHolder, "dhcp-not-holder", "A client spoke for an address that is leased to another, or gave back one that it does not hold.",
        "See `events`; an enrolled host lies, or the DHCP server was restarted and knows the lease no more.";
    DhcpAddress, "dhcp-address", "A DHCP server grants another address than was asked for and agreed to.",
        "See the DHCP server's own log.";
    DhcpBudget, "dhcp-budget", "More DHCP messages arrived than may be looked at in this time.",
        "Look for a flood; honest clients ask again by themselves.";
    DhcpLeasesFull, "dhcp-leases-full", "The client has as many leases as one host may have, or this server as many as it remembers.",
        "Look for an enrolled host that asks under many client identifiers.";
    DhcpRefused, "dhcp-refused", "A key distributor did not agree to the address for this client.",
        "See `events` for the cause: not enrolled, revoked, outside its subnets, or taken.";
    DhcpNoAnswer, "dhcp-no-answer", "No key distributor said in time whether the client may have the address.",
        "See whether a distributor can be reached.";

    // DHCP frames of CLL.
    DhcpGivenBack, "dhcp-given-back", "A DHCP client gives its address back or calls it taken; the certificate would outlast that.",
        "Nothing: the lease ends by itself, and no client is obliged to give it back.";
    DhcpExpired, "dhcp-expired", "The client's base certificate, which its DHCP frame names, is over.",
        "Have the site issue the host's identity again.";
    DhcpCertificate, "dhcp-certificate", "The certificate in a DHCP frame is missing, refused, or not the one that belongs there.",
        "See `events` for the reason: a revoked host, a server that does not serve this subnet, or one that lies.";

    // Handshakes.
    HandshakeSource, "handshake-source", "Ethernet and ARP disagree about the sender of a handshake.",
        "Look for the machine that forges handshakes.";
    HandshakeTarget, "handshake-target", "The handshake asks for an address that is not ours.",
        "Nothing: requests are broadcast.";
    HandshakeSiteMac, "handshake-site-mac", "The handshake was made by somebody without the site key.",
        "A host of another site, or an outsider's forgery.";
    Repeated, "repeated", "The same handshake or frame to a group again, sooner than an honest host repeats one.",
        "Nothing if rare; otherwise look for who replays what it heard.";
    HandshakeBudget, "handshake-budget", "More handshakes arrived, or replies to ours, than may be judged in this time.",
        "Look for a flood; hosts that have proved themselves before are answered beside it, new ones retry by themselves.";
    HandshakeYields, "handshake-yields", "Both sides asked at once and ours goes first.",
        "Nothing: this is how simultaneous handshakes are decided.";
    HandshakeUnasked, "handshake-unasked", "A reply or a challenge for which there is no open request.",
        "Nothing if rare; otherwise look for a replay.";
    HandshakeStale, "handshake-stale", "A handshake as old as one already accepted from this host.",
        "Look for a replay.";
    BadCertificate, "bad-certificate", "The peer's certificate was not issued by this site's authority, or is not valid now.",
        "See `events` for the cause; renew or issue the certificate.";
    BadSignature, "bad-signature", "The handshake is not signed with the key in its certificate.",
        "Look for the machine that forges handshakes.";
    CertificateAddress, "certificate-address", "The handshake speaks for an IP or MAC address that its certificate does not bind.",
        "An enrolled host lies, or its certificate lacks the address.";
    WeakOffer, "weak-offer", "The peer offers less protection than this host requires.",
        "Bring both configurations together (`require_suites`, `require_confidentiality`, `send_suite`, `confidentiality`, `post_quantum`).";
    PreSharedKey, "pre-shared-key", "This host and the peer have no pre-shared key in common, or only one of them has one.",
        "Give all hosts of the site the same `cll.pre_shared_key` file; while a key is being changed both are in it.";
    KemPending, "kem-pending", "Payload came under keys that carry none before the ML-KEM exchange is over.",
        "Nothing: no correct sender seals any so early.";
    BadKeyShare, "bad-key-share", "The peer's key share is not a usable public key.",
        "Look for the machine that forges handshakes.";
    TicketUnknown, "ticket-unknown", "A resumption with a ticket that this host cannot open, or issued under another certificate, or `cll.resumption` is off.",
        "Nothing: the peer is asked for a handshake at once. Tickets become worthless with the state directory, and with a new certificate.";
    TicketExpired, "ticket-expired", "A resumption with a ticket whose time is over, or whose beginning is in the future of this host's clock.",
        "Nothing: the peer is asked for a handshake at once. If it is frequent, look at the clocks.";
    TicketSpent, "ticket-spent", "A resumption with a ticket that was used before, or replaced by a newer one.",
        "Nothing if rare: a message was lost or late. Otherwise look for a replay.";
    BadBinder, "bad-binder", "A resumption by somebody who does not have the secret of the ticket.",
        "Look for the machine that stole the ticket off the wire.";
    JobLost, "job-lost", "The worker that should have handled the handshake failed.",
        "Report it; the handshake is retried.";

    // The scrubber.
    EthertypeNotListed, "ethertype-not-listed", "The frame is neither IP nor ARP and its EtherType is not listed for the gateway, or it wraps IP in a way that not all hosts read.",
        "List it in gate.ethertypes if both sides need it.";
    IpHeader, "ip-header", "An IP header that contradicts itself or the frame.",
        "Nothing: no correct sender makes such a packet.";
    IpChecksum, "ip-checksum", "An IPv4 header with a wrong checksum.",
        "Look for a failing link, or for somebody who tests what is behind the gateway.";
    IpAddress, "ip-address", "IP addresses that no host can have, a source that is the destination, TCP to a group, or a packet to one host in a frame to all.",
        "Look for the machine that forges addresses.";
    IpOptions, "ip-options", "Malformed IP options, or a source route.",
        "Look for the machine that sends them.";
    Ipv6Extensions, "ipv6-extensions", "IPv6 extension headers out of order, repeated, too many, or of a kind that hosts refuse.",
        "Look for the machine that sends them.";
    HopLimit, "hop-limit", "The packet could not have reached the hosts behind the gateway.",
        "Lower gate.hops_behind if hosts are nearer (OSPF and BGP pass with 1 between neighbours); otherwise look for somebody who tests what is behind it.";
    FragmentMalformed, "fragment-malformed", "A fragment that is empty, too long, of a length that nothing can follow, or that lacks headers it should bring.",
        "Nothing: no correct sender makes such a fragment.";
    FragmentConflict, "fragment-conflict", "Fragments that contradict each other about where the packet ends or what it is, or that overlap where none may.",
        "Look for somebody who tests what is behind the gateway.";
    FragmentsFull, "fragments-full", "More fragments wait for the rest of their packet than may.",
        "Look for a flood of fragments.";
    FragmentExpired, "fragment-expired", "The rest of the packet did not come in time.",
        "Look for a lossy link; the sender sends again.";
    ProtocolNotListed, "protocol-not-listed", "An encrypted or opaque protocol, or a tunnel, between hosts that are not listed for it.",
        "List the pair in gate.encrypted or gate.tunnels.";
    TcpHeader, "tcp-header", "A TCP header that is cut short or says a wrong length.",
        "Nothing: no correct sender makes such a segment.";
    TcpChecksum, "tcp-checksum", "A TCP segment with a wrong checksum.",
        "Look for a failing link, or for somebody who tests what is behind the gateway.";
    TcpFlags, "tcp-flags", "TCP flags that no correct sender combines.",
        "Look for a port scan.";
    TcpOptions, "tcp-options", "Malformed TCP options.",
        "Look for the machine that sends them.";
    TcpNoConnection, "tcp-no-connection", "A TCP segment of a connection that did not begin with a handshake through the gateway.",
        "Nothing if the gateway has just started; set gate.adopt to keep such connections.";
    TcpHandshake, "tcp-handshake", "A segment that has no place in the three-way handshake as it stands.",
        "Nothing if rare; otherwise look for a port scan.";
    TcpSequence, "tcp-sequence", "A TCP segment outside of the receiver's window.",
        "Nothing if rare; otherwise look for somebody who guesses.";
    TcpBehindHole, "tcp-behind-hole", "TCP data behind a hole, and the gateway is told to drop those.",
        "Set gate.out_of_order to retain.";
    TcpRetainedFull, "tcp-retained-full", "The memory for unacknowledged TCP data is used up; the sender sends again.",
        "Raise gate.memory_max_bytes, or see `flows` for who holds it.";
    TcpAcknowledgement, "tcp-acknowledgement", "A TCP segment acknowledges what was never sent.",
        "Look for somebody who guesses; or the path is asymmetric (see `events`).";
    TcpTimestamp, "tcp-timestamp", "A TCP timestamp that every host would refuse as old.",
        "Nothing if rare: late duplicates have them.";
    TcpMss, "tcp-mss", "A TCP segment longer than the receiver said it takes.",
        "Look for the machine that sends them.";
    TcpReset, "tcp-reset", "A TCP reset that is not at exactly the next sequence number.",
        "Look for somebody who guesses; honest hosts are challenged and reset again.";
    TcpFin, "tcp-fin", "TCP data or a FIN behind the end of the stream, or a FIN out of order.",
        "Nothing if rare: the sender sends again.";
    FlowsFull, "flows-full", "As many TCP connections are remembered as may be, all of them established.",
        "Raise gate.flows_max.";
    FlowsOfSource, "flows-of-source", "A host holds as many TCP connections that it opened as one host may.",
        "See `gate flows --address`; for a proxy, or a router that hides many hosts, lower shares.flows.";
    MemoryOfSource, "memory-of-source",
        "The connections of a host, or of an IPv6 network, hold as much memory for unacknowledged data as they may.",
        "See `events` for the host; for a proxy, or a router that hides many hosts, lower shares.memory.";
    FlowsOfNetwork, "flows-of-network",
        "A TCP connection beyond the share of its IPv6 network, or an adopted one beyond its host's.",
        "See `events` for the network; where it is one of many hosts, lower shares.flows.";
    AddressNotValidated, "address-not-validated",
        "A TCP SYN of an untrusted host that has to show first that it receives (shares.half_open).",
        "Nothing: the gateway has asked that host. See `events` and the attack `syn-flood`.";
    GateStandby, "gate-standby", "The other gateway of the pair forwards; this one is on standby.",
        "Nothing: `ringwall status` says which of the two is active.";
    PairMessage, "pair-message", "A message between the gateways of a pair that was forged, repeated, or cut short.",
        "See the pair's refused messages in `ringwall status --json`, and look who is on that segment.";
    FlowSevered, "flow-severed", "The flow was ended by a rule or an operator, or is older than the gateway.",
        "See `events` for which; `gate block` lists what an operator ended.";
    UdpLength, "udp-length", "A UDP datagram whose length contradicts the packet.",
        "Nothing: no correct sender makes such a datagram.";
    UdpChecksum, "udp-checksum", "A UDP datagram with a wrong checksum, or over IPv6 without one.",
        "Look for a failing link, or for somebody who tests what is behind the gateway.";
    IcmpMalformed, "icmp-malformed", "An ICMP message that is cut short or has a wrong checksum.",
        "Nothing: no correct sender makes such a message.";
    IcmpType, "icmp-type", "An ICMP message of a kind that hosts ignore or should.",
        "Switch the rule icmp-types off if both sides need it.";
    IcmpUnsolicited, "icmp-unsolicited", "An ICMP reply or error that nothing from the other side called for.",
        "Nothing if rare; otherwise look for somebody who guesses.";
    IcmpMtu, "icmp-mtu", "An ICMP error that announces an MTU below the least of IP.",
        "Look for somebody who slows connections down.";
    IcmpBroadcast, "icmp-broadcast", "An ICMP echo request to a broadcast or multicast address.",
        "Look for the machine that sends them.";
    IcmpSize, "icmp-size", "An ICMP echo message longer than allowed.",
        "Switch the rule icmp-size off to test with large pings.";
    IcmpRate, "icmp-rate", "An ICMP message of a trusted host sooner after the last one than its timing may show, or more of them wait than may.",
        "Lower gate.icmp_interval, or use jitter.";
    NeighbourDiscovery, "neighbour-discovery", "Neighbour discovery that crossed a router or is fragmented.",
        "Look for the machine that forges it.";

    // A shield in front of IPsec.
    ShieldStranger, "shield-stranger", "IKE, ESP or AH of a host that is no peer of the shield.",
        "List it in shield.peers, or set shield.strangers to pass for peers whose address is not known before.";
    ShieldUnreadable, "shield-unreadable", "A packet to IPsec in which none can be read: cut short, of a contradictory length, a reserved SPI, or behind too many headers.",
        "Nothing: no correct sender makes such a packet.";
    ShieldSpi, "shield-spi", "ESP or AH under an SPI that is not known, and as many of those as may have passed this second.",
        "Look for a flood of forged packets; if all of a peer's packets end here, both ends have different keys or the same end (`ringwall shield keys`).";
    ShieldRange, "shield-range", "ESP or AH under an SPI outside of those that this host's IPsec stack gives out.",
        "As for shield-spi; or shield.spi_min and shield.spi_max are not those of the stack.";
    ShieldReplay, "shield-replay", "ESP or AH whose sequence number has passed already or is too old to tell.",
        "Look for a replay, or for a link that delays packets by thousands.";
    ShieldFar, "shield-far", "ESP or AH whose sequence number is far ahead of all before, and no second packet near it has come.",
        "Nothing if rare: it happens after a long loss.";
    ShieldIkeBudget, "shield-ike-budget", "More IKE of one peer than may pass in a second.",
        "Look for a flood; raise shield.ike_per_second if it is honest.";
    ShieldKeepaliveBudget, "shield-keepalive-budget", "More keepalives of one peer than may pass in a second.",
        "Look for a flood; raise shield.keepalives_per_second if they are honest.";
    ShieldFragmentBudget, "shield-fragment-budget", "More later fragments of UDP, ESP or AH of one peer than may pass in a second.",
        "Look for a flood; raise shield.fragments_per_second if they are honest.";
}

/// Number of drop reasons.
pub const DROP_REASONS: usize = DropReason::ALL.len();

/// One dropped frame, kept as an example for `explain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drop {
    /// Why.
    pub reason: DropReason,
    /// When.
    pub at: Instant,
    /// Where it came from.
    pub from: Side,
    /// Its length in bytes.
    pub len: usize,
    /// Its first bytes.
    pub head: Vec<u8>,
}

/// Bytes of a dropped frame that are kept as an example.
pub const EXAMPLE_BYTES: usize = 64;
/// Examples kept for each reason.
const EXAMPLES_PER_REASON: usize = 4;
/// Least time between two examples of a reason, so that a flood costs nothing but its counter.
const EXAMPLE_INTERVAL: std::time::Duration = std::time::Duration::from_millis(250);

/// The books: what came in and what became of it.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// Frames received, by side.
    pub received: [u64; 2],
    /// Frames forwarded, by the side they came from.
    pub forwarded: [u64; 2],
    /// Frames answered, by the side they came from.
    pub answered: [u64; 2],
    /// Frames consumed, by the side they came from.
    pub consumed: [u64; 2],
    /// Frames held at this moment.
    pub held: u64,
    /// Frames dropped, by reason.
    pub dropped: [u64; DROP_REASONS],
    /// Frames that were let pass although a stricter configuration would have dropped them, by the reason it would have.
    pub excused: [u64; DROP_REASONS],
    /// Frames this bump made itself, by the side they left on.
    pub made: [u64; 2],
    /// Frames written to the ports, by the side they left on; divided by forwarded and made frames it is the segmenting
    /// factor.
    pub emitted: [u64; 2],
    examples: Vec<std::collections::VecDeque<Drop>>,
    witness: Witness,
}

impl Default for Ledger {
    fn default() -> Self {
        Ledger {
            received: [0; 2],
            forwarded: [0; 2],
            answered: [0; 2],
            consumed: [0; 2],
            held: 0,
            dropped: [0; DROP_REASONS],
            excused: [0; DROP_REASONS],
            made: [0; 2],
            emitted: [0; 2],
            examples: vec![std::collections::VecDeque::new(); DROP_REASONS],
            witness: Witness::default(),
        }
    }
}

impl Ledger {
    /// Empty books.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Enters a frame that arrived on side `from`.
    pub fn receive(&mut self, from: Side) {
        point();
        self.received[from as usize] += 1;
    }

    /// Enters the fate of a frame that came from side `from`. `bytes` serve as an example if it was dropped.
    pub fn settle(&mut self, now: Instant, from: Side, fate: Fate, bytes: &[u8]) {
        point();
        match fate {
            Fate::Forwarded => self.forwarded[from as usize] += 1,
            Fate::Answered => self.answered[from as usize] += 1,
            Fate::Held => self.held += 1,
            Fate::Consumed => self.consumed[from as usize] += 1,
            Fate::Dropped(reason) => self.drop_frame(now, from, reason, bytes),
        }
    }

    /// Enters the final fate of a frame that was held.
    pub fn release(&mut self, now: Instant, from: Side, fate: Fate, bytes: &[u8]) {
        self.held = self.held.saturating_sub(1);
        self.settle(now, from, fate, bytes);
    }

    /// Enters what was sealed in a frame that is dropped as a sighting. The frame itself is settled as
    /// any other, and does not show what its sender says of itself.
    pub fn expose(&mut self, now: Instant, from: Side, reason: DropReason, opened: &[u8]) {
        self.witness.see(now, from, reason, opened);
    }

    /// Enters a frame that this bump made itself.
    pub fn make(&mut self, to: Side) {
        point();
        self.made[to as usize] += 1;
        self.emitted[to as usize] += 1;
    }

    /// Counts a frame that is let pass although a stricter configuration would have dropped it for `reason`.
    pub fn excuse(&mut self, reason: DropReason) {
        self.excused[reason as usize] += 1;
    }

    fn drop_frame(&mut self, now: Instant, from: Side, reason: DropReason, bytes: &[u8]) {
        self.dropped[reason as usize] += 1;
        self.witness.see(now, from, reason, bytes);
        let examples = &mut self.examples[reason as usize];
        if examples.back().is_some_and(|last| now.since(last.at) < EXAMPLE_INTERVAL) {
            return;
        }
        if examples.len() == EXAMPLES_PER_REASON {
            examples.pop_front();
        }
        let head = bytes[..bytes.len().min(EXAMPLE_BYTES)].to_vec();
        examples.push_back(Drop { reason, at: now, from, len: bytes.len(), head });
    }

    /// How often frames were dropped for `reason`.
    #[must_use]
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Recent examples of dropped frames, oldest first.
    #[must_use]
    pub fn examples(&self) -> Vec<Drop> {
        let mut all: Vec<Drop> = self.examples.iter().flatten().cloned().collect();
        all.sort_by_key(|drop| drop.at);
        all
    }

    /// Who was dropped lately, each claim once.
    pub fn sightings(&self) -> impl Iterator<Item = &Sighting> {
        self.witness.sightings()
    }

    /// Frames received less frames whose fate is known or that are held: zero whenever no frame is between two parts.
    #[must_use]
    pub fn balance(&self) -> i128 {
        let sum = |counts: &[u64]| counts.iter().map(|&count| i128::from(count)).sum::<i128>();
        sum(&self.received)
            - sum(&self.forwarded)
            - sum(&self.answered)
            - sum(&self.consumed)
            - sum(&self.dropped)
            - i128::from(self.held)
    }

    /// Adds the counts and examples of `other`.
    pub fn add(&mut self, other: &Ledger) {
        let pairs = [
            (&mut self.received, &other.received),
            (&mut self.forwarded, &other.forwarded),
            (&mut self.answered, &other.answered),
            (&mut self.consumed, &other.consumed),
            (&mut self.made, &other.made),
            (&mut self.emitted, &other.emitted),
        ];
        for (mine, theirs) in pairs {
            mine[0] += theirs[0];
            mine[1] += theirs[1];
        }
        self.held += other.held;
        for (mine, theirs) in self.dropped.iter_mut().zip(other.dropped) {
            *mine += theirs;
        }
        for (mine, theirs) in self.excused.iter_mut().zip(other.excused) {
            *mine += theirs;
        }
        for (mine, theirs) in self.examples.iter_mut().zip(&other.examples) {
            mine.extend(theirs.iter().cloned());
        }
        self.witness.add(&other.witness);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique_and_indices_match() {
        let mut words: Vec<_> = DropReason::ALL.iter().map(|reason| reason.word()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), DROP_REASONS);
        for (index, reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, index);
        }
    }

    #[test]
    fn a_held_frame_balances_before_and_after_its_release() {
        let mut ledger = Ledger::new();
        let now = Instant::from_millis(1);
        ledger.receive(Side::STACK);
        assert_eq!(ledger.balance(), 1);
        ledger.settle(now, Side::STACK, Fate::Held, &[]);
        assert_eq!(ledger.balance(), 0);
        ledger.release(now, Side::STACK, Fate::Dropped(DropReason::HoldExpired), &[1, 2, 3]);
        assert_eq!(ledger.balance(), 0);
        assert_eq!(ledger.drops(DropReason::HoldExpired), 1);
        assert_eq!(ledger.examples()[0].head, vec![1, 2, 3]);
    }

    #[test]
    fn a_flood_keeps_few_examples() {
        let mut ledger = Ledger::new();
        for nanos in 0..10_000_u64 {
            ledger.receive(Side::WIRE);
            let fate = Fate::Dropped(DropReason::Runt);
            ledger.settle(Instant::from_nanos(nanos), Side::WIRE, fate, &[0; 13]);
        }
        assert_eq!(ledger.drops(DropReason::Runt), 10_000);
        assert_eq!(ledger.examples().len(), 1);
    }
}
