// The cheap checks of the shield, in the kernel: in front of the daemon's packet socket (record 0027) or of the card's receive path
// (record 0042).
//
// It is the twin of `Checks` in crates/shield/src/checks.rs and of the site key's hints, and drops only what those would drop, so that a
// forged frame ends before it costs a copy and a wake-up; it alone refuses a tag that comes again too soon (record 0044), and more tags
// than are worth a tenth of a processor (records 0049 and 0050). Whatever it is not sure of it lets pass, and the daemon decides. Both
// read the same replay windows, which the daemon alone writes. `make.py` turns this file into `shield.bpf` and `shield.xdp.bpf`; numbers
// on the wire are big-endian, this machine is little-endian.
#include "hook.h"
#include "siphash.h"
#include "budget.h"

// Why a frame is dropped; the order is that of `kernel::COUNTED`.
enum reason {
    BAD_VERSION, MALFORMED, UNKNOWN_INDEX, WRONG_PEER, TOO_FAR, TOO_OLD, BAD_SLOW_NONCE, BAD_SPIN, REPLAYED, HANDSHAKE_SITE_MAC,
    GROUP_TAG, REPEATED, HANDSHAKE_BUDGET, GROUP_BUDGET, REASONS, GOOD
};

// Names of the maps; their shapes are in `kernel.rs`.
struct map { u32 unused; };
struct map settings SECTION("maps");
struct map receivers SECTION("maps");
struct map windows SECTION("maps");
struct map counters SECTION("maps");
struct map heard SECTION("maps");
struct map peers SECTION("maps");

// What the daemon says of itself. One entry.
struct settings {
    u64 stranger_interval_ns; // an unknown index passes once in so long: it may be a peer that outlived our restart
    u8 mac[6];
    u16 ethertype;
    u32 strangers_pass; // there were more receivers than the map holds
    u32 joined_unmarked; // several messages may have been joined, and nothing says so
    u64 hint[2]; // key of SipHash, each half little-endian
    u64 handshake_interval_ns; // for each message with a right tag: of handshakes
    u64 group_interval_ns; // and about groups
    u64 peer_interval_ns; // for each message of a peer when there is nothing left of that
    u64 other_hint[2]; // another such key, while one site key follows another (record 0064)
    u64 has_other_hint;
};

// What is known of one receiver index, which is the key of its map.
struct receiver {
    u64 spin[2]; // keys of SipHash, each half little-endian
    u64 slow[2];
    u8 peer[6];
    u8 has_slow;
    u8 reserved;
    u32 slot; // of its window, or NO_WINDOW
    u32 reserved_too;
};

enum {
    NO_WINDOW = 0xffffffff,
    WINDOW_FRAMES = 8192,
    WINDOW_BLOCKS = 2 * WINDOW_FRAMES / 64,
    FAR_AHEAD_FRAMES = 1 << 24,
    SLOW_SHIFT = 10, // a slow nonce serves 1024 frames
};

// A replay window: the newest number with SEEN above it, then a ring of bits.
struct window { u64 head; u64 blocks[WINDOW_BLOCKS]; };
#define SEEN (1ULL << 32)

// The tag under the site key.
struct tag { u64 proof; u32 more_proof, hint; };

// Tags that were heard and when each may pass again, in sets of one line of a cache: a flood looks a tag up for each of its frames, and
// a table of one entry for each tag would have it wait for memory twice. What chooses the set is known to nobody without the site's
// key, or recordings that share a set would push each other out. An entry: 32 bits of the tag, how often it passed, and when again.
enum { SET_TAGS = 8, SETS = 8192 };
struct heard { u64 tags[SET_TAGS]; };
enum { PASSED_SHIFT = 28, PROOF_SHIFT = 32, PASSED_MAX = 3, TICK_SHIFT = 20 };
#define AGAIN_MASK ((1ULL << PASSED_SHIFT) - 1)

struct counters { u64 dropped[REASONS]; u64 next_stranger_ns; u64 handshakes_full_at_ns, groups_full_at_ns; };
#define BURST_NS (SECOND_NS / 50)

// Who has had an association, which the daemon enters; a share of his own, by when it is full again.
struct peer { u8 mac[6], zero[2]; };
struct share { u64 full_at_ns; };

// Everything that a message is judged by. Fields of the header stand as on the wire, aligned by the two bytes in front.
struct header {
    u16 filler;
    u8 kind, flags;
    u32 index, sequence, spin, slow;
};

