// Beside a card that stays in place (record 0071): drops what lacks the daemon's mark, of all frames or
// of those that are kept for the daemon alone, and counts it.
//
// A filter of tc. At the egress it stands behind the rules of nftables: what comes to it says that they
// are gone. At the ingress it stands in front of them and behind all packet sockets, of which the
// daemon's is one. `make.py` of the shield's programs turns this file into `keep.bpf`.
#define INGRESS
#include "../../shield/bpf/hook.h"

// Name of the map; its shape is in `takeover/in_place/belt.rs`.
struct map { u32 unused; };
struct map entry SECTION("maps");

enum kept { ALL, ARP_AND_TAGGED };

// One entry.
struct entry { u64 dropped, mark, kept; };

enum { ARP = 0x0806, TAG = 0x8100, SERVICE_TAG = 0x88a8, OLD_SERVICE_TAG = 0x9100 };

// The kernel takes tags with VLAN number 0 off, however many there are, and learns from the ARP behind them.
INLINE int is_arp_or_tagged(const context *packet) {
    switch (packet->protocol) {
    case big16(ARP): case big16(TAG): case big16(SERVICE_TAG): case big16(OLD_SERVICE_TAG):
        return 1;
    default:
        return packet->vlan_present != 0;
    }
}

SECTION("hook")
int keep(context *packet) {
    u32 zero = 0;
    struct entry *own = find(&entry, &zero);

    if (!own)
        return DROP;
    if (packet->mark == own->mark || (own->kept == ARP_AND_TAGGED && !is_arp_or_tagged(packet)))
        return NEXT;
    __sync_fetch_and_add(&own->dropped, 1);
    return DROP;
}
