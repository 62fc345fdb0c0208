// The cheap checks of signed ARP, in the kernel: in front of the daemon's packet socket or of the card's receive path (record 0046).
//
// It drops only what the daemon would drop, so that a forged message ends before it costs a copy and a wake-up: requests to a
// distributor that the host which they name did not make, or more of them than are answered, applications with numbers that the
// site never drew, answers that nobody asked for, questions about others and more questions about us than are answered. Whatever it is
// not sure of it lets pass, and the daemon decides. At the socket it stands in the place of the filter that says what is kept for the daemon (`Kept`), which it says as
// well. `make.py` turns this file into `sarp.bpf` and `sarp.xdp.bpf`; numbers on the wire are big-endian, this machine is
// little-endian. The layout of messages and the checks are in docs/s-arp.md, sections 1, 5 and 8.
#include "hook.h"
#include "siphash.h"
#include "budget.h"

// Why a message is dropped; the order is that of `sarp::COUNTED`.
enum reason { MALFORMED, NOT_FOR_THIS_HOST, REQUEST_CHECK, ENROL_NUMBER, UNASKED, BUDGET, ENROL_BUDGET, REASONS, GOOD };

// Names of the maps; their shapes are in `sarp.rs`.
struct map { u32 unused; };
struct map settings SECTION("maps");
struct map places SECTION("maps");
struct map counters SECTION("maps");
struct map sources SECTION("maps");
struct map hosts SECTION("maps");
struct map requests SECTION("maps");
struct map acquainted SECTION("maps");

// What the socket keeps for the daemon.
enum kept { ARP_ONLY, ARP_AND_DHCP };

// Masters of a site in force at a time: while one follows another there are two.
enum { MASTERS = 2 };

// What the daemon says of itself. One entry.
struct settings {
    u64 number[MASTERS][2]; // keys of SipHash, each half little-endian, of the numbers of tokens
    u64 idle_interval_ns; // what changes nothing passes once in so long all the same: it may claim an address of ours
    u64 source_interval_ns, answer_interval_ns; // between two questions of one source that pass, and of all strangers
    u64 request_interval_ns, repeat_interval_ns; // between two requests of one host to a distributor, and the same request
    u64 token_interval_ns; // between two messages about one token
    u8 masters; // in force; only a distributor has any
    u8 kept;
    u16 reserved;
    u32 reserved_too;
};

struct counters { u64 dropped[REASONS]; u64 next_unasked_ns, next_other_ns, full_at_ns; };

// Until when an answer about an address may come, and until when it is ours; addresses share a place if their lowest bits are the same.
enum { PLACES = 4096 };
struct place { u64 asked_until_ns, own_until_ns; };
#define FOREVER (~0ULL)

// Who asks: a hardware and an IP address, or the number of a token. A budget is full at the time that stands here; sources unheard for
// longest are forgotten when there are too many. Those that have proved themselves to the daemon stand apart from those that only ask.
enum kind { ADDRESSES, TOKEN };
struct source { u8 who[10], kind, zero; };
struct budget { u64 full_at_ns; };

// A host of the site by its number: the keys of its checks, which the daemon makes when it is first
// named, and when its share of requests is full again. The first key is zero until then, and the
// second one while one master is in force.
enum { HIGHEST_NUMBER = 262144 };
struct host { u64 check_key[MASTERS][2]; u64 full_at_ns; };

// A request that passed, by its check, which no other is likely to have, and from when on it passes again.
enum { REQUESTS = 65536 };
struct request { u64 check, next_ns; };

// What every frame is judged by first, in one piece: to ask for two costs as much as a look at a map.
struct arp {
    u16 hardware, protocol; u8 hardware_len, protocol_len; u16 operation;
    u8 sender_mac[6], sender_ip[4], target_mac[6], target_ip[4];
};
struct opening { u16 ethertype; struct arp arp; };

