// In front of the receive path of a card that stays in place (records 0070 and 0080): what is
// sealed goes on to the daemon's socket. What is in clear is handed to a TAP that the daemon alone
// reads, so that no socket of another program hears it before the daemon has judged it; all of it
// where the configuration may let some in, and else a sample. The rest ends here and is counted.
//
// A redirect to another device passes neither the packet sockets of the card nor those of the TAP.
// `make.py` of the shield's programs turns this file into `guard.bpf`.
#define XDP
#include "../../shield/bpf/hook.h"
#include "../../shield/bpf/budget.h"

enum { ADMITTED_MAX = 64, SOURCES = 256 };

// Names of the maps; their shapes are in `takeover/in_place/guard.rs`.
struct map { u32 unused; };
struct map entry SECTION("maps");
struct map sources SECTION("maps");

// One entry. EtherTypes and the port are as they lie in a frame; the first zero ends the list.
struct entry {
    u64 arp_dropped, others_dropped;
    // Whether all that is in clear is handed over, and to which device; none if that is 0.
    u64 open, clear;
    u64 train_port;
    // When the budgets of samples of ARP and of others are full again.
    u64 arp_full_at_ns, others_full_at_ns;
    u64 admitted[ADMITTED_MAX];
};

// The budget of samples of all sources, and claims by ARP, that fall to one place.
struct source { u64 full_at_ns; };

static long (*const redirect)(u32 interface, u64 flags) = (void *)BPF_FUNC_redirect;

enum { ETHERNET_LEN = 14, SOURCE_AT = 6, ETHERTYPE_AT = 12, ARP_SENDER_IP_AT = 28 };
enum { ARP = 0x0806, IPV4 = 0x0800, UDP = 17, LINK_LOCAL = 0xa9fe, TRAIN_HEAD_LEN = 42 };

// So many samples of a kind in a second, and at once; and of these from one source.
#define SAMPLE_NS (SECOND_NS / 200)
#define SAMPLES_NS (64 * SAMPLE_NS)
#define SOURCE_SAMPLE_NS (SECOND_NS / 20)
#define SOURCE_SAMPLES_NS (16 * SOURCE_SAMPLE_NS)

INLINE int is_admitted(const struct entry *own, u16 ethertype) {
    for (int at = 0; at < ADMITTED_MAX; at++) {
        if (own->admitted[at] == 0)
            return 0;
        if (own->admitted[at] == ethertype)
            return 1;
    }
    return 0;
}

// A datagram whose headers are those of a train (docs/protocol.md, section 18).
INLINE int is_train(const struct entry *own, u8 *frame, u8 *end) {
    if (*(u16 *)(frame + ETHERTYPE_AT) != big16(IPV4) || frame + TRAIN_HEAD_LEN > end)
        return 0;
    return frame[14] == 0x45 && frame[23] == UDP && *(u16 *)(frame + 26) == big16(LINK_LOCAL)
        && *(u16 *)(frame + 30) == big16(LINK_LOCAL) && *(u16 *)(frame + 36) == own->train_port;
}

// The place of a frame's sender. Each address that it claims by ARP has a place of its own, so that
// a flood of one claim does not hide another.
INLINE u32 place_of(u8 *frame, u8 *end, int is_arp) {
    u32 sender = *(u32 *)(frame + SOURCE_AT + 2) ^ *(u16 *)(frame + SOURCE_AT);

    if (is_arp && frame + ARP_SENDER_IP_AT + 4 <= end)
        sender ^= *(u32 *)(frame + ARP_SENDER_IP_AT) * 0x85ebca6b;
    return (sender * 0x9e3779b1) >> 24;
}

// Whether the daemon is to see this one. Who floods uses up what is its own, and all who flood no
// more than what one kind of frames has: the daemon has other work.
INLINE int is_sampled(struct entry *own, u8 *frame, u8 *end) {
    int is_arp = *(u16 *)(frame + ETHERTYPE_AT) == big16(ARP);
    u32 place = place_of(frame, end, is_arp);
    u64 now = ticked_nanoseconds(), after, all_after;
    u64 *all = is_arp ? &own->arp_full_at_ns : &own->others_full_at_ns;
    struct source *source = find(&sources, &place);

    if (!source)
        return 0;
    after = after_taking(source->full_at_ns, now, SOURCE_SAMPLE_NS, SOURCE_SAMPLES_NS);
    all_after = after_taking(*all, now, SAMPLE_NS, SAMPLES_NS);
    if (!after || !all_after)
        return 0;
    source->full_at_ns = after;
    *all = all_after;
    return 1;
}

SECTION("hook")
int guard(context *packet) {
    u8 *frame = (u8 *)(long)packet->data, *end = (u8 *)(long)packet->data_end;
    u32 zero = 0;
    struct entry *own = find(&entry, &zero);
    int is_arp = 0;

    if (!own)
        return DROP;
    if (frame + ETHERNET_LEN <= end) {
        u16 ethertype = *(u16 *)(frame + ETHERTYPE_AT);

        if (is_admitted(own, ethertype) || is_train(own, frame, end))
            return PASS;
        if (own->clear && (own->open || is_sampled(own, frame, end)))
            return redirect(own->clear, 0);
        is_arp = ethertype == big16(ARP);
    }
    __sync_fetch_and_add(is_arp ? &own->arp_dropped : &own->others_dropped, 1);
    return DROP;
}
