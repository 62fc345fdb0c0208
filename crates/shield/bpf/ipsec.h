// What the programs in front of an IPsec stack have in common: the maps, where a packet has its SPI, what stands behind an index, which
// numbers have passed, and which packets go on to the stack without the daemon (record 0055).
//
// The daemon alone says which SPIs are known. A window is written by whoever passes a packet, the daemon or the program in `onward.c`,
// at the same time if need be. Numbers on the wire are big-endian, this machine is little-endian.
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
    u32 outer;  // the interface whose other end is the stack's, if the third program is there
    u32 judged; // in front of the card, so that the socket only asks who passes it on
};

enum { EPOCHS_MAX = 2, SIEVE_WORDS = 8 };

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

enum { NO_WINDOW = 0xffffffff, WINDOW_PACKETS = 1024, NEAR_PACKETS = 1 << 16 };
// Twice as many blocks as the window has, so that none is written over that still counts.
enum { BLOCK_PACKETS = 32, BLOCKS = 2 * WINDOW_PACKETS / BLOCK_PACKETS, ATTEMPTS = 4 };
// A block is its number, above, and the bits of the packets in it that have passed.
struct window { u64 highest; u64 blocks[BLOCKS]; };

// Its place and `rest` together are its SPI.
struct candidate { u16 peer, rest; u32 sequence; };
enum { CANDIDATE_BITS = 16, GOLDEN = 0x9e3779b1 };
_Static_assert(CANDIDATE_BITS >= 16, "the place and the rest say all of an SPI");

// How a message of IKE is known, and by what: two SPIs, or one and the end of a cookie (`ike.rs`).
enum standing { RUNNING = 1, OPENED, ANSWERED, COOKIE };
struct exchange { u32 peer, standing; u64 initiator, other; };

// One entry for each peer; number 0 is that of strangers. A budget is full at the time that stands here.
// Each known SPI has its bit in `sieve`. Most forged ones have none there, and are spared the map, where each would wait for another
// place of 4 MiB.
struct books { u64 dropped[REASONS]; u64 full_at_ns[BUDGETS]; u64 passed; u64 sieve[SIEVE_WORDS]; };
enum { SIEVE_WORD_BITS = 64 };

// What says whether it is kept begins a header: so much of IPv4, so much of IPv6.
enum { IPV4_KEPT_LEN = 10, IPV6_KEPT_LEN = 7 };
enum { ETHERNET_LEN = 14, IPV4_LEN = 20, IPV6_LEN = 40, UDP_LEN = 8, UDP_CHECKSUM_AT = 6, ESP_LEN = 8, AH_FRONT_LEN = 4 };
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
enum kind { NOT_KEPT, NO_IPSEC, IS_ESP, IS_IKE, IS_KEEPALIVE, LATER_FRAGMENT, CANNOT_READ, UNUSUAL };

struct found {
    u32 source[4];
    u32 esp_at;
    u32 checksum_at; // of the datagram that it is in, or 0
    u32 is_datagram; // which are the ones that may have been joined
    u32 ike_at;
    u32 has_esp; // read already
    struct esp esp;
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
    found->checksum_at = start + UDP_CHECKSUM_AT;
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
    // SPI and sequence number as in ESP, four bytes further on.
    if (protocol == AUTHENTICATION)
        return find_esp(found, start + AH_FRONT_LEN, end);
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
    if (header.protocol != ESP && header.protocol != AUTHENTICATION) {
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
        if (next != FRAGMENTED && !is_options_like(next))
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
            start += (head[1] + 1) * 8;
        }
        next = head[0];
    }
    return CANNOT_READ;
}

// The first headers where all is as usual: no options, no extensions, no fragments.
struct content {
    union {
        struct esp esp;
        struct { struct udp header; struct esp esp; } udp;
    };
};
union usual {
    struct first_bytes bytes;
    struct {
        u16 tail_of_addresses, ethertype;
        union {
            struct { struct ipv4 ip; struct content content; } v4;
            struct { struct ipv6 ip; struct content content; } v6;
        };
    };
};

INLINE enum kind find_in_usual_udp(struct found *found, const struct content *content, u32 at, u32 end) {
    const struct udp *udp = &content->udp.header;
    u32 start = at + UDP_LEN, said = at + big16(udp->len);
    int is_native = udp->source != big16(NAT_TRAVERSAL_PORT) && udp->port != big16(NAT_TRAVERSAL_PORT);

    if (is_native && !is_port_of_ipsec(udp->source) && !is_port_of_ipsec(udp->port))
        return NOT_KEPT;
    if (!is_native && (said > end || said < start + ESP_LEN))
        return UNUSUAL;
    found->is_datagram = 1;
    found->checksum_at = at + UDP_CHECKSUM_AT;
    found->ike_at = is_native ? start : start + MARKER_LEN;
    // In the place of the index IKE has zeros.
    if (is_native || !content->udp.esp.index)
        return IS_IKE;
    found->esp = content->udp.esp;
    found->esp_at = start;
    found->has_esp = 1;
    return IS_ESP;
}

INLINE enum kind find_in_usual(struct found *found, const struct content *content, u8 protocol, u32 at, u32 end) {
    if (protocol == UDP)
        return find_in_usual_udp(found, content, at, end);
    found->esp = content->esp;
    found->esp_at = at;
    found->has_esp = 1;
    return IS_ESP;
}

