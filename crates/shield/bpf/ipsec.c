// The checks of the shield in front of IPsec, in the kernel: in front of the daemon's packet socket (record 0040) or of the card's
// receive path (record 0042).
//
// It is the twin of `Shield` in crates/shield/src/ipsec and drops only what that would drop, so that a forged packet ends before it
// costs a copy and a wake-up. Whatever it is not sure of it lets pass, and the daemon decides. The daemon alone says which SPIs
// are known and writes their windows. At the socket it stands in the place of the filter that keeps IPsec for the daemon
// (`Kept::Ipsec`), so it says first what is kept. `make.py` turns this file into `ipsec.bpf` and `ipsec.xdp.bpf`; numbers on the
// wire are big-endian, this machine is little-endian.
#include "hook.h"
#include "siphash.h"

// Why a packet is dropped; the order is that of `kernel::COUNTED`.
enum reason { STRANGER, UNREADABLE, RANGE, UNKNOWN, REPLAYED, IKE_BUDGET, KEEPALIVE_BUDGET, FRAGMENT_BUDGET, REASONS, GOOD };

// Names of the maps; their shapes are in `kernel.rs`.
struct map { u32 unused; };
struct map settings SECTION("maps");
struct map peers SECTION("maps");
struct map known SECTION("maps");
struct map windows SECTION("maps");
struct map candidates SECTION("maps");
struct map books SECTION("maps");
struct map exchanges SECTION("maps");

// Budgets of a peer.
enum budget { ON_TRIAL, IKE, KEEPALIVE, FRAGMENT, IKE_BEGUN, IKE_RUNNING, BUDGETS };

enum layer { SOURCE_LAYER = 1, RANGE_LAYER = 2, SPI_LAYER = 4, WINDOW_LAYER = 8, BUDGET_LAYER = 16 };

// What the operator decided. One entry.
struct settings {
    u32 spi_min, spi_max;
    u32 layers;
    u32 joined_unmarked; // several datagrams may have been joined, and nothing says so
    u64 interval_ns[BUDGETS]; // between two packets of a budget
    u64 burst_ns[BUDGETS];
};

enum { EPOCHS_MAX = 2 };

// What is known of an address, which is the key of its map; IPv4 stands as ::ffff:a.b.c.d.
struct peer {
    u32 number; // from one
    u8 has_shield, epochs;
    u8 has_laps; // an association may be past 2^31 packets
    u8 reserved;
    u64 keys[EPOCHS_MAX][2]; // of SipHash, each half little-endian
};

struct name { u32 peer, spi; };
struct association { u32 slot; }; // of its window, or NO_WINDOW

enum { NO_WINDOW = 0xffffffff, WINDOW_PACKETS = 1024, WINDOW_WORDS = WINDOW_PACKETS / 64, NEAR_PACKETS = 1 << 16 };
struct window { u64 highest; u64 passed[WINDOW_WORDS]; };

struct candidate { u32 peer, spi; u64 sequence; };
enum { CANDIDATE_BITS = 16, GOLDEN = 0x9e3779b1 };

// How a message of IKE is known, and by what: two SPIs, or one and the end of a cookie (`ike.rs`).
enum standing { RUNNING = 1, OPENED, ANSWERED, COOKIE };
struct exchange { u32 peer, standing; u64 initiator, other; };

// One entry for each peer; number 0 is that of strangers. A budget is full at the time that stands here.
struct books { u64 dropped[REASONS]; u64 full_at_ns[BUDGETS]; };

