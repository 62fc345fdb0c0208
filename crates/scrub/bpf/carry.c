// Clean segments of established TCP connections, carried from one card of a gateway to the other
// without the daemon (record 0123).
//
// The same source is two programs. In front of the daemon's socket it looks whether a segment is
// clean and its connection is carried; then it takes the half in hand and withholds the frame from
// the socket. With INGRESS defined it runs next, on the same frame and processor, behind all
// sockets: it keeps the bytes, rewrites the header as the engine would and sends the frame out.
// Whatever is not clean goes to the daemon, which takes the connection back first.
//
// `make.py` of the shield's programs turns this file into `carry.bpf` and `carry.onward.bpf`.
#include "../../shield/bpf/hook.h"

typedef __s32 s32;
typedef __s64 s64;

// These are the numbers of `scrub::carried::layout`.
enum { SLOT_BITS = 10, POOL_LEN = 64 << 20, PLAIN_MAX = 9216 };
enum { ROOM_LEN = 1 << 14, CHUNK = 512, WORD_LEN = 8, LOOKS_MAX = 1024 };
// A clean segment takes a processor two microseconds or so.
enum { WAITS_MAX = 512, WAIT_MAX_NS = 20000, WAIT_PAUSE_NS = 100 * WAIT_MAX_NS };
// Bytes of a hole behind which data is carried: more than a processor has in its queue when another
// overtakes it.
enum { HOLE_MAX = 1 << 20 };
enum { TRUSTED, UNTRUSTED };
enum lock { OF_DAEMON, FREE, IN_HAND };
enum { HAS_STAMPS = 1, HAS_BLOCKS = 2 };
// Of a half: new data has passed in order, so nothing of it waits for the daemon; a segment without
// data has come behind all of it.
enum { RUNS = 1, IS_REACHED = 2 };
enum { ZERO_IDENTIFICATION = 1, SET_LABEL = 2, RAISE_HOP_LIMIT = 4, KEEPS_BEHIND_HOLE = 8, KNOWS_BLOCKS = 16 };

// Names of the maps; their shapes are in `scrub::carried::layout`.
struct map { u32 unused; };
struct map settings SECTION("maps");
struct map entries SECTION("maps");
struct map pool SECTION("maps");
struct map hands SECTION("maps");

// Hop limits: the largest that leaves to the untrusted side, and the least that is not looked at
// twice.
struct settings { u32 interfaces[2], rules; u8 hop_limit_max, hops_behind, padding[2]; u64 seed; };

// What one host sends, in its own numbers. Fields are written with the half in hand of whoever
// sends: what is acknowledged and granted of a half with that of its peer.
struct half {
    u64 lock;
    u32 in_sequence, unacknowledged;
    u32 edge, window_max;
    u32 stamp, ring_at;
    // Zero where the sender is believed and nothing is kept.
    u32 ring_mask;
    u16 piece_max;
    u8 scale, told_scale;
    u32 packets, bad_checksums;
    u64 bytes;
    // What went on behind a hole, if it is not zero: its first number, and the next one above.
    // Others read it without the half in hand, so it is one word.
    u64 island;
};

// Of the trusted host, then of the other.
struct key { u32 addresses[8]; u32 ports, version; };
enum { KEY_WORDS = 5 };

struct entry {
    struct key key;
    u32 shift, stamp_shift;
    u32 label;
    u8 options, hop_limit, marks[2];
    // Segments that could not be read or written, by side.
    u32 failed[2];
    struct half halves[2];
};

// Of one processor: the segment on its way from the first program to the second (place, side and a
// bit that says so; sequence number and length), until when it waits for nothing, and room in which
// the segment is summed.
struct hand { u64 segment, extent, hurries_until; u8 room[ROOM_LEN + CHUNK]; };

static u32 (*const processor)(void) = (void *)BPF_FUNC_get_smp_processor_id;

enum { ETHERNET_LEN = 14, IPV4_LEN = 20, IPV6_LEN = 40, TCP_LEN = 20, STAMPS_LEN = 12 };
enum { BLOCK_LEN = 8, BLOCKS_MAX = 4, BLOCKS_HEAD_LEN = 4 };
enum { PADDED_LEN = 60, LEN_MAX = 0xffff };
enum { IPV4 = 0x0800, IPV6 = 0x86dd, TCP = 6 };
enum { PUSH = 0x08, ACKNOWLEDGES = 0x10, FLAGS = 0xfff };
enum { STAMPS = 0x0101080a, BLOCKS = 0x01010502 };
enum { RESERVED_OR_FRAGMENT = 0xbfff, DONT_FRAGMENT = 0x4000 };

// One bit for each class of RFC 2474 that is assigned, as in `scrub::ip::class`.
#define ASSIGNED_CLASSES 0x0101715555555503ULL

