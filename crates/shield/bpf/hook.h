// Where a program stands: in front of a socket, or with XDP defined in front of the card's receive path (record 0042). All that differs
// between the two is here; the checks are the same lines.
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

#ifdef XDP

typedef struct xdp_md context;

// Others listen behind this hook, so what no listener of ours wants goes on as well.
enum { DROP = XDP_DROP, PASS = XDP_PASS, NOT_FOR_US = XDP_PASS };

static long (*const load)(context *packet, u32 at, void *to, u32 len) = (void *)BPF_FUNC_xdp_load_bytes;
static u64 (*const buffer_len)(context *packet) = (void *)BPF_FUNC_xdp_get_buff_len;

INLINE u32 len_of(context *packet) { return buffer_len(packet); }

// A driver hands single frames over. The generic hook may show a whole super-frame and has no word for it; `unmarked` says so.
INLINE int may_be_joined(context *packet, u32 unmarked) { (void)packet; return unmarked != 0; }

// A tag stands in the frame, or the driver has taken it out and nobody can say so.
INLINE int has_tag(context *packet) { (void)packet; return 0; }

#else

typedef struct __sk_buff context;

// Verdicts of a socket filter are how much of the frame to keep. What it does not want is lost to this socket alone.
enum { DROP = 0, PASS = 0x7fffffff, NOT_FOR_US = DROP };

static long (*const load)(context *packet, u32 at, void *to, u32 len) = (void *)BPF_FUNC_skb_load_bytes;

INLINE u32 len_of(context *packet) { return packet->len; }
INLINE int may_be_joined(context *packet, u32 unmarked) { (void)unmarked; return packet->gso_size != 0; }
INLINE int has_tag(context *packet) { return packet->vlan_present != 0; }

#endif
