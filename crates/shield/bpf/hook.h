// Where a program stands: in front of a socket; with XDP defined in front of the card's receive path (record 0042); with INGRESS defined
// behind all sockets, in front of what joins card and stack (record 0055). All that differs between them is here; the checks are the
// same lines.
#include <linux/bpf.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define big16(x) __builtin_bswap16(x)
#define big32(x) __builtin_bswap32(x)
#define big64(x) __builtin_bswap64(x)

static void *(*const find)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*const update)(void *map, const void *key, const void *value, u64 flags) = (void *)BPF_FUNC_map_update_elem;
static u64 (*const nanoseconds)(void) = (void *)BPF_FUNC_ktime_get_ns;
static u64 (*const nanoseconds_since_boot)(void) = (void *)BPF_FUNC_ktime_get_boot_ns;
// As `nanoseconds`, but it moves by the kernel's ticks, of some milliseconds, and takes no time to read.
static u64 (*const ticked_nanoseconds)(void) = (void *)BPF_FUNC_ktime_get_coarse_ns;
#define TICK_MAX_NS 10000000ULL
static u32 (*const random)(void) = (void *)BPF_FUNC_get_prandom_u32;

// The frame from the tail of its addresses on, where that much lies in one piece: what stands behind an Ethernet header is aligned in it.
enum { FIRST_AT = 10 };
struct first_bytes { u64 words[8]; };

#ifdef XDP

typedef struct xdp_md context;

// Others listen behind this hook, so what no listener of ours wants goes on as well.
enum { DROP = XDP_DROP, PASS = XDP_PASS, NOT_FOR_US = XDP_PASS };
enum { IN_FRONT_OF_CARD = 1 };

static long (*const load_pieces)(context *packet, u32 at, void *to, u32 len) = (void *)BPF_FUNC_xdp_load_bytes;

// What lies in the first piece is read where it lies, which a call takes five times as long for; `len` is a constant.
enum { DIRECT_MAX = 64, PLACE_MAX = 4096 };
INLINE int load(context *packet, u32 at, void *to, u32 len) {
    u8 *place = (u8 *)(long)packet->data, *end = (u8 *)(long)packet->data_end;

    if (len <= DIRECT_MAX && at < PLACE_MAX) {
        place += at;
        if (place + len <= end) {
            __builtin_memcpy(to, place, len);
            return 0;
        }
    }
    return load_pieces(packet, at, to, len);
}

static u64 (*const buffer_len)(context *packet) = (void *)BPF_FUNC_xdp_get_buff_len;

INLINE u32 len_of(context *packet) { return buffer_len(packet); }

// Bytes that lie in one piece, and the first of them; a frame that is shorter has none.
INLINE u32 first_piece_of(context *packet) { return packet->data_end - packet->data; }

INLINE int load_first(context *packet, struct first_bytes *to) {
    u8 *data = (u8 *)(long)packet->data, *end = (u8 *)(long)packet->data_end;

    if (data + FIRST_AT + sizeof(*to) > end)
        return -1;
    *to = *(struct first_bytes *)(data + FIRST_AT);
    return 0;
}

// A driver hands single frames over. The generic hook may show a whole super-frame and has no word for it; `unmarked` says so.
INLINE int may_be_joined(context *packet, u32 unmarked) { (void)packet; return unmarked != 0; }

// The socket alone hears what the daemon itself has opened and handed to the stack.
INLINE int is_opened(context *packet) { (void)packet; return 0; }

// A tag stands in the frame, or the driver has taken it out and nobody can say so.
INLINE int has_tag(context *packet) { (void)packet; return 0; }

#else

typedef struct __sk_buff context;

#ifdef INGRESS

// What it does not take the next one at the hook decides about, in the end the rules.
enum { DROP = 2, NEXT = -1 };
enum { BOTH_HALVES = 4 };

static long (*const store)(context *packet, u32 at, const void *from, u32 len, u64 flags) = (void *)BPF_FUNC_skb_store_bytes;
static long (*const amend)(context *packet, u32 checksum_at, u64 from, u64 to, u64 flags) = (void *)BPF_FUNC_l4_csum_replace;
static long (*const hand_to_peer)(u32 interface, u64 flags) = (void *)BPF_FUNC_redirect_peer;

#else

// Verdicts of a socket filter are how much of the frame to keep. What it does not want is lost to this socket alone.
enum { DROP = 0, PASS = 0x7fffffff, NOT_FOR_US = DROP };
enum { IN_FRONT_OF_CARD = 0 };

#endif

static long (*const load)(context *packet, u32 at, void *to, u32 len) = (void *)BPF_FUNC_skb_load_bytes;

INLINE u32 len_of(context *packet) { return packet->len; }
INLINE u32 first_piece_of(context *packet) { return packet->len; }
INLINE int load_first(context *packet, struct first_bytes *to) { return load(packet, FIRST_AT, to, sizeof(*to)); }
INLINE int may_be_joined(context *packet, u32 unmarked) { (void)unmarked; return packet->gso_size != 0; }
INLINE int has_tag(context *packet) { return packet->vlan_present != 0; }

// The mark is that of `system::takeover::OPENED_MARK`.
INLINE int is_opened(context *packet) { return packet->mark == 0x52574f50; }

// Whether the card heard it as a frame to its own address.
INLINE int is_to_us(context *packet) { return packet->pkt_type == 0; }

#endif
