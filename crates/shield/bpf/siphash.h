// SipHash-2-4 by words of eight bytes, which stand as in memory: this machine is little-endian, as the function is.
#pragma once

INLINE u64 rotated(u64 word, int bits) { return word << bits | word >> (64 - bits); }

struct state { u64 v0, v1, v2, v3; };

INLINE struct state begin(const u64 key[2]) {
    struct state s = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
    return s;
}

INLINE void mix(struct state *s) {
    s->v0 += s->v1; s->v1 = rotated(s->v1, 13) ^ s->v0; s->v0 = rotated(s->v0, 32);
    s->v2 += s->v3; s->v3 = rotated(s->v3, 16) ^ s->v2;
    s->v0 += s->v3; s->v3 = rotated(s->v3, 21) ^ s->v0;
    s->v2 += s->v1; s->v1 = rotated(s->v1, 17) ^ s->v2; s->v2 = rotated(s->v2, 32);
}

INLINE void absorb(struct state *s, u64 word) {
    s->v3 ^= word;
    mix(s);
    mix(s);
    s->v0 ^= word;
}

// The hash of what was absorbed and of the rest of `len` bytes, which `rest` holds.
INLINE u64 finish(struct state *s, u64 len, u64 rest) {
    absorb(s, len << 56 | rest);
    s->v2 ^= 0xff;
    mix(s);
    mix(s);
    mix(s);
    mix(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}
