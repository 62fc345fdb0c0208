// A budget that is kept as the time at which it is full again.
#pragma once

#define SECOND_NS 1000000000ULL

// When it is full after `cost_ns` more was taken, or 0 if there is not so much left of what gathers in `burst_ns`.
INLINE u64 after_taking(u64 full_at_ns, u64 now, u64 cost_ns, u64 burst_ns) {
    u64 after = (full_at_ns > now ? full_at_ns : now) + cost_ns;
    return after - now > burst_ns ? 0 : after;
}
