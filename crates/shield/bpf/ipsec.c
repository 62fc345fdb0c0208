// The checks of the shield in front of IPsec, in the kernel: in front of the daemon's packet socket (record 0040) or of the card's
// receive path (record 0042).
//
// It is the twin of `Shield` in crates/shield/src/ipsec and drops only what that would drop, so that a forged packet ends before it
// costs a copy and a wake-up. Whatever it is not sure of it lets pass, and the daemon decides. At the socket it stands in the place of
// the filter that keeps IPsec for the daemon (`Kept::Ipsec`), so it says first what is kept; of that the daemon does not hear what the
// program in `onward.c` will hand to the stack. `make.py` turns this file into `ipsec.bpf` and `ipsec.xdp.bpf`.
#include "ipsec.h"

INLINE int take(struct books *of, const struct settings *own, enum budget which) {
    u64 now = ticked_nanoseconds(), after = of->full_at_ns[which];

    if (after < now)
        after = now;
    after += own->interval_ns[which];
    if (after - now > own->burst_ns[which])
        return 0;
    of->full_at_ns[which] = after;
    return 1;
}

// Whether this is the second packet of its association. What was confirmed is remembered, until the daemon knows it.
INLINE int confirms(u32 peer, u32 spi, u32 sequence) {
    u32 mixed = (spi ^ (peer << 16 | peer >> 16)) * GOLDEN, place = mixed >> (32 - CANDIDATE_BITS), distance;
    u16 rest = mixed;
    struct candidate *entry = find(&candidates, &place);
    int is_near;

    if (!entry)
        return 1;
    distance = entry->sequence > sequence ? entry->sequence - sequence : sequence - entry->sequence;
    is_near = entry->peer == peer && entry->rest == rest && distance <= NEAR_PACKETS;
    if (is_near && !distance)
        return 0;
    entry->peer = peer;
    entry->rest = rest;
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
        association = find_known(of, &name);
        if (association) {
            struct window *window = window_of(association);
            return own->layers & WINDOW_LAYER && window && is_used(window, sequence) ? REPLAYED : GOOD;
        }
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

    if (find_known(of, &name))
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
    if (esp_of(packet, found, &esp))
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
    if (own->judged && !IN_FRONT_OF_CARD)
        reason = GOOD;
    else if (peer)
        reason = judge(packet, own, peer, of, kind, &found);
    else
        reason = kind == LATER_FRAGMENT || !(own->layers & SOURCE_LAYER) ? GOOD : STRANGER;
    if (reason < REASONS) {
        __sync_fetch_and_add(&of->dropped[reason], 1);
        return DROP;
    }
#ifndef XDP
    if (kind == IS_ESP && peer) {
        struct onward onward = {};
        if (goes_onward(packet, own, peer, of, &found, &onward))
            return DROP;
    }
#endif
    return PASS;
}