// Ethernet, and the first 40 bytes behind it.
struct front { u8 aligns[2], to[6], from[6]; u16 ethertype; u32 ip[10]; };
struct tcp { u16 ports[2]; u32 sequence, acknowledgement; u16 flags, window, checksum, urgent; };
struct stamps { u32 kind, value, echo; };
// Of a selective acknowledgement (RFC 2018, section 3).
struct block { u32 left, right; };

// A segment as both programs read it; numbers as they stand in the frame.
struct segment {
    struct front front;
    struct tcp tcp;
    struct stamps stamps;
    struct block blocks[BLOCKS_MAX];
    struct key key;
    u32 from, at, blocks_at, blocks_len, data_at, data_len, ip_len;
};

// Hides from the compiler what it knows of a value, so that it keeps a limit that the verifier has
// to see.
#define forget(x) asm volatile("" : "+r"(x))

INLINE u32 folded(u64 sum) {
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

INLINE int is_ahead(u32 a, u32 b) { return (s32)(a - b) > 0; }

INLINE int has_assigned_class(u32 field) { return ASSIGNED_CLASSES >> (field >> 2 & 63) & 1; }

// Reads the IPv4 header; -1 if it is anything but plain.
INLINE int read_ipv4(struct segment *seen, u32 len) {
    const u8 *ip = (const u8 *)seen->front.ip;
    const u16 *halves = (const u16 *)ip;
    u32 total = big16(halves[1]), sum = 0;

    for (int at = 0; at < IPV4_LEN / 2; at++)
        sum += halves[at];
    if (ip[0] != 0x45 || total < IPV4_LEN + TCP_LEN || ip[9] != TCP)
        return -1;
    if (folded(sum) != 0xffff || !has_assigned_class(ip[1]))
        return -1;
    // Short frames are padded.
    if (total + ETHERNET_LEN != len && (len != PADDED_LEN || total + ETHERNET_LEN > len))
        return -1;
    if (halves[3] & big16(RESERVED_OR_FRAGMENT))
        return -1;
    // One that may be fragmented gets an identification that only the daemon has.
    if (seen->from == TRUSTED && !(halves[3] & big16(DONT_FRAGMENT)))
        return -1;
    seen->key.addresses[0] = seen->from == TRUSTED ? seen->front.ip[3] : seen->front.ip[4];
    seen->key.addresses[4] = seen->from == TRUSTED ? seen->front.ip[4] : seen->front.ip[3];
    seen->key.version = 4;
    seen->ip_len = IPV4_LEN;
    seen->data_len = total - IPV4_LEN;
    return 0;
}

INLINE int read_ipv6(struct segment *seen, u32 len) {
    u32 first = big32(seen->front.ip[0]), second = big32(seen->front.ip[1]);

    if (first >> 28 != 6 || (second >> 8 & 0xff) != TCP || !has_assigned_class(first >> 20 & 0xff))
        return -1;
    if ((second >> 16) + IPV6_LEN + ETHERNET_LEN != len)
        return -1;
    for (int at = 0; at < 4; at++) {
        u32 source = seen->front.ip[2 + at], destination = seen->front.ip[6 + at];

        seen->key.addresses[at] = seen->from == TRUSTED ? source : destination;
        seen->key.addresses[4 + at] = seen->from == TRUSTED ? destination : source;
    }
    seen->key.version = 6;
    seen->ip_len = IPV6_LEN;
    seen->data_len = second >> 16;
    return 0;
}

INLINE u8 *hop_limit_of(struct segment *seen) {
    return (u8 *)seen->front.ip + (seen->ip_len == IPV4_LEN ? 8 : 7);
}

// Reads blocks of selective acknowledgement that are all that is left of the options; -1 if it is
// anything else.
INLINE int read_blocks(context *packet, struct segment *seen, u32 options_len) {
    u32 at = seen->at + TCP_LEN + (seen->stamps.kind ? STAMPS_LEN : 0), head;

    seen->blocks_at = at + BLOCKS_HEAD_LEN;
    seen->blocks_len = options_len - BLOCKS_HEAD_LEN;
    if (load(packet, at, &head, BLOCKS_HEAD_LEN) < 0 || big32(head) != BLOCKS + seen->blocks_len)
        return -1;
    if (seen->blocks_len & (BLOCK_LEN - 1) || seen->blocks_len > BLOCKS_MAX * BLOCK_LEN)
        return -1;
    for (u32 block = 0; block < BLOCKS_MAX && block * BLOCK_LEN < seen->blocks_len; block++)
        if (load(packet, seen->blocks_at + block * BLOCK_LEN, &seen->blocks[block], BLOCK_LEN) < 0)
            return -1;
    return seen->blocks_len ? 0 : -1;
}

// Reads the header of TCP; -1 if it is anything but an acknowledgement, with data or without, that
// has no options but timestamps and, behind them, selective acknowledgements.
INLINE int read_tcp(context *packet, struct segment *seen) {
    u32 header_len, options_len;

    seen->at = ETHERNET_LEN + seen->ip_len;
    if (load(packet, seen->at, &seen->tcp, TCP_LEN) < 0)
        return -1;
    if ((seen->tcp.flags & big16(FLAGS & ~PUSH)) != big16(ACKNOWLEDGES) || seen->tcp.urgent)
        return -1;
    header_len = big16(seen->tcp.flags) >> 12 << 2;
    if (header_len < TCP_LEN)
        return -1;
    options_len = header_len - TCP_LEN;
    if (options_len >= STAMPS_LEN) {
        if (load(packet, seen->at + TCP_LEN, &seen->stamps, STAMPS_LEN) < 0)
            return -1;
        if (seen->stamps.kind == big32(STAMPS))
            options_len -= STAMPS_LEN;
        else
            __builtin_memset(&seen->stamps, 0, STAMPS_LEN);
    }
    if (options_len && read_blocks(packet, seen, options_len) < 0)
        return -1;
    if (seen->data_len < header_len)
        return -1;
    seen->data_at = seen->at + header_len;
    seen->data_len -= header_len;
    seen->key.ports = *(u32 *)seen->tcp.ports;
    if (seen->from != TRUSTED)
        seen->key.ports = seen->key.ports << 16 | seen->key.ports >> 16;
    return 0;
}

// Reads a segment; -1 if it is for the daemon whatever its connection is.
INLINE int read(context *packet, const struct settings *own, struct segment *seen) {
    u32 len = packet->len;

    __builtin_memset(seen, 0, sizeof(*seen));
    seen->from = packet->ifindex == own->interfaces[TRUSTED] ? TRUSTED : UNTRUSTED;
    if (packet->ifindex != own->interfaces[seen->from] || packet->vlan_present)
        return -1;
    if (len > LEN_MAX || load(packet, 0, seen->front.to, sizeof(seen->front) - 2) < 0)
        return -1;
    if ((seen->front.to[0] | seen->front.from[0]) & 1)
        return -1;
    if (seen->front.ethertype == big16(IPV4)) {
        if (read_ipv4(seen, len) < 0)
            return -1;
    } else if (seen->front.ethertype != big16(IPV6) || read_ipv6(seen, len) < 0) {
        return -1;
    }
    if (packet->gso_size == 0 && len > PLAIN_MAX)
        return -1;
    return read_tcp(packet, seen);
}

INLINE int is_same(const struct key *one, const struct key *other) {
    const u64 *a = (const u64 *)one, *b = (const u64 *)other;
    u64 differs = 0;

    for (int at = 0; at < KEY_WORDS; at++)
        differs |= a[at] ^ b[at];
    return differs == 0;
}

// Which segment is on its way from the first program to the second: never zero.
INLINE u64 segment_of(u32 place, const struct segment *seen) { return (u64)place << 2 | seen->from << 1 | 1; }

INLINE u64 extent_of(const struct segment *seen) { return (u64)seen->data_len << 32 | seen->tcp.sequence; }

INLINE struct half *half_of(struct entry *own, u64 side) {
    forget(side);
    return &own->halves[side & 1];
}

INLINE u64 island_of(const struct half *half) { return ((const volatile struct half *)half)->island; }
INLINE u32 from_of(u64 island) { return island; }
INLINE u32 to_of(u64 island) { return island >> 32; }

// The number behind all that went on.
INLINE u32 end_of(const struct half *half) {
    u64 island = island_of(half);

    return island ? to_of(island) : half->in_sequence;
}

// Whether data went on before, in order or behind a hole.
INLINE int is_known(const struct half *sender, u32 sequence, u32 end) {
    u64 island = island_of(sender);

    if (!is_ahead(end, sender->in_sequence))
        return 1;
    return island && !is_ahead(from_of(island), sequence) && !is_ahead(end, to_of(island));
}

#ifndef INGRESS

// The one place in which a connection may be.
INLINE u32 place_of(const struct key *key, u64 seed) {
    const u64 *words = (const u64 *)key;
    u64 mixed = seed;

    for (int at = 0; at < KEY_WORDS; at++) {
        mixed = (mixed ^ words[at]) * 0x9e3779b97f4a7c15ULL;
        mixed ^= mixed >> 32;
    }
    return mixed >> (64 - SLOT_BITS);
}

// Whether a selective acknowledgement says only what may be (`scrub::tcp::acknowledgement`). The
// first block may tell of a duplicate, and then lies below what is acknowledged.
INLINE int has_right_blocks(const struct entry *own, const struct half *receiver, const struct segment *seen,
                            u32 acknowledged) {
    u32 shift = seen->from == UNTRUSTED ? own->shift : 0;
    u32 window = receiver->window_max > 0xffff ? receiver->window_max : 0xffff;
    u32 floor = receiver->unacknowledged - window;
    u32 end = end_of(receiver);

    if (is_ahead(acknowledged, end))
        return 0;
    for (u32 at = 0; at < BLOCKS_MAX && at * BLOCK_LEN < seen->blocks_len; at++) {
        u32 left = big32(seen->blocks[at].left) - shift, right = big32(seen->blocks[at].right) - shift;

        if (!is_ahead(right, left) || left - floor > end - floor || right - floor > end - floor)
            return 0;
        floor = acknowledged;
    }
    return 1;
}

// Whether data of a half that is kept is what comes next, or lies behind one hole. Before anything
// has passed in order some of it may wait for the daemon, and would be overtaken.
INLINE int is_in_place(const struct half *sender, u32 sequence, u32 end, u32 rules, u8 marks) {
    u64 island = island_of(sender);

    if (sequence == sender->in_sequence)
        return !island || !is_ahead(end, from_of(island));
    if (!(rules & KEEPS_BEHIND_HOLE) || !(marks & RUNS))
        return 0;
    if (island)
        return sequence == to_of(island);
    return is_ahead(sequence, sender->in_sequence) && sequence - sender->in_sequence <= HOLE_MAX;
}

// Whether the frame has from `at` on what lies at `kept`: a chunk at a time, the last one with some
// bytes of the one before it.
INLINE int is_same_data(context *packet, struct hand *hand, u32 at, const u8 *kept, u64 len) {
    for (u32 done = 0; done < LEN_MAX; done += CHUNK) {
        const u64 *ours, *theirs = (const u64 *)hand->room;
        u64 from = done, differs = 0;

        if (done >= len)
            break;
        if (from + CHUNK > len)
            from = len - CHUNK;
        if (from > LEN_MAX - CHUNK || load(packet, at + (u32)from, hand->room, CHUNK) < 0)
            return 0;
        ours = (const u64 *)(kept + from);
#pragma unroll
        for (int word = 0; word < CHUNK / WORD_LEN; word++) {
            differs |= ours[word] ^ theirs[word];
            forget(differs);
        }
        if (differs)
            return 0;
    }
    return 1;
}

// The same of less than a chunk.
INLINE int is_same_piece(context *packet, struct hand *hand, u32 at, const u8 *kept, u64 len) {
    u64 bits = (len & (WORD_LEN - 1)) * 8;

    forget(len);
    len &= CHUNK - 1;
    if (len == 0)
        return 1;
    if (load(packet, at, hand->room, len) < 0)
        return 0;
    for (u32 done = 0; done + WORD_LEN <= CHUNK; done += WORD_LEN) {
        u64 differs = *(u64 *)(hand->room + done) ^ *(const u64 *)(kept + done);

        if (done + WORD_LEN > len)
            return bits == 0 || (differs & ((1ULL << bits) - 1)) == 0;
        if (differs)
            return 0;
    }
    return 1;
}

INLINE int is_same_part(context *packet, struct hand *hand, u32 at, const u8 *kept, u64 len) {
    return len < CHUNK ? is_same_piece(packet, hand, at, kept, len) : is_same_data(packet, hand, at, kept, len);
}

// Whether data that is sent again says what it said first, byte by byte.
INLINE int is_repeated(context *packet, struct hand *hand, const struct half *sender, const struct segment *seen) {
    u32 zero = 0, sequence = big32(seen->tcp.sequence), into = sequence & sender->ring_mask;
    u32 ring_at = sender->ring_at & (POOL_LEN - 1), len = seen->data_len, first = sender->ring_mask + 1 - into;
    const u8 *bytes = find(&pool, &zero);

    if (!bytes || is_ahead(sender->unacknowledged, sequence) || !is_known(sender, sequence, sequence + len))
        return 0;
    if (first > len)
        first = len;
    return is_same_part(packet, hand, seen->data_at, bytes + ((ring_at + into) & (POOL_LEN - 1)), first)
        && is_same_part(packet, hand, seen->data_at + first, bytes + ring_at, len - first);
}

// The same without data: nothing is kept of it, and what others have overtaken does no harm.
INLINE int is_near(const struct half *sender, u32 sequence, u8 marks) {
    return !is_ahead(sender->unacknowledged, sequence) && !is_ahead(sequence, end_of(sender))
        && (sequence == sender->in_sequence || marks & RUNS);
}

// Whether the engine would let the segment pass as it is, but for what is rewritten of every one
// (`scrub::tcp::established`).
INLINE int is_clean(context *packet, struct hand *hand, struct entry *own, const struct segment *seen, u32 rules) {
    const struct half *sender = half_of(own, seen->from), *receiver = half_of(own, !seen->from);
    u32 sequence = big32(seen->tcp.sequence), end = sequence + seen->data_len;
    u32 acknowledged = big32(seen->tcp.acknowledgement);
    u32 piece = packet->gso_size ? packet->gso_size : seen->data_len;
    u32 oldest = receiver->unacknowledged - receiver->window_max;
    u8 marks = own->marks[seen->from & 1];

    if (seen->from == UNTRUSTED)
        acknowledged -= own->shift;
    // From a window before what is acknowledged to all that was sent; unlike two comparisons this has no
    // blind spot half way round.
    if (acknowledged - oldest > receiver->in_sequence - oldest)
        return 0;
    // Others have overtaken it. Beside data the engine says the newest in its place.
    if (seen->data_len && sender->ring_mask && is_ahead(receiver->unacknowledged, acknowledged))
        return 0;
    if ((seen->stamps.kind != 0) != ((own->options & HAS_STAMPS) != 0))
        return 0;
    if (seen->blocks_len) {
        if (!(own->options & HAS_BLOCKS) || !(rules & KNOWS_BLOCKS))
            return 0;
        if (!has_right_blocks(own, receiver, seen, acknowledged))
            return 0;
        piece += BLOCKS_HEAD_LEN + seen->blocks_len;
    }
    // An older one beside data is refused, or not, by how old it is.
    if (seen->stamps.kind && sender->ring_mask && seen->data_len && is_ahead(sender->stamp, big32(seen->stamps.value)))
        return 0;
    if (seen->data_len && piece > sender->piece_max)
        return 0;
    // Who is believed may send again; what comes behind a hole may have overtaken what the daemon
    // has.
    if (!sender->ring_mask)
        return !is_ahead(sequence, sender->in_sequence);
    // One byte more than the window may pass, as a probe. The last byte that was acknowledged stays in
    // the ring, for the daemon's questions.
    if (is_ahead(end, sender->edge + 1) || end - sender->unacknowledged > sender->ring_mask)
        return 0;
    if (!seen->data_len)
        return is_near(sender, sequence, marks);
    return is_in_place(sender, sequence, end, rules, marks) || is_repeated(packet, hand, sender, seen);
}

// Frames of one connection may come by several processors. Data that is early waits here for what
// comes before it, while another processor may have that. Whether it came is asked again with the
// half in hand. A processor that has waited in vain waits for nothing during a hundred times as
// long, so whoever leaves holes costs it little.
INLINE void await_turn(struct hand *hand, const struct half *sender, const struct segment *seen) {
    const volatile struct half *watched = sender;
    u32 sequence = big32(seen->tcp.sequence), ahead = sequence - end_of(sender);
    u64 began;

    if (!seen->data_len || ahead == 0 || ahead > HOLE_MAX || watched->lock == OF_DAEMON)
        return;
    began = nanoseconds();
    if (began < hand->hurries_until)
        return;
    for (int looks = 0; looks < WAITS_MAX; looks++) {
        if (watched->lock == OF_DAEMON || !is_ahead(sequence, end_of(sender)))
            return;
        if (nanoseconds() - began > WAIT_MAX_NS)
            break;
    }
    hand->hurries_until = nanoseconds() + WAIT_PAUSE_NS;
}

// Takes a half in hand; -1 if it is the daemon's. Where another processor has it, the segment
// before this one is under way, which takes no longer than a copy of it.
INLINE int take_in_hand(struct half *half) {
    for (int looks = 0; looks < LOOKS_MAX; looks++) {
        u64 was = __sync_val_compare_and_swap(&half->lock, FREE, IN_HAND);

        if (was != IN_HAND)
            return was == FREE ? 0 : -1;
    }
    return -1;
}

SECTION("hook")
int carry(context *packet) {
    struct segment seen;
    u32 zero = 0, place, at = processor();
    struct settings *rules = find(&settings, &zero);
    struct hand *hand = find(&hands, &at);
    struct half *sender;
    struct entry *own;

    if (!rules || !hand || read(packet, rules, &seen) < 0)
        return PASS;
    if (seen.from == UNTRUSTED && *hop_limit_of(&seen) < rules->hops_behind)
        return PASS;
    place = place_of(&seen.key, rules->seed);
    own = find(&entries, &place);
    if (!own || !is_same(&own->key, &seen.key))
        return PASS;
    sender = half_of(own, seen.from);
    await_turn(hand, sender, &seen);
    if (take_in_hand(sender) < 0)
        return PASS;
    if (!is_clean(packet, hand, own, &seen, rules->rules)) {
        __sync_lock_test_and_set(&sender->lock, FREE);
        return PASS;
    }
    hand->extent = extent_of(&seen);
    hand->segment = segment_of(place, &seen);
    // It goes on, to the second program and not to the socket.
    return DROP;
}

#else

enum { QUERY, RAISE, LOWER };
enum { RECOMPUTE = 1 };
static long (*const trim)(context *packet, u32 len, u64 flags) = (void *)BPF_FUNC_skb_change_tail;
static long (*const redirect)(u32 interface, u64 flags) = (void *)BPF_FUNC_redirect;
static s64 (*const difference)(const void *from, u32 from_len, const void *to, u32 to_len, u32 seed) =
    (void *)BPF_FUNC_csum_diff;
static long (*const checked)(context *packet, u64 level) = (void *)BPF_FUNC_csum_level;
static s64 (*const summed)(context *packet, u32 more) = (void *)BPF_FUNC_csum_update;

enum { SEQUENCE_AT = 4, CHECKSUM_AT = 16, STAMP_VALUE_AT = 24, NUMBERS_LEN = 12 };

// Keeps the data in the ring of its half; -1 if it cannot be read.
INLINE int keep(context *packet, const struct half *sender, const struct segment *seen) {
    u32 zero = 0, into = big32(seen->tcp.sequence) & sender->ring_mask;
    u32 ring_at = sender->ring_at & (POOL_LEN - 1), len = seen->data_len & 0xffff;
    u32 first = sender->ring_mask + 1 - into, rest;
    u8 *bytes = find(&pool, &zero);

    if (!bytes || len == 0)
        return bytes ? 0 : -1;
    if (first > len)
        first = len;
    rest = len - first;
    if (first == 0 || first > 0xffff)
        return -1;
    if (load(packet, seen->data_at, bytes + ((ring_at + into) & (POOL_LEN - 1)), first) < 0)
        return -1;
    if (rest == 0)
        return 0;
    if (rest > 0xffff)
        return -1;
    return load(packet, seen->data_at + first, bytes + ring_at, rest) < 0 ? -1 : 0;
}

// The sum of the pseudo header.
INLINE u32 pseudo_header(const struct segment *seen) {
    const u32 *ip = seen->front.ip;
    u64 sum = big16(TCP) + (u64)big16(seen->data_at - seen->at + seen->data_len);

    if (seen->ip_len == IPV4_LEN)
        return folded(sum + ip[3] + ip[4]);
    for (int at = 2; at < 10; at++)
        sum += ip[at];
    return folded(sum);
}

// Whether nobody has summed the frame, and nobody is to. The kernel does not say so, but it raises
// the level of such a frame to that of a checked one, and of no other that was none.
INLINE int is_unsummed(context *packet) {
    if (checked(packet, RAISE) < 0 || checked(packet, QUERY) < 0)
        return 0;
    return checked(packet, LOWER) == 0;
}

// Whether a sum that is still to be made will stand where TCP has it. The kernel says only how short it
// lets such a frame become: as far as that place, or it would not have a place. So the frame is cut there,
// and gets back what was cut off. Over what the sum is made does not matter: if not over all of TCP it will be
// wrong, as that of any segment may be.
INLINE int is_to_be_made(context *packet, struct hand *hand, const struct segment *seen, u64 len) {
    u32 behind = seen->at + CHECKSUM_AT + 2;

    if (trim(packet, behind - 1, 0) == 0 || trim(packet, behind, 0) < 0
        || trim(packet, seen->data_at + seen->data_len, 0) < 0)
        return 0;
    if (store(packet, behind, &seen->tcp.urgent, 2, 0) < 0)
        return 0;
    return len == 0 || store(packet, seen->at + TCP_LEN, hand->room, len, 0) == 0;
}

// Whether the checksum is right, or the kernel vouches for it, or is to make it. `behind` is what
// stands behind the fixed part of the TCP header, and is summed in the room of this processor.
INLINE int is_intact(context *packet, struct hand *hand, const struct segment *seen) {
    u32 behind = seen->data_at - seen->at - TCP_LEN + seen->data_len, padded = (behind + 3) & ~3;
    u64 len = behind;
    s64 sum;

    // The kernel makes super-frames of segments that it has checked, or is to make their sums.
    if (packet->gso_size || checked(packet, QUERY) >= 0)
        return 1;
    if (len > PLAIN_MAX)
        return 0;
    forget(len);
    len &= ROOM_LEN - 1;
    if (len) {
        *(u32 *)(hand->room + (len & (ROOM_LEN - 4))) = 0;
        if (load(packet, seen->at + TCP_LEN, hand->room, len) < 0)
            return 0;
    }
    // What a card has summed is summed again: its sum is not asked for.
    if (!is_unsummed(packet) && summed(packet, 0) < 0)
        return is_to_be_made(packet, hand, seen, len);
    sum = difference(0, 0, &seen->tcp, TCP_LEN, pseudo_header(seen));
    for (u32 at = 0; at < PLAIN_MAX; at += CHUNK) {
        u32 part = padded - at;

        if (at >= padded)
            break;
        if (part > CHUNK)
            part = CHUNK;
        sum = difference(0, 0, hand->room + at, part, sum);
    }
    return folded((u32)sum) == 0xffff;
}

// Enters data that is new, and may fill a hole.
INLINE void enter_data(struct half *sender, u8 *marks, u32 sequence, u32 end) {
    u64 island = island_of(sender);

    if (is_known(sender, sequence, end))
        return;
    *marks &= ~IS_REACHED;
    if (sender->ring_mask && is_ahead(sequence, sender->in_sequence)) {
        sender->island = (u64)end << 32 | (island ? from_of(island) : sequence);
        return;
    }
    *marks |= RUNS;
    if (island && end == from_of(island)) {
        sender->in_sequence = to_of(island);
        // In this order: who sees no island sees what comes behind it.
        __sync_lock_test_and_set(&sender->island, 0);
    } else {
        sender->in_sequence = end;
    }
}

// Enters what the engine would (`acknowledgement::take`, `timestamps::remember`, `stream::judge`).
INLINE void enter(struct entry *own, struct half *sender, struct half *receiver, const struct segment *seen) {
    u32 sequence = big32(seen->tcp.sequence), end = sequence + seen->data_len;
    u32 acknowledged = big32(seen->tcp.acknowledgement) - (seen->from == UNTRUSTED ? own->shift : 0);
    u32 window = (u32)big16(seen->tcp.window) << (sender->scale & 15);
    u8 *marks = &own->marks[seen->from & 1];

    if (seen->data_len)
        enter_data(sender, marks, sequence, end);
    else if (sequence == end_of(sender))
        *marks |= IS_REACHED;
    if (is_ahead(acknowledged, receiver->unacknowledged))
        receiver->unacknowledged = acknowledged;
    if (is_ahead(acknowledged + window, receiver->edge))
        receiver->edge = acknowledged + window;
    if (window > receiver->window_max)
        receiver->window_max = window;
    // The engine asks this after it has taken the acknowledgement, of the other half.
    if (seen->stamps.kind && !is_ahead(sequence, sender->unacknowledged)
        && !is_ahead(sender->stamp, big32(seen->stamps.value)))
        sender->stamp = big32(seen->stamps.value);
    sender->packets++;
    sender->bytes += seen->data_len;
}

// Makes selective acknowledgements of a trusted host's numbers mean its own; what has changed so
// far, for the checksum.
INLINE s64 shift_blocks(context *packet, const struct entry *own, const struct segment *seen, s64 changed) {
    for (u32 at = 0; at < BLOCKS_MAX && at * BLOCK_LEN < seen->blocks_len; at++) {
        struct block block = seen->blocks[at];

        block.left = big32(big32(block.left) - own->shift);
        block.right = big32(big32(block.right) - own->shift);
        changed = difference(&seen->blocks[at], BLOCK_LEN, &block, BLOCK_LEN, changed);
        if (changed < 0 || store(packet, seen->blocks_at + at * BLOCK_LEN, &block, BLOCK_LEN, 0) < 0)
            return -1;
    }
    return changed;
}

// What is written of the TCP header: numbers and window, timestamps and blocks. Its checksum makes
// up for it, so a sum that a card has made over the whole frame stays as it is.
INLINE int rewrite_tcp(context *packet, const struct entry *own, const struct half *sender,
                       const struct segment *seen) {
    struct tcp tcp = seen->tcp;
    struct stamps stamps = seen->stamps;
    s64 changed;

    // Beside data there is no older one here (`scrub::tcp::timestamps`).
    if (sender->ring_mask && is_ahead(sender->stamp, big32(stamps.value)))
        stamps.value = big32(sender->stamp);
    if (seen->from == TRUSTED) {
        tcp.sequence = big32(big32(tcp.sequence) + own->shift);
        stamps.value = big32(big32(stamps.value) + own->stamp_shift);
    } else {
        tcp.acknowledgement = big32(big32(tcp.acknowledgement) - own->shift);
        stamps.echo = big32(big32(stamps.echo) - own->stamp_shift);
    }
    if (sender->scale != sender->told_scale) {
        u32 told = (u32)big16(tcp.window) << (sender->scale & 15) >> (sender->told_scale & 15);

        tcp.window = big16(told > 0xffff ? 0xffff : told);
    }
    changed = difference(&seen->tcp, TCP_LEN, &tcp, TCP_LEN, 0);
    if (store(packet, seen->at + SEQUENCE_AT, &tcp.sequence, NUMBERS_LEN, 0) < 0)
        return -1;
    if (seen->stamps.kind) {
        changed = difference(&seen->stamps, STAMPS_LEN, &stamps, STAMPS_LEN, changed);
        if (store(packet, seen->at + STAMP_VALUE_AT, &stamps.value, 8, 0) < 0)
            return -1;
    }
    if (seen->from == UNTRUSTED && own->shift)
        changed = shift_blocks(packet, own, seen, changed);
    return changed < 0 || amend(packet, seen->at + CHECKSUM_AT, 0, changed, 0) < 0 ? -1 : 0;
}

// What is written of the IP header: the hop limit, and towards the untrusted side what names a
// system.
INLINE int rewrite_ip(context *packet, const struct settings *rules, struct entry *own,
                      struct segment *seen) {
    int is_ipv4 = seen->ip_len == IPV4_LEN;
    u8 *ip = (u8 *)seen->front.ip, *hop_limit = hop_limit_of(seen);

    if (seen->from == TRUSTED) {
        if (*hop_limit > rules->hop_limit_max)
            *hop_limit = rules->hop_limit_max;
        if (is_ipv4 && rules->rules & ZERO_IDENTIFICATION)
            ((u16 *)ip)[2] = 0;
        if (!is_ipv4 && rules->rules & SET_LABEL)
            seen->front.ip[0] = (seen->front.ip[0] & big32(0xfff00000)) | own->label;
    } else {
        if (*hop_limit < own->hop_limit && rules->rules & RAISE_HOP_LIMIT)
            *hop_limit = own->hop_limit;
        if (*hop_limit > own->hop_limit)
            own->hop_limit = *hop_limit;
    }
    if (is_ipv4) {
        u32 sum = 0;

        ((u16 *)ip)[5] = 0;
        for (int at = 0; at < IPV4_LEN / 2; at++)
            sum += ((u16 *)ip)[at];
        ((u16 *)ip)[5] = ~folded(sum);
        return store(packet, ETHERNET_LEN, ip, 12, RECOMPUTE) < 0 ? -1 : 0;
    }
    return store(packet, ETHERNET_LEN, ip, 8, RECOMPUTE) < 0 ? -1 : 0;
}

// Does all that is done with a segment in hand: 0 if it is to go out, -1 if its checksum is wrong, -2 if the
// kernel could not read or write it.
INLINE int carry_out(context *packet, const struct settings *rules, struct hand *hand, struct entry *own,
                     struct segment *seen) {
    struct half *sender = half_of(own, seen->from), *receiver = half_of(own, !seen->from);
    u32 len = seen->data_at + seen->data_len, sequence = big32(seen->tcp.sequence);

    if (sender->ring_mask) {
        if (!is_intact(packet, hand, seen))
            return -1;
        if (!is_known(sender, sequence, sequence + seen->data_len) && keep(packet, sender, seen) < 0)
            return -2;
    }
    if (packet->len > len && trim(packet, len, 0) < 0)
        return -2;
    if (rewrite_tcp(packet, own, sender, seen) < 0 || rewrite_ip(packet, rules, own, seen) < 0)
        return -2;
    enter(own, sender, receiver, seen);
    return 0;
}

SECTION("hook")
int carry(context *packet) {
    struct segment seen;
    u32 zero = 0, place, at = processor();
    struct settings *rules = find(&settings, &zero);
    struct hand *hand = find(&hands, &at);
    struct half *sender;
    struct entry *own;
    int failed;

    if (!rules || !hand || !hand->segment)
        return NEXT;
    // Whatever comes of it, the daemon has not heard the frame.
    place = hand->segment >> 2;
    own = find(&entries, &place);
    sender = own ? half_of(own, hand->segment >> 1) : 0;
    failed = -2;
    if (sender && sender->lock == IN_HAND && read(packet, rules, &seen) == 0 && is_same(&own->key, &seen.key)
        && hand->segment == segment_of(place, &seen) && hand->extent == extent_of(&seen))
        failed = carry_out(packet, rules, hand, own, &seen);
    if (sender && failed == -1)
        sender->bad_checksums++;
    if (own && failed == -2)
        own->failed[hand->segment >> 1 & 1]++;
    hand->segment = 0;
    if (sender)
        __sync_lock_test_and_set(&sender->lock, FREE);
    return failed ? DROP : (int)redirect(rules->interfaces[seen.from == TRUSTED ? UNTRUSTED : TRUSTED], 0);
}

#endif