struct ethernet { u8 destination[6], source[6]; u16 ethertype; u16 filler; };
struct datagram {
    u8 version, service; u16 total_len, identification, fragment; u8 ttl, protocol; u16 checksum;
    u8 source[4], destination[4];
    u16 source_port, port, len, udp_checksum;
};

enum { ETHERNET_LEN = 14, IP_LEN = 20, UDP_LEN = 8, TRAIN_AT = ETHERNET_LEN + IP_LEN + UDP_LEN };
enum { HEADER_LEN = 14, SLOW_LEN = 4, LEN_MIN = HEADER_LEN + 3 + 16 };
enum { IPV4 = 0x0800, UDP = 17, TRAIN_PORT = 52000 };
enum { VERSION = 0x20, HAS_SLOW = 1, TAG_AT = 2 };
enum kind {
    UNICAST = 0x21, GROUP_FRAME, REQUEST, REPLY, CHALLENGE = 0x28, ANNOUNCEMENT, QUESTION, RESUMPTION_REQUEST = 0x2c, RESUMPTION_REPLY
};
// In ticks of 1.05 ms.
enum { WAIT_FIRST_TICKS = 191, WAIT_MAX_TICKS = 3815 };

// The low half of SipHash-2-4 over the four bytes of `word`, as they lie in memory.
INLINE u32 siphash(const u64 key[2], u32 word) {
    struct state s = begin(key);
    return finish(&s, 4, word);
}

// All of it over the twelve bytes of a tag in front of its hint: the low half is the hint, the high half is known to nobody without the key.
INLINE u64 hash_of(const u64 key[2], const struct tag *tag) {
    struct state s = begin(key);
    absorb(&s, tag->proof);
    return finish(&s, 12, tag->more_proof);
}

INLINE int same(const u8 a[6], const u8 b[6]) {
    return *(const u16 *)a == *(const u16 *)b && *(const u16 *)(a + 2) == *(const u16 *)(b + 2) &&
           *(const u16 *)(a + 4) == *(const u16 *)(b + 4);
}

INLINE struct window *window_of(const struct receiver *receiver) {
    u32 slot = receiver->slot;
    return slot == NO_WINDOW ? 0 : find(&windows, &slot);
}

// What may be asked at all: neither before the window nor so far ahead that no peer could have come there unheard.
INLINE enum reason near(u64 head, u32 sequence) {
    u32 newest = head;
    if (!(head & SEEN))
        return GOOD;
    if (sequence > newest)
        return sequence - newest > FAR_AHEAD_FRAMES ? TOO_FAR : GOOD;
    return newest - sequence >= WINDOW_FRAMES ? TOO_OLD : GOOD;
}

// Whether the number has been delivered, where the window says so.
INLINE int is_used(const struct window *window, u64 head, u32 sequence) {
    if (!(head & SEEN) || sequence > (u32)head)
        return 0;
    return window->blocks[sequence / 64 % WINDOW_BLOCKS] >> sequence % 64 & 1;
}

// One message with a known header, in the order of cost.
INLINE enum reason judge(const struct receiver *receiver, const u8 source[6], const struct header *header) {
    u32 sequence = big32(header->sequence);
    struct window *window;
    enum reason reason;
    u64 head = 0;

    if (!same(receiver->peer, source))
        return WRONG_PEER;
    if (receiver->has_slow != header->flags)
        return MALFORMED;
    window = window_of(receiver);
    if (window)
        head = window->head;
    reason = near(head, sequence);
    if (reason != GOOD)
        return reason;
    if (receiver->has_slow && siphash(receiver->slow, big32(sequence >> SLOW_SHIFT)) != big32(header->slow))
        return BAD_SLOW_NONCE;
    if (siphash(receiver->spin, header->sequence) != big32(header->spin))
        return BAD_SPIN;
    return window && is_used(window, head, sequence) ? REPLAYED : GOOD;
}

// An unknown index may be that of a peer that does not know yet that we have started again.
INLINE int stranger_passes(const struct settings *own, struct counters *books) {
    u64 now;

    if (own->strangers_pass)
        return 1;
    now = ticked_nanoseconds();
    if (now < books->next_stranger_ns)
        return 0;
    books->next_stranger_ns = now + own->stranger_interval_ns;
    return 1;
}