// What says whether it is kept begins a header: so much of IPv4, so much of IPv6.
enum { IPV4_KEPT_LEN = 10, IPV6_KEPT_LEN = 7 };
enum { ETHERNET_LEN = 14, IPV4_LEN = 20, IPV6_LEN = 40, UDP_LEN = 8, ESP_LEN = 8 };
enum { IPV4 = 0x0800, IPV6 = 0x86dd };
enum { UDP = 17, ROUTING = 43, FRAGMENTED = 44, ESP = 50, AUTHENTICATION = 51, OPTIONS = 60, MOBILITY = 135, HIP = 139, SHIM6 = 140 };
enum { IKE_PORT = 500, NAT_TRAVERSAL_PORT = 4500 };
enum { HEADERS_MAX = 8, LOWEST_SPI = 256 };
enum { MARKER_LEN = 4, IKE_LEN = 28, NOTIFY_LEN = 8, NOTIFY = 41, COOKIE_TYPE = 16390, MARK_LEN = 8, COOKIE_MAX = 64 };

struct udp { u16 source, port, len, checksum; };
struct esp { u32 index, sequence; };
struct ike { u64 initiator, responder; u8 next, version, exchange, flags; u32 message, len; };
struct notify { u8 next, critical; u16 len; u8 protocol, spi_len; u16 type; };

// What a packet is. Of NOT_KEPT the daemon never hears, of NO_IPSEC it says that it may pass.
enum kind { NOT_KEPT, NO_IPSEC, IS_ESP, IS_IKE, IS_KEEPALIVE, LATER_FRAGMENT, CANNOT_READ };

struct found {
    u32 source[4];
    u32 esp_at;
    u32 is_datagram; // which are the ones that may have been joined
    u32 ike_at;
};

INLINE int is_port_of_ipsec(u16 port) { return port == big16(IKE_PORT) || port == big16(NAT_TRAVERSAL_PORT); }

INLINE int is_options_like(u8 header) {
    return header == 0 || header == ROUTING || header == OPTIONS || header == MOBILITY || header == HIP || header == SHIM6;
}

INLINE enum kind find_esp(struct found *found, u32 at, u32 end) {
    found->esp_at = at;
    return at + ESP_LEN > end ? CANNOT_READ : IS_ESP;
}

// A datagram that begins at `start`, of a packet that ends at `end`.
INLINE enum kind find_in_udp(context *packet, struct found *found, u32 start, u32 end, int is_first_fragment) {
    struct udp udp;
    u32 marker, said;

    found->is_datagram = 1;
    if (start + UDP_LEN > end || load(packet, start, &udp, UDP_LEN))
        return CANNOT_READ;
    found->ike_at = start + UDP_LEN;
    if (udp.source != big16(NAT_TRAVERSAL_PORT) && udp.port != big16(NAT_TRAVERSAL_PORT))
        return is_port_of_ipsec(udp.source) || is_port_of_ipsec(udp.port) ? IS_IKE : NO_IPSEC;
    said = start + big16(udp.len);
    if (is_first_fragment && said > end)
        said = end;
    start += UDP_LEN;
    if (said > end || start > said)
        return CANNOT_READ;
    if (said - start < 4) {
        u8 byte = 0;
        if (said - start == 1 && !load(packet, start, &byte, 1) && byte == 0xff)
            return IS_KEEPALIVE;
        return CANNOT_READ;
    }
    if (load(packet, start, &marker, 4))
        return CANNOT_READ;
    found->ike_at = start + MARKER_LEN;
    return marker ? find_esp(found, start, said) : IS_IKE;
}

INLINE enum kind find_content(context *packet, struct found *found, u8 protocol, u32 start, u32 end, int is_first) {
    if (protocol == ESP)
        return find_esp(found, start, end);
    if (protocol == UDP)
        return find_in_udp(packet, found, start, end, is_first);
    return NO_IPSEC;
}

// Whether the two ports that stand at `at` are those of IPsec; what is cut before them is not kept.
INLINE int has_port(context *packet, u32 at) {
    u16 ports[2];

    if (load(packet, at, &ports[0], 2))
        return 0;
    if (is_port_of_ipsec(ports[0]))
        return 1;
    return !load(packet, at + 2, &ports[1], 2) && is_port_of_ipsec(ports[1]);
}

