// A flood: frames that the lab has forged, one after the other, into an interface, as often as is wanted.
//
// The kernel runs this program over and over on pages of its own (BPF_PROG_TEST_RUN with live frames, Linux 5.18) and hands what it
// redirects to the interface, as a card hands up what came by wire: without a socket buffer, and in handfuls. So an attacker costs a
// tenth of what one with a packet socket does, and leaves the machine to those who are measured. The `make.py` of the shield's programs
// turns this file into `flood.bpf`.
#include <linux/bpf.h>

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#include "../../shield/bpf/siphash.h"

// Names of the maps; their shapes are in crates/lab/src/net/flood.rs.
struct map { u32 unused; };
struct map settings SECTION("maps");
struct map frames SECTION("maps");

// One entry, which the lab fills; the program goes on with `next_ns` and `sent`.
struct settings {
    u64 interval_ns; // from one handful to the next, or 0: as fast as it goes
    u64 next_ns;     // when the next handful is due, by the monotonic clock
    u64 sent;
    u32 interface;
    u32 frames;
    u64 hint[2]; // key of SipHash, each half little-endian
    u64 tag_at;  // where each frame gets a new tag that has the right hint, or 0: nowhere
};

// The tag under the site key, all of which follows from the frame but here its end, which follows from the rest (the hint).
struct tag { u64 proof; u32 more_proof, hint; };

// Frames that come together, as a card hands them up that moderates its interrupts.
enum { HANDFUL = 16 };

enum { FRAME_MAX = 2047 };

struct frame {
    u32 len;
    u8 bytes[FRAME_MAX + 1];
};

// What the attacker had no processor for comes later, as fast as it goes; after a longer pause of the machine the flood does not make
// up for more than this.
#define BEHIND_MAX_NS 100000000ULL

static void *(*const find)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static u64 (*const nanoseconds)(void) = (void *)BPF_FUNC_ktime_get_ns;
static u64 (*const length)(struct xdp_md *packet) = (void *)BPF_FUNC_xdp_get_buff_len;
static long (*const lengthen)(struct xdp_md *packet, int by) = (void *)BPF_FUNC_xdp_adjust_tail;
static long (*const store)(struct xdp_md *packet, u32 at, void *from, u32 len) = (void *)BPF_FUNC_xdp_store_bytes;
static u32 (*const random)(void) = (void *)BPF_FUNC_get_prandom_u32;
static long (*const redirect)(u32 interface, u64 flags) = (void *)BPF_FUNC_redirect;

// What somebody makes who has the site key and does not repeat himself.
INLINE long renew(struct xdp_md *packet, const struct settings *own) {
    struct tag tag = {(u64)random() << 32 | random(), random(), 0};
    struct state s = begin(own->hint);
    absorb(&s, tag.proof);
    tag.hint = __builtin_bswap32((u32)finish(&s, 12, tag.more_proof));
    return store(packet, own->tag_at, &tag, sizeof(tag));
}

SECTION("hook")
int flood(struct xdp_md *packet) {
    u32 zero = 0, at, len;
    u64 now = nanoseconds();
    struct settings *own = find(&settings, &zero);
    struct frame *frame;

    if (!own || !own->frames || now < own->next_ns)
        return XDP_DROP;
    if (own->next_ns + BEHIND_MAX_NS < now)
        own->next_ns = now - BEHIND_MAX_NS;
    if (own->sent % HANDFUL == HANDFUL - 1)
        own->next_ns += own->interval_ns;
    at = own->sent % own->frames;
    frame = find(&frames, &at);
    if (!frame)
        return XDP_DROP;
    len = frame->len & FRAME_MAX;
    if (lengthen(packet, (int)len - (int)length(packet)) || !len || store(packet, 0, frame->bytes, len))
        return XDP_DROP;
    if (own->tag_at && renew(packet, own))
        return XDP_DROP;
    own->sent++;
    return redirect(own->interface, 0);
}