// What is wrong if the tag of such a message is; GOOD where there is none.
INLINE enum reason reason_of(u8 kind) {
    switch (kind) {
    case REQUEST: case REPLY: case CHALLENGE: case RESUMPTION_REQUEST: case RESUMPTION_REPLY:
        return HANDSHAKE_SITE_MAC;
    case GROUP_FRAME: case ANNOUNCEMENT: case QUESTION:
        return GROUP_TAG;
    default:
        return GOOD;
    }
}

// How long after `now` the tag of an entry may pass again, in ticks; nothing where that time is over, or so long ago that the clock of
// entries has come round.
INLINE u32 ticks_left(u64 entry, u64 now) {
    u32 left = (entry - now) & AGAIN_MASK;
    return left > WAIT_MAX_TICKS ? 0 : left;
}

// The entry of a tag that passes now, after it passed `passed` times.
INLINE u64 entry_of(const struct tag *tag, u32 passed, u64 now) {
    u32 wait = WAIT_FIRST_TICKS << 2 * passed, next = passed < PASSED_MAX ? passed + 1 : PASSED_MAX;
    if (wait > WAIT_MAX_TICKS)
        wait = WAIT_MAX_TICKS;
    return (u64)tag->more_proof << PROOF_SHIFT | (u64)next << PASSED_SHIFT | ((now + wait) & AGAIN_MASK);
}

// A tag passes again only after a time, and then only after a longer one. Honest repetitions come
// later than that. A new one takes an empty place, so that nobody is forgotten while there is room,
// or else that of the one whose time is over first.
INLINE int is_repeated(const struct tag *tag, u32 which, u64 now_ns) {
    u32 set = which % SETS, first = 0, passed = 0, at, left, least = WAIT_MAX_TICKS + 2;
    struct heard *heard_there = find(&heard, &set);
    u64 now = now_ns >> TICK_SHIFT, entry;

    if (!heard_there)
        return 0;
#pragma unroll
    for (at = 0; at < SET_TAGS; at++) {
        entry = heard_there->tags[at];
        left = entry ? 1 + ticks_left(entry, now) : 0;
        if (entry >> PROOF_SHIFT == tag->more_proof && entry) {
            if (left > 1)
                return 1;
            first = at;
            passed = entry >> PASSED_SHIFT & PASSED_MAX;
            break;
        }
        if (left < least) {
            least = left;
            first = at;
        }
    }
    heard_there->tags[first % SET_TAGS] = entry_of(tag, passed, now);
    return 0;
}

INLINE struct share *share_of(const u8 mac[6]) {
    struct peer peer = {};
    __builtin_memcpy(peer.mac, mac, sizeof(peer.mac));
    return find(&peers, &peer);
}

// A message whose tag somebody of the site made. One who makes new tags without end gets what one processor can judge beside its other
// work; a peer has a share beside that. Only what is not repeated is charged, or recordings would use it up.
INLINE enum reason judge_budget(const struct settings *own, struct counters *books, const u8 source[6], int is_group,
                                const struct tag *tag, u32 which) {
    u64 cost_ns = is_group ? own->group_interval_ns : own->handshake_interval_ns, now = nanoseconds();
    u64 *full_at_ns = is_group ? &books->groups_full_at_ns : &books->handshakes_full_at_ns;
    u64 after = after_taking(*full_at_ns, now, cost_ns, BURST_NS);

    if (!after) {
        struct share *share = share_of(source);
        if (!share)
            return is_group ? GROUP_BUDGET : HANDSHAKE_BUDGET;
        full_at_ns = &share->full_at_ns;
        after = after_taking(*full_at_ns, now, own->peer_interval_ns, SECOND_NS);
    }
    if (!after)
        return is_group ? GROUP_BUDGET : HANDSHAKE_BUDGET;
    if (is_repeated(tag, which, now))
        return REPEATED;
    *full_at_ns = after;
    return GOOD;
}

