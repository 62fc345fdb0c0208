// Hands the packets of known associations to the IPsec stack, under their SPIs, without the daemon (record 0055).
//
// It stands behind all sockets and in front of the rules that join card and stack, and leaves to them what it does not take. It takes
// what `ipsec.c` has kept from the daemon for that, by the same lines. Where the two see different things, because another processor has
// entered the same number in between, a packet is dropped here as a repetition. `make.py` turns this file into `onward.bpf`.
#include "ipsec.h"

// Enters a number that is not used; 0 if somebody else has meanwhile.
INLINE int enter(struct window *window, u32 sequence) {
    u64 *place = block_of(window, sequence), mine = (u64)(sequence / BLOCK_PACKETS) << 32, was, now;
    int attempt, ahead;

#pragma unroll
    for (attempt = 0; attempt < ATTEMPTS; attempt++) {
        was = *(volatile u64 *)place;
        ahead = blocks_ahead(was, sequence);
        if (ahead > 0 || (!ahead && was & bit_of(sequence)))
            return 0;
        now = (ahead ? mine : was) | bit_of(sequence);
        if (__sync_val_compare_and_swap(place, was, now) == was)
            break;
    }
    if (attempt == ATTEMPTS)
        return 0;
#pragma unroll
    for (attempt = 0; attempt < ATTEMPTS; attempt++) {
        was = *(volatile u64 *)&window->highest;
        if (sequence <= was || __sync_val_compare_and_swap(&window->highest, was, (u64)sequence) == was)
            break;
    }
    return 1;
}

// Puts the SPI in the place of the index. The checksum of the datagram around it stays right, and none stays none.
INLINE int put_spi(context *packet, const struct found *found, const struct onward *onward) {
    u64 flags = BPF_F_RECOMPUTE_CSUM;
    u16 checksum = 0;

    if (found->checksum_at && load(packet, found->checksum_at, &checksum, 2))
        return 0;
    if (checksum) {
        if (amend(packet, found->checksum_at, onward->esp.index, onward->spi, BPF_F_MARK_MANGLED_0 | BOTH_HALVES))
            return 0;
        flags = 0;
    }
    return !store(packet, found->esp_at, &onward->spi, 4, flags);
}

SECTION("hook")
int pass_on(context *packet) {
    struct onward onward = {};
    struct found found = {};
    u32 zero = 0, number;
    struct settings *own = find(&settings, &zero);
    struct peer *peer;
    struct books *of;

    if (!own || has_tag(packet) || may_be_joined(packet, 0) || find_packet(packet, &found) != IS_ESP)
        return NEXT;
    peer = find(&peers, found.source);
    if (!peer)
        return NEXT;
    number = peer->number;
    of = find(&books, &number);
    if (!of || !goes_onward(packet, own, peer, of, &found, &onward))
        return NEXT;
    if (!enter(onward.window, big32(onward.esp.sequence)) || !put_spi(packet, &found, &onward)) {
        __sync_fetch_and_add(&of->dropped[REPLAYED], 1);
        return DROP;
    }
    __sync_fetch_and_add(&of->passed, 1);
    return hand_to_peer(own->outer, 0);
}