// A message of signed ARP as far as the nonce of a request and, in most, its check.
struct message {
    struct arp arp;
    u32 magic; u8 type, signature_len; u16 data_len; u32 seconds;
    u8 number[8], nonce[16];
    u64 check;
};
enum { HEAD_WORDS = sizeof(struct message) / sizeof(u64) - 1 };
union head { struct message message; u64 words[HEAD_WORDS + 1]; };

enum { ETHERTYPE_AT = 12, ETHERNET_LEN = 14, DATA_AT = 40, HEAD_LEN = 64, NUMBER_WORD = DATA_AT / 8 };
enum { ARP = 0x0806, IPV4 = 0x0800, UDP = 17, DHCP_SERVER = 67, DHCP_CLIENT = 68 };
enum { MAGIC = 0x7599e11e, QUESTION = 1, REPLY = 2, OF_DISTRIBUTOR = 0x00ff };
enum type { TIME_REQUEST = 0x01, KEY_REQUEST = 0x04, KEY_CHANGE = 0x40, LEASE = 0x80, APPLY = 0xa0, FETCH = 0xa4 };
enum { DRAWN_LEN = 5, TOP_BIT = 0x80, NUMBER_CHECK = 0xffffff };

// Whether this source has had its share. Each begins at a moment of its own within an interval: hundreds that are made up together would
// have their next one together, and the daemon would have all of them at once.
INLINE int is_spent(const struct source *source, u64 now, u64 interval_ns) {
    struct budget fresh = { now + interval_ns + (interval_ns * random() >> 32) }, *known = find(&sources, source);
    u64 after;

    if (!known) {
        update(&sources, source, &fresh, BPF_ANY);
        return 0;
    }
    after = after_taking(known->full_at_ns, now, interval_ns, SECOND_NS);
    if (after)
        known->full_at_ns = after;
    return !after;
}

INLINE u64 hash_of(const u64 key[2], const union head *head) {
    struct state s = begin(key);
    int word;

#pragma unroll
    for (word = 0; word < HEAD_WORDS; word++)
        absorb(&s, head->words[word]);
    return finish(&s, HEAD_LEN, 0);
}

// The place of a request, which nobody can foresee who does not know the key.
INLINE struct request *place_of_request(const struct settings *own, u64 check) {
    u32 place = check * (own->number[0][0] | 1) >> 32 & (REQUESTS - 1);
    return find(&requests, &place);
}

// Whether the check is made with one of the host's keys.
INLINE int is_check_of(const struct host *host, const union head *head, u64 check) {
    int at;

#pragma clang loop unroll(disable)
    for (at = 0; at < MASTERS && host->check_key[at][0]; at++)
        if (hash_of(host->check_key[at], head) == check)
            return 1;
    return 0;
}

// A request that names this host, and `check` where its check is. Whatever is asked too often is looked at before the check: it costs
// less, and only what has a right one is charged. What was recorded and comes again is charged to nobody, or it would use up what
// belongs to its host.
INLINE enum reason judge_request_of(const struct settings *own, struct host *host, const union head *head, u64 check) {
    u64 now = ticked_nanoseconds(), after = after_taking(host->full_at_ns, now, own->request_interval_ns, SECOND_NS);
    struct request *last = place_of_request(own, check);

    if (!after || (last && last->check == check && now < last->next_ns))
        return BUDGET;
    if (!is_check_of(host, head, check))
        return REQUEST_CHECK;
    host->full_at_ns = after;
    if (last)
        *last = (struct request){ check, now + own->repeat_interval_ns };
    return GOOD;
}

// The check of a request is over its head, and behind that, or behind all data, which is the same place but for a lease.
INLINE enum reason judge_request(context *packet, const struct settings *own, union head *head) {
    u64 number = big64(head->words[NUMBER_WORD]), check = head->message.check;
    u32 place = number, at = ETHERNET_LEN + DATA_AT + big16(head->message.data_len);
    struct host *host;

    if (head->message.type != KEY_CHANGE && at != ETHERNET_LEN + HEAD_LEN && load(packet, at, &check, sizeof(check)))
        return MALFORMED;
    if (number > HIGHEST_NUMBER)
        return REQUEST_CHECK;
    host = find(&hosts, &place);
    if (!host || !host->check_key[0][0])
        return GOOD;
    head->message.signature_len = 0;
    return judge_request_of(own, host, head, check);
}