struct ipv4 { u8 version, service; u16 total_len, identification, fragment; u8 ttl, protocol; u16 checksum; u32 source, destination; };

INLINE enum kind find_v4(context *packet, struct found *found) {
    struct ipv4 header;
    u32 header_len, end;
    u16 offset;

    if (load(packet, ETHERNET_LEN, &header, IPV4_KEPT_LEN))
        return NOT_KEPT;
    offset = header.fragment & big16(0x1fff);
    header_len = (header.version & 0x0f) * 4;
    if (header.protocol != ESP) {
        if (header.protocol != UDP)
            return NOT_KEPT;
        if (!offset && !has_port(packet, ETHERNET_LEN + header_len))
            return NOT_KEPT;
    }
    if (load(packet, ETHERNET_LEN, &header, IPV4_LEN))
        return NO_IPSEC;
    if (header.version >> 4 != 4 || header_len < IPV4_LEN || ETHERNET_LEN + header_len > len_of(packet))
        return NO_IPSEC;
    found->source[2] = big32(0xffff);
    found->source[3] = header.source;
    if (offset)
        return LATER_FRAGMENT;
    end = ETHERNET_LEN + big16(header.total_len);
    if (end > len_of(packet))
        end = len_of(packet);
    return find_content(packet, found, header.protocol, ETHERNET_LEN + header_len, end, header.fragment & big16(0x2000));
}

struct ipv6 { u32 version; u16 payload_len; u8 next, hops; u32 source[4], destination[4]; };

INLINE enum kind find_v6(context *packet, struct found *found) {
    u32 start = ETHERNET_LEN + IPV6_LEN, end;
    struct ipv6 header;
    int is_first = 0, turn;
    u8 next;

    if (load(packet, ETHERNET_LEN, &header, IPV6_KEPT_LEN))
        return NOT_KEPT;
    next = header.next;
    if (next == UDP) {
        if (!has_port(packet, start))
            return NOT_KEPT;
    } else if (next != ESP && next != FRAGMENTED && next != AUTHENTICATION && !is_options_like(next)) {
        return NOT_KEPT;
    }
    if (load(packet, ETHERNET_LEN, &header, IPV6_LEN) || (header.version & 0xf0) != 0x60)
        return NO_IPSEC;
    __builtin_memcpy(found->source, header.source, 16);
    end = start + big16(header.payload_len);
    if (end > len_of(packet))
        end = len_of(packet);
    for (turn = 0; turn <= HEADERS_MAX; turn++) {
        u8 head[8] = {};

        if (start > end)
            return CANNOT_READ;
        if (next != FRAGMENTED && next != AUTHENTICATION && !is_options_like(next))
            return find_content(packet, found, next, start, end, is_first);
        if (next == FRAGMENTED) {
            if (start + 8 > end || load(packet, start, head, 8))
                return CANNOT_READ;
            if (head[2] || head[3] & 0xf8) {
                next = head[0];
                return next == AUTHENTICATION || is_options_like(next) || next == UDP || next == ESP ? LATER_FRAGMENT : NO_IPSEC;
            }
            is_first |= head[3] & 1;
            start += 8;
        } else {
            if (start + 2 > end || load(packet, start, head, 2))
                return CANNOT_READ;
            start += next == AUTHENTICATION ? (head[1] + 2) * 4 : (head[1] + 1) * 8;
        }
        next = head[0];
    }
    return CANNOT_READ;
}

INLINE enum kind find_packet(context *packet, struct found *found) {
    u16 ethertype;

    if (load(packet, ETHERNET_LEN - 2, &ethertype, 2))
        return NOT_KEPT;
    if (ethertype == big16(IPV4))
        return find_v4(packet, found);
    return ethertype == big16(IPV6) ? find_v6(packet, found) : NOT_KEPT;
}

// The round function of the permutation: eleven bytes, of which the first eight are in `s` already.
INLINE u16 round_of(struct state s, u32 number, u16 half) {
    return finish(&s, 11, number << 16 | big16(half));
}