// What nearly every packet is, read at once; what is UNUSUAL is read step by step. Both come to the same.
INLINE enum kind find_usual(context *packet, struct found *found) {
    union usual usual;
    u32 end;

    if (load_first(packet, &usual.bytes))
        return UNUSUAL;
    if (usual.ethertype == big16(IPV4)) {
        const struct ipv4 *ip = &usual.v4.ip;
        if (ip->protocol == AUTHENTICATION)
            return UNUSUAL;
        if (ip->protocol != ESP && ip->protocol != UDP)
            return NOT_KEPT;
        end = ETHERNET_LEN + big16(ip->total_len);
        if (ip->version != 0x45 || ip->fragment & big16(0x3fff) || end > first_piece_of(packet) ||
            end < ETHERNET_LEN + IPV4_LEN + ESP_LEN)
            return UNUSUAL;
        found->source[2] = big32(0xffff);
        found->source[3] = ip->source;
        return find_in_usual(found, &usual.v4.content, ip->protocol, ETHERNET_LEN + IPV4_LEN, end);
    }
    if (usual.ethertype == big16(IPV6)) {
        const struct ipv6 *ip = &usual.v6.ip;
        end = ETHERNET_LEN + IPV6_LEN + big16(ip->payload_len);
        if ((ip->next != ESP && ip->next != UDP) || (ip->version & 0xf0) != 0x60 || end > first_piece_of(packet) ||
            end < ETHERNET_LEN + IPV6_LEN + ESP_LEN)
            return UNUSUAL;
        __builtin_memcpy(found->source, ip->source, 16);
        return find_in_usual(found, &usual.v6.content, ip->next, ETHERNET_LEN + IPV6_LEN, end);
    }
    return NOT_KEPT;
}

INLINE enum kind find_packet(context *packet, struct found *found) {
    enum kind kind = find_usual(packet, found);
    u16 ethertype;

    if (kind != UNUSUAL)
        return kind;
    if (load(packet, ETHERNET_LEN - 2, &ethertype, 2))
        return NOT_KEPT;
    if (ethertype == big16(IPV4))
        return find_v4(packet, found);
    return ethertype == big16(IPV6) ? find_v6(packet, found) : NOT_KEPT;
}

INLINE int esp_of(context *packet, const struct found *found, struct esp *esp) {
    if (!found->has_esp)
        return load(packet, found->esp_at, esp, ESP_LEN);
    *esp = found->esp;
    return 0;
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

INLINE struct association *find_known(const struct books *of, const struct name *name) {
    u32 bit = name->spi % (SIEVE_WORDS * SIEVE_WORD_BITS);

    return of->sieve[bit / SIEVE_WORD_BITS] >> bit % SIEVE_WORD_BITS & 1 ? find(&known, name) : 0;
}

INLINE u64 *block_of(struct window *window, u32 sequence) { return &window->blocks[sequence / BLOCK_PACKETS % BLOCKS]; }

// How many blocks ahead of the packet's own the one is that stands in its place.
INLINE int blocks_ahead(u64 block, u32 sequence) { return (int)((u32)(block >> 32) - sequence / BLOCK_PACKETS); }

INLINE u64 bit_of(u32 sequence) { return 1ULL << sequence % BLOCK_PACKETS; }

INLINE struct window *window_of(const struct association *association) {
    u32 slot = association->slot;

    return slot == NO_WINDOW ? 0 : find(&windows, &slot);
}

// A number that has passed, or is too old to tell.
INLINE int is_used(struct window *window, u32 sequence) {
    u64 highest = *(volatile u64 *)&window->highest, block = *(volatile u64 *)block_of(window, sequence);
    int ahead = blocks_ahead(block, sequence);

    if (sequence > highest)
        return 0;
    return highest - sequence >= WINDOW_PACKETS || ahead > 0 || (!ahead && block & bit_of(sequence));
}

#ifndef XDP

// What a packet that needs no daemon is to become.
struct onward { struct window *window; struct esp esp; u32 spi; };

// Whether the third program hands the packet to the stack: the next one, or a late one, of an association whose window it sees.
INLINE int goes_onward(context *packet, const struct settings *own, const struct peer *peer, const struct books *of,
                       const struct found *found, struct onward *onward) {
    struct name name = {peer->number, 0};
    u32 index, sequence;
    int epoch;

    if (!own->outer || !is_to_us(packet) || !peer->has_shield || peer->has_laps || esp_of(packet, found, &onward->esp))
        return 0;
    index = big32(onward->esp.index);
    sequence = big32(onward->esp.sequence);
    // From 2^31 on the daemon says which lap it is.
    if (index < LOWEST_SPI || sequence >> 31)
        return 0;
#pragma unroll
    for (epoch = 0; epoch < EPOCHS_MAX; epoch++) {
        struct association *association;
        if (epoch >= peer->epochs)
            break;
        name.spi = turn_back(peer->keys[epoch], index, sequence);
        if (name.spi < LOWEST_SPI)
            return 0;
        association = find_known(of, &name);
        if (!association)
            continue;
        onward->spi = big32(name.spi);
        onward->window = window_of(association);
        return onward->window && !is_used(onward->window, sequence) &&
               (sequence <= onward->window->highest || sequence - onward->window->highest <= NEAR_PACKETS);
    }
    return 0;
}

#endif