INLINE int is_number_of(const u64 key[2], u64 drawn, u32 check) {
    struct state s = begin(key);
    return (finish(&s, DRAWN_LEN, drawn) & NUMBER_CHECK) == check;
}

// The number of a token ends in what follows from the bytes that were drawn. Who has overheard one has its share.
INLINE enum reason judge_number(const struct settings *own, const u8 number[8]) {
    struct source token = { .kind = TOKEN };
    u64 drawn = number[0] | (u64)number[1] << 8 | (u64)number[2] << 16 | (u64)number[3] << 24 | (u64)number[4] << 32;
    u32 check = number[5] << 16 | number[6] << 8 | number[7];

    if (number[0] & TOP_BIT)
        return ENROL_NUMBER;
    if (!is_number_of(own->number[0], drawn, check)
        && (own->masters < MASTERS || !is_number_of(own->number[1], drawn, check)))
        return ENROL_NUMBER;
    __builtin_memcpy(token.who, number, sizeof(u64));
    return is_spent(&token, ticked_nanoseconds(), own->token_interval_ns) ? ENROL_BUDGET : GOOD;
}

// A message to or from a distributor. Its answers carry a nonce that only the daemon knows.
INLINE enum reason judge_distribution(context *packet, const struct settings *own) {
    union head head = {};

    if (load(packet, ETHERNET_LEN, &head, sizeof(head)) || head.message.magic != big32(MAGIC))
        return MALFORMED;
    switch (head.message.type) {
    case TIME_REQUEST: case KEY_REQUEST: case KEY_CHANGE: case LEASE:
        return own->masters ? judge_request(packet, own, &head) : NOT_FOR_THIS_HOST;
    case APPLY: case FETCH:
        return own->masters ? judge_number(own, head.message.number) : NOT_FOR_THIS_HOST;
    default:
        return GOOD;
    }
}

INLINE struct place *place_of(const u8 ip[4]) {
    u32 place = (ip[2] << 8 | ip[3]) % PLACES;
    return find(&places, &place);
}

// What is not worth the daemon's time passes once in a while.
INLINE int is_over(u64 *next_ns, u64 now, u64 interval_ns) {
    if (now < *next_ns)
        return 1;
    *next_ns = now + interval_ns;
    return 0;
}

// An answer between hosts, signed or plain.
INLINE enum reason judge_answer(struct counters *books, const struct settings *own, const struct arp *arp) {
    struct place *place = place_of(arp->sender_ip);
    u64 now = nanoseconds_since_boot();

    if (!place || now < place->asked_until_ns)
        return GOOD;
    return is_over(&books->next_unasked_ns, now, own->idle_interval_ns) ? UNASKED : GOOD;
}

INLINE int is_ours(const struct place *place) {
    u64 until_ns = place->own_until_ns;
    return until_ns == FOREVER || (until_ns && nanoseconds_since_boot() < until_ns);
}

// Whether a budget has nothing left before the next tick either. That is told by the clock that moves by ticks: reading the other takes
// as long as all that is done here. What may pass does so at its own moment, or all that a tick lets pass would come to the daemon at
// once and hold up what is received.
INLINE int is_spent_for_now(u64 full_at_ns, u64 interval_ns) {
    return !after_taking(full_at_ns, ticked_nanoseconds() + TICK_MAX_NS, interval_ns, SECOND_NS);
}

// A question of somebody who has proved that these addresses belong together: strangers, who are as many as one of them likes, take
// nothing of his share.
INLINE enum reason judge_share(struct budget *share, u64 interval_ns) {
    u64 after;

    if (is_spent_for_now(share->full_at_ns, interval_ns))
        return BUDGET;
    after = after_taking(share->full_at_ns, nanoseconds(), interval_ns, SECOND_NS);
    if (!after)
        return BUDGET;
    share->full_at_ns = after;
    return GOOD;
}