// What stands behind `index`; below LOWEST_SPI if the walk goes on, which is the daemon's affair.
INLINE u32 turn_back(const u64 key[2], u32 index, u32 sequence) {
    struct state s = begin(key);
    u16 left = index >> 16, right = index, before;
    int number;

    absorb(&s, (u64)big32(sequence) << 32);
#pragma unroll
    for (number = 3; number >= 0; number--) {
        before = left;
        left = right ^ round_of(s, number, left);
        right = before;
    }
    return (u32)left << 16 | right;
}

INLINE int take(struct books *of, const struct settings *own, enum budget which) {
    u64 now = nanoseconds(), after = of->full_at_ns[which];

    if (after < now)
        after = now;
    after += own->interval_ns[which];
    if (after - now > own->burst_ns[which])
        return 0;
    of->full_at_ns[which] = after;
    return 1;
}

// A number that has passed, or is too old to tell.
INLINE int is_used(const struct association *association, u32 sequence) {
    u32 slot = association->slot;
    struct window *window = slot == NO_WINDOW ? 0 : find(&windows, &slot);

    if (!window || sequence > window->highest)
        return 0;
    if (window->highest - sequence >= WINDOW_PACKETS)
        return 1;
    return window->passed[sequence / 64 % WINDOW_WORDS] >> sequence % 64 & 1;
}

// Whether this is the second packet of its association. What was confirmed is remembered, until the daemon knows it.
INLINE int confirms(u32 peer, u32 spi, u32 sequence) {
    u32 place = ((spi ^ (peer << 16 | peer >> 16)) * GOLDEN) >> (32 - CANDIDATE_BITS);
    struct candidate *entry = find(&candidates, &place);
    u64 distance;
    int is_near;

    if (!entry)
        return 1;
    distance = entry->sequence > sequence ? entry->sequence - sequence : sequence - entry->sequence;
    is_near = entry->peer == peer && entry->spi == spi && distance <= NEAR_PACKETS;
    if (is_near && !distance)
        return 0;
    entry->peer = peer;
    entry->spi = spi;
    entry->sequence = sequence;
    return is_near;
}

INLINE int is_in_range(const struct settings *own, u32 spi) {
    return !(own->layers & RANGE_LAYER) || (spi >= own->spi_min && spi <= own->spi_max);
}

// A peer with a shield.
INLINE enum reason judge_turned(const struct settings *own, const struct peer *peer, struct books *of, u32 index, u32 sequence) {
    struct name name = {peer->number, 0};
    u32 spis[EPOCHS_MAX] = {};
    int epoch, likely = 0;

    // Only the daemon knows in which lap a number may be.
    if (peer->has_laps)
        return GOOD;
#pragma unroll
    for (epoch = 0; epoch < EPOCHS_MAX; epoch++) {
        struct association *association;
        if (epoch >= peer->epochs)
            break;
        spis[epoch] = name.spi = turn_back(peer->keys[epoch], index, sequence);
        if (name.spi < LOWEST_SPI)
            return GOOD;
        association = find(&known, &name);
        if (association)
            return own->layers & WINDOW_LAYER && is_used(association, sequence) ? REPLAYED : GOOD;
    }
#pragma unroll
    for (epoch = 0; epoch < EPOCHS_MAX; epoch++) {
        if (epoch >= peer->epochs || !is_in_range(own, spis[epoch]))
            continue;
        likely = 1;
        if (confirms(peer->number, spis[epoch], sequence))
            return GOOD;
    }
    if (!likely)
        return RANGE;
    return own->layers & SPI_LAYER && !take(of, own, ON_TRIAL) ? UNKNOWN : GOOD;
}

