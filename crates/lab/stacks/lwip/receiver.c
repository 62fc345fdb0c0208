/* A host made of lwIP (Debian's liblwip) behind a pipe: frames in, frames out, and what the application read. The records are
 * those of ../../src/stacks/receiving/program.rs. It is given to whoever attacks it, and so trusts nothing but the pipe. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lwip/etharp.h>
#include <lwip/ethip6.h>
#include <lwip/ip4_frag.h>
#include <lwip/ip6_frag.h>
#include <lwip/netif.h>
#include <lwip/pbuf.h>
#include <lwip/tcp.h>
#include <lwip/tcpip.h>
#include <lwip/udp.h>
#include <netif/ethernet.h>

enum { PORT = 7777, RECORD_MAX = 65535, STREAM_MAX = 1 << 20 };

static struct netif card;
static struct tcp_pcb *connection;
static uint8_t stream[STREAM_MAX];
static size_t stream_len;

static void put_record(char kind, const void *bytes, size_t len) {
    uint8_t head[3] = {(uint8_t)kind, (uint8_t)(len >> 8), (uint8_t)len};
    fwrite(head, 1, sizeof head, stdout);
    fwrite(bytes, 1, len, stdout);
}

static int get(void *bytes, size_t len) { return fread(bytes, 1, len, stdin) == len; }

static void flatten_and_put(char kind, struct pbuf *p) {
    static uint8_t whole[RECORD_MAX];
    put_record(kind, whole, pbuf_copy_partial(p, whole, sizeof whole, 0));
}

static err_t transmit(struct netif *netif, struct pbuf *p) {
    (void)netif;
    flatten_and_put('F', p);
    return ERR_OK;
}

static err_t begin_card(struct netif *netif) {
    netif->name[0] = 'e';
    netif->name[1] = '0';
    netif->mtu = 1500;
    netif->hwaddr_len = ETH_HWADDR_LEN;
    memcpy(netif->hwaddr, "\x02\x00\x00\x00\x00\x10", ETH_HWADDR_LEN);
    netif->output = etharp_output;
    netif->output_ip6 = ethip6_output;
    netif->linkoutput = transmit;
    netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;
    return ERR_OK;
}

static void hear_datagram(void *arg, struct udp_pcb *pcb, struct pbuf *p, const ip_addr_t *from, u16_t port) {
    (void)arg, (void)pcb, (void)from, (void)port;
    flatten_and_put('U', p);
    pbuf_free(p);
}

static err_t hear_stream(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t error) {
    (void)arg, (void)error;
    if (p == NULL) {
        return ERR_OK;
    }
    stream_len += pbuf_copy_partial(p, stream + stream_len, (u16_t)LWIP_MIN(STREAM_MAX - stream_len, 0xffff), 0);
    tcp_recved(pcb, p->tot_len);
    pbuf_free(p);
    return ERR_OK;
}

static void lose(void *arg, err_t error) {
    (void)arg, (void)error;
    connection = NULL;
}

static err_t welcome(void *arg, struct tcp_pcb *pcb, err_t error) {
    (void)arg;
    if (error != ERR_OK || pcb == NULL) {
        return ERR_VAL;
    }
    connection = pcb;
    tcp_recv(pcb, hear_stream);
    tcp_err(pcb, lose);
    return ERR_OK;
}

static void begin_host(void) {
    ip4_addr_t address, mask, gateway;
    IP4_ADDR(&address, 192, 0, 2, 16);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    IP4_ADDR(&gateway, 0, 0, 0, 0);
    netif_add(&card, &address, &mask, &gateway, NULL, begin_card, ethernet_input);
    ip_addr_t address6;
    ipaddr_aton("2001:db8::10", &address6);
    netif_set_default(&card);
    netif_set_up(&card);
    netif_ip6_addr_set(&card, 0, ip_2_ip6(&address6));
    netif_ip6_addr_set_state(&card, 0, IP6_ADDR_PREFERRED);
    struct udp_pcb *datagrams = udp_new_ip_type(IPADDR_TYPE_ANY);
    udp_bind(datagrams, IP_ANY_TYPE, PORT);
    udp_recv(datagrams, hear_datagram, NULL);
    struct tcp_pcb *listener = tcp_new_ip_type(IPADDR_TYPE_ANY);
    tcp_bind(listener, IP_ANY_TYPE, PORT);
    tcp_accept(tcp_listen(listener), welcome);
}

static void take_frame(const uint8_t *frame, size_t len) {
    struct pbuf *p = pbuf_alloc(PBUF_RAW, (u16_t)len, PBUF_POOL);
    if (p == NULL) {
        return;
    }
    pbuf_take(p, frame, (u16_t)len);
    if (card.input(p, &card) != ERR_OK) {
        pbuf_free(p);
    }
}

static void begin_anew(void) {
    stream_len = 0;
    if (connection != NULL) {
        struct tcp_pcb *old = connection;
        tcp_recv(old, NULL);
        tcp_abort(old);
        connection = NULL;
    }
    /* Fragments of one case must not meet those of the next: what waits is aged until it is gone. */
    for (int second = 0; second <= LWIP_MAX(IP_REASS_MAXAGE, IPV6_REASS_MAXAGE); second++) {
        ip_reass_tmr();
        ip6_reass_tmr();
    }
}

/* One record and its answer, which 'D' ends. The stack is single: what it does happens before this returns. */
static int serve(void) {
    static uint8_t bytes[RECORD_MAX];
    uint8_t head[3];
    if (!get(head, sizeof head)) {
        return 0;
    }
    size_t len = (size_t)head[1] << 8 | head[2];
    if (!get(bytes, len)) {
        return 0;
    }
    LOCK_TCPIP_CORE();
    if (head[0] == 'F') {
        take_frame(bytes, len);
    } else if (head[0] == 'R') {
        put_record('S', stream, LWIP_MIN(stream_len, RECORD_MAX));
    } else if (head[0] == 'N') {
        begin_anew();
    }
    put_record('D', "", 0);
    UNLOCK_TCPIP_CORE();
    return fflush(stdout) == 0;
}

int main(void) {
    tcpip_init(NULL, NULL);
    LOCK_TCPIP_CORE();
    begin_host();
    UNLOCK_TCPIP_CORE();
    while (serve()) {
    }
    return 0;
}