// A stranger's. Each source has its share, and all together what is answered at all. That is looked at first, so that sources
// which are made up do not push each other out.
INLINE enum reason judge_stranger(struct counters *books, const struct settings *own, const struct source *source) {
    struct budget *known;
    u64 now, after;

    if (is_spent_for_now(books->full_at_ns, own->answer_interval_ns))
        return BUDGET;
    known = find(&sources, source);
    if (known && is_spent_for_now(known->full_at_ns, own->source_interval_ns))
        return BUDGET;
    now = nanoseconds();
    after = after_taking(books->full_at_ns, now, own->answer_interval_ns, SECOND_NS);
    if (!after || is_spent(source, now, own->source_interval_ns))
        return BUDGET;
    books->full_at_ns = after;
    return GOOD;
}

// A question about us.
INLINE enum reason judge_budgets(struct counters *books, const struct settings *own, const struct arp *arp) {
    struct source source = { .kind = ADDRESSES };
    struct budget *share;

    __builtin_memcpy(source.who, arp->sender_mac, sizeof(source.who));
    share = find(&acquainted, &source);
    return share ? judge_share(share, own->source_interval_ns) : judge_stranger(books, own, &source);
}

// A question between hosts, or an announcement.
INLINE enum reason judge_question(struct counters *books, const struct settings *own, const struct arp *arp) {
    struct place *place = place_of(arp->target_ip);

    if (!place)
        return GOOD;
    if (is_ours(place))
        return judge_budgets(books, own, arp);
    return is_over(&books->next_other_ns, nanoseconds_since_boot(), own->idle_interval_ns) ? NOT_FOR_THIS_HOST : GOOD;
}

INLINE enum reason judge(context *packet, const struct settings *own, struct counters *books, const struct arp *arp) {
    switch (arp->operation) {
    case big16(QUESTION):
        return judge_question(books, own, arp);
    case big16(REPLY):
        return judge_answer(books, own, arp);
    case big16(OF_DISTRIBUTOR):
        return judge_distribution(packet, own);
    default:
        return GOOD;
    }
}

struct ip_head { u8 version, service; u16 len, identification, fragment; u8 ttl, protocol; };

// A first fragment of UDP to a port of DHCP.
INLINE int is_dhcp(context *packet) {
    struct ip_head ip = {};
    u16 port;

    if (load(packet, ETHERNET_LEN, &ip, sizeof(ip)) || ip.protocol != UDP || ip.fragment & big16(0x1fff))
        return 0;
    if (load(packet, ETHERNET_LEN + (ip.version & 15) * 4 + 2, &port, sizeof(port)))
        return 0;
    return port == big16(DHCP_SERVER) || port == big16(DHCP_CLIENT);
}

INLINE int other(context *packet, const struct settings *own, u16 ethertype) {
    if (own->kept == ARP_AND_DHCP && ethertype == big16(IPV4) && is_dhcp(packet))
        return PASS;
    return NOT_FOR_US;
}

SECTION("hook")
int sarp(context *packet) {
    u32 zero = 0;
    struct opening opening = {};
    // What is too short for ARP has a type all the same.
    int is_whole = !load(packet, ETHERTYPE_AT, &opening, sizeof(opening));
    struct settings *own = find(&settings, &zero);
    struct counters *books = find(&counters, &zero);
    enum reason reason;

    if (!own || !books || (!is_whole && load(packet, ETHERTYPE_AT, &opening.ethertype, sizeof(u16))))
        return NOT_FOR_US;
    // On a card that stays in place the socket hears what the daemon hands to the stack.
    if (is_opened(packet))
        return NOT_FOR_US;
    if (opening.ethertype != big16(ARP))
        return other(packet, own, opening.ethertype);
    // The daemon says what is wrong with a tag, and with a message that is cut.
    reason = has_tag(packet) || !is_whole ? GOOD : judge(packet, own, books, &opening.arp);
    if (reason >= REASONS)
        return PASS;
    __sync_fetch_and_add(&books->dropped[reason], 1);
    return DROP;
}