// A message that is proved by its site and signed: nobody without the site's key can make a hint, only repeat one.
INLINE enum reason judge_tag(context *packet, const struct settings *own, struct counters *books, const u8 source[6], u8 kind, u32 at) {
    enum reason wrong = reason_of(kind);
    struct tag tag = {};
    u64 hash;

    if (wrong == GOOD || load(packet, at + TAG_AT, &tag, sizeof(tag)))
        return GOOD;
    hash = hash_of(own->hint, &tag);
    if ((u32)hash != big32(tag.hint)) {
        if (!own->has_other_hint)
            return wrong;
        hash = hash_of(own->other_hint, &tag);
        if ((u32)hash != big32(tag.hint))
            return wrong;
    }
    return judge_budget(own, books, source, wrong == GROUP_TAG, &tag, hash >> 32);
}

// The message of `len` bytes at `at`.
INLINE enum reason judge_at(context *packet, const struct settings *own, struct counters *books, const u8 source[6],
                            u32 at, u32 len) {
    struct header header = {};
    struct receiver *receiver;
    u32 index;

    if (len < LEN_MIN ? load(packet, at, &header.kind, 1) : load(packet, at, &header.kind, HEADER_LEN + SLOW_LEN))
        return MALFORMED;
    if ((header.kind & 0xf0) != VERSION)
        return BAD_VERSION;
    if (header.kind != UNICAST)
        return judge_tag(packet, own, books, source, header.kind, at);
    if (len < LEN_MIN || header.flags & ~HAS_SLOW || (header.flags && len < LEN_MIN + SLOW_LEN))
        return MALFORMED;
    index = big32(header.index);
    receiver = find(&receivers, &index);
    if (!receiver)
        return stranger_passes(own, books) ? GOOD : UNKNOWN_INDEX;
    return judge(receiver, source, &header);
}

INLINE int is_address_of(const u8 address[4], const u8 mac[6]) {
    return address[0] == 169 && address[1] == 254 && address[2] == 1 + mac[4] % 254 && address[3] == mac[5];
}

// Bytes of the message behind the headers of a train (docs/protocol.md, section 18), or 0 if the frame is none, or a whole train:
// a card may have joined honest messages to forged ones, and shares what the forged ones cost among many.
INLINE u32 carried_len(context *packet, const struct settings *own, const struct ethernet *ethernet) {
    struct datagram datagram;
    u32 len;

    if (may_be_joined(packet, own->joined_unmarked) || load(packet, ETHERNET_LEN, &datagram, IP_LEN + UDP_LEN))
        return 0;
    len = big16(datagram.len);
    if (datagram.version != 0x45 || datagram.protocol != UDP || datagram.fragment & big16(0x3fff))
        return 0;
    if (!is_address_of(datagram.source, ethernet->source) || !is_address_of(datagram.destination, ethernet->destination))
        return 0;
    if (datagram.port != big16(TRAIN_PORT) || len <= UDP_LEN || len + IP_LEN != big16(datagram.total_len))
        return 0;
    return ETHERNET_LEN + IP_LEN + len <= len_of(packet) ? len - UDP_LEN : 0;
}

INLINE int verdict(struct counters *books, enum reason reason) {
    if (reason >= REASONS)
        return PASS;
    __sync_fetch_and_add(&books->dropped[reason], 1);
    return DROP;
}

// To all or to many: of our own protocol only what has a tag is judged.
INLINE int of_group(context *packet, const struct settings *own, struct counters *books, const struct ethernet *ethernet) {
    u8 kind = 0;

    if (ethernet->ethertype != big16(own->ethertype) || load(packet, ETHERNET_LEN, &kind, 1))
        return PASS;
    return verdict(books, judge_tag(packet, own, books, ethernet->source, kind, ETHERNET_LEN));
}

SECTION("hook")
int shield(context *packet) {
    u32 zero = 0, at = ETHERNET_LEN, len = len_of(packet) - ETHERNET_LEN;
    struct settings *own = find(&settings, &zero);
    struct counters *books = find(&counters, &zero);
    struct ethernet ethernet = {};

    if (is_opened(packet))
        return DROP;
    if (!own || !books || load(packet, 0, &ethernet, ETHERNET_LEN))
        return PASS;
    if (ethernet.destination[0] & 1)
        return of_group(packet, own, books, &ethernet);
    if (!same(ethernet.destination, own->mac))
        return PASS;
    if (ethernet.ethertype == big16(IPV4)) {
        at = TRAIN_AT;
        len = carried_len(packet, own, &ethernet);
        if (!len)
            return PASS;
    } else if (ethernet.ethertype != big16(own->ethertype)) {
        return PASS;
    }
    return verdict(books, judge_at(packet, own, books, ethernet.source, at, len));
}
