/* What authenticating one message costs with the algorithms of nettle: `macs SIZE...` prints "NAME SIZE NANOSECONDS" lines.
 *
 * Built by bench/nonces/macs/nettle.rs, which says how its two runs differ. Nettle chooses its code by the processor, and by
 * NETTLE_FAT_OVERRIDE. Before anything is timed each algorithm is compared with the vectors of its own RFC.
 */

#define _POSIX_C_SOURCE 199309L

#include <nettle/gcm.h>
#include <nettle/hmac.h>
#include <nettle/umac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE_MAX_HERE = 1 << 16, BYTES_IN_A_BATCH = 1 << 17, BATCHES = 25, TAG_MAX = 32 };

static struct hmac_md5_ctx md5;
static struct hmac_sha1_ctx sha1;
static struct hmac_sha256_ctx sha256;
static struct umac64_ctx umac;
static struct gcm_aes128_ctx gcm;

static void hmac_md5(size_t size, const uint8_t *message, uint8_t *tag)
{
    hmac_md5_update(&md5, size, message);
    hmac_md5_digest(&md5, 16, tag);
}

static void hmac_sha1(size_t size, const uint8_t *message, uint8_t *tag)
{
    hmac_sha1_update(&sha1, size, message);
    hmac_sha1_digest(&sha1, 20, tag);
}

static void hmac_sha256(size_t size, const uint8_t *message, uint8_t *tag)
{
    hmac_sha256_update(&sha256, size, message);
    hmac_sha256_digest(&sha256, 32, tag);
}

/* Counts its nonce by itself. */
static void umac64(size_t size, const uint8_t *message, uint8_t *tag)
{
    umac64_update(&umac, size, message);
    umac64_digest(&umac, 8, tag);
}

static void gmac(size_t size, const uint8_t *message, uint8_t *tag)
{
    static uint8_t nonce[GCM_IV_SIZE];
    gcm_aes128_set_iv(&gcm, sizeof nonce, nonce);
    gcm_aes128_update(&gcm, size, message);
    gcm_aes128_digest(&gcm, 16, tag);
    nonce[0]++;
}

typedef void mac_function(size_t, const uint8_t *, uint8_t *);

static const struct {
    const char *name;
    mac_function *run;
} MACS[] = {
    {"hmac-md5", hmac_md5},
    {"hmac-sha1", hmac_sha1},
    {"hmac-sha256", hmac_sha256},
    {"umac-64", umac64},
    {"gmac", gmac},
};

static void set_keys(void)
{
    static const uint8_t key[] = "abcdefghijklmnop";
    hmac_md5_set_key(&md5, 16, key);
    hmac_sha1_set_key(&sha1, 16, key);
    hmac_sha256_set_key(&sha256, 16, key);
    umac64_set_key(&umac, key);
    gcm_aes128_set_key(&gcm, key);
}

static void expect(mac_function *run, const char *message, size_t len, const uint8_t *published, const char *where)
{
    uint8_t tag[TAG_MAX];
    run(strlen(message), (const uint8_t *)message, tag);
    if (memcmp(tag, published, len) != 0) {
        fprintf(stderr, "not what %s says\n", where);
        exit(1);
    }
}

static void check(void)
{
    static const uint8_t md5_tag[] = {0x75, 0x0c, 0x78, 0x3e, 0x6a, 0xb0, 0xb5, 0x03,
                                      0xea, 0xa8, 0x6e, 0x31, 0x0a, 0x5d, 0xb7, 0x38};
    static const uint8_t sha1_tag[] = {0xef, 0xfc, 0xdf, 0x6a, 0xe5, 0xeb, 0x2f, 0xa2, 0xd2, 0x74,
                                       0x16, 0xd5, 0xf1, 0x84, 0xdf, 0x9c, 0x25, 0x9a, 0x7c, 0x79};
    static const uint8_t sha256_tag[] = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24,
                                         0x26, 0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27,
                                         0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};
    static const uint8_t umac_tag[] = {0x44, 0xb5, 0xcb, 0x54, 0x2f, 0x22, 0x01, 0x04};
    static const uint8_t gmac_tag[] = {0x58, 0xe2, 0xfc, 0xce, 0xfa, 0x7e, 0x30, 0x61,
                                       0x36, 0x7f, 0x1d, 0x57, 0xa4, 0xe7, 0x45, 0x5a};
    static const uint8_t zeros[16];
    const char *question = "what do ya want for nothing?";

    hmac_md5_set_key(&md5, 4, (const uint8_t *)"Jefe");
    hmac_sha1_set_key(&sha1, 4, (const uint8_t *)"Jefe");
    hmac_sha256_set_key(&sha256, 4, (const uint8_t *)"Jefe");
    umac64_set_key(&umac, (const uint8_t *)"abcdefghijklmnop");
    umac64_set_nonce(&umac, 8, (const uint8_t *)"bcdefghi");
    gcm_aes128_set_key(&gcm, zeros);
    expect(hmac_md5, question, sizeof md5_tag, md5_tag, "RFC 2202, section 2, case 2");
    expect(hmac_sha1, question, sizeof sha1_tag, sha1_tag, "RFC 2202, section 3, case 2");
    expect(hmac_sha256, question, sizeof sha256_tag, sha256_tag, "RFC 4231, case 2");
    expect(umac64, "aaa", sizeof umac_tag, umac_tag, "the appendix of RFC 4418");
    expect(gmac, "", sizeof gmac_tag, gmac_tag, "case 1 of the specification of GCM");
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Nanoseconds for a message: of the fastest batch, since whatever disturbs a batch makes it slower. */
static double cost(mac_function *run, size_t size, const uint8_t *message)
{
    uint8_t tag[TAG_MAX];
    double best = 1e18;
    size_t count = BYTES_IN_A_BATCH / (size + 64);
    for (int batch = 0; batch < BATCHES; batch++) {
        double start = now_ns();
        for (size_t i = 0; i < count; i++)
            run(size, message, tag);
        double each = (now_ns() - start) / (double)count;
        best = each < best ? each : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    static uint8_t message[SIZE_MAX_HERE];
    memset(message, 0x5a, sizeof message);
    check();
    set_keys();
    for (int i = 1; i < argc; i++) {
        size_t size = strtoul(argv[i], NULL, 10);
        if (size == 0 || size > sizeof message) {
            fprintf(stderr, "no size: %s\n", argv[i]);
            return 2;
        }
        for (size_t at = 0; at < sizeof MACS / sizeof MACS[0]; at++)
            printf("%s %zu %.3f\n", MACS[at].name, size, cost(MACS[at].run, size, message));
    }
    return 0;
}