// A peer without one: two packets prove nothing, and there is no window.
INLINE enum reason judge_plain(const struct settings *own, const struct peer *peer, struct books *of, u32 spi) {
    struct name name = {peer->number, spi};

    if (find(&known, &name))
        return GOOD;
    if (!is_in_range(own, spi))
        return RANGE;
    return own->layers & SPI_LAYER && !take(of, own, ON_TRIAL) ? UNKNOWN : GOOD;
}

INLINE int is_known(u32 peer, enum standing standing, u64 initiator, u64 other) {
    struct exchange name = {peer, standing, initiator, other};

    return find(&exchanges, &name) != 0;
}

// The budget of a message of IKE, by what the daemon has seen this host's stack send before.
INLINE enum budget budget_of(context *packet, u32 peer, u32 at) {
    struct ike ike = {};
    struct notify notify = {};
    u64 mark = 0;
    u32 len;

    if (load(packet, at, &ike, IKE_LEN))
        return IKE;
    if (ike.responder) {
        if (is_known(peer, RUNNING, ike.initiator, ike.responder))
            return IKE_RUNNING;
        if (is_known(peer, ANSWERED, ike.initiator, ike.responder))
            return IKE_BEGUN;
    } else if (ike.next == NOTIFY && !load(packet, at + IKE_LEN, &notify, NOTIFY_LEN)) {
        len = big16(notify.len);
        if (notify.type == big16(COOKIE_TYPE) && !notify.spi_len && len >= NOTIFY_LEN + MARK_LEN && len <= NOTIFY_LEN + COOKIE_MAX &&
            !load(packet, at + IKE_LEN + len - MARK_LEN, &mark, MARK_LEN) && is_known(peer, COOKIE, ike.initiator, mark))
            return IKE_BEGUN;
    }
    return is_known(peer, OPENED, ike.initiator, 0) ? IKE_BEGUN : IKE;
}

INLINE enum reason judge(context *packet, const struct settings *own, const struct peer *peer, struct books *of,
                         enum kind kind, const struct found *found) {
    struct esp esp;

    if (kind == CANNOT_READ)
        return UNREADABLE;
    if (kind != IS_ESP) {
        enum budget which = kind == IS_IKE ? budget_of(packet, peer->number, found->ike_at) : kind == IS_KEEPALIVE ? KEEPALIVE : FRAGMENT;
        enum reason refused = kind == IS_IKE ? IKE_BUDGET : kind == IS_KEEPALIVE ? KEEPALIVE_BUDGET : FRAGMENT_BUDGET;
        return own->layers & BUDGET_LAYER && !take(of, own, which) ? refused : GOOD;
    }
    if (load(packet, found->esp_at, &esp, ESP_LEN))
        return GOOD;
    if (big32(esp.index) < LOWEST_SPI)
        return UNREADABLE;
    if (peer->has_shield)
        return judge_turned(own, peer, of, big32(esp.index), big32(esp.sequence));
    return judge_plain(own, peer, of, big32(esp.index));
}

SECTION("hook")
int shield(context *packet) {
    struct found found = {};
    u32 zero = 0, number = 0;
    struct settings *own = find(&settings, &zero);
    enum kind kind = find_packet(packet, &found);
    enum reason reason;
    struct peer *peer;
    struct books *of;

    if (kind == NOT_KEPT)
        return NOT_FOR_US;
    // A tag or a super-frame is the daemon's affair.
    if (kind == NO_IPSEC || !own || has_tag(packet) || may_be_joined(packet, found.is_datagram && own->joined_unmarked))
        return PASS;
    peer = find(&peers, found.source);
    if (peer)
        number = peer->number;
    of = find(&books, &number);
    if (!of)
        return PASS;
    if (peer)
        reason = judge(packet, own, peer, of, kind, &found);
    else
        reason = kind == LATER_FRAGMENT || !(own->layers & SOURCE_LAYER) ? GOOD : STRANGER;
    if (reason >= REASONS)
        return PASS;
    __sync_fetch_and_add(&of->dropped[reason], 1);
    return DROP;
}
