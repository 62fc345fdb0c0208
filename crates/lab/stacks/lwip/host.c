/* A host made of lwIP (Debian's liblwip) on the TAP that PRECONFIGURED_TAPIF names: 10.6.0.1, TCP port 22 open, and a call to port
 * 80 of 10.6.0.2 every second, so that its SYNs can be seen. It is given to whoever scans it, and so trusts nothing. */
#include <stdio.h>
#include <unistd.h>

#include <lwip/netif.h>
#include <lwip/sys.h>
#include <lwip/tcp.h>
#include <lwip/tcpip.h>
#include <lwip/timeouts.h>
#include <netif/tapif.h>

enum { OPEN_PORT = 22, CALLED_PORT = 80, BACKLOG = 16, CALL_MS = 1000 };

static struct netif card;
static ip_addr_t prober;

static err_t hear(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t error) {
    (void)arg, (void)error;
    if (p == NULL) {
        return tcp_close(pcb);
    }
    tcp_recved(pcb, p->tot_len);
    pbuf_free(p);
    return ERR_OK;
}

static err_t welcome(void *arg, struct tcp_pcb *pcb, err_t error) {
    (void)arg;
    if (error != ERR_OK || pcb == NULL) {
        return ERR_VAL;
    }
    tcp_recv(pcb, hear);
    return ERR_OK;
}

static err_t reached(void *arg, struct tcp_pcb *pcb, err_t error) {
    (void)arg, (void)error;
    return tcp_close(pcb);
}

static void call(void *arg) {
    struct tcp_pcb *pcb = tcp_new();
    if (pcb != NULL && tcp_connect(pcb, &prober, CALLED_PORT, reached) != ERR_OK) {
        tcp_abort(pcb);
    }
    sys_timeout(CALL_MS, call, arg);
}

int main(void) {
    ip4_addr_t address, mask, gateway;
    IP4_ADDR(&address, 10, 6, 0, 1);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    IP4_ADDR(&gateway, 10, 6, 0, 2);
    IP_ADDR4(&prober, 10, 6, 0, 2);
    tcpip_init(NULL, NULL);
    LOCK_TCPIP_CORE();
    if (netif_add(&card, &address, &mask, &gateway, NULL, tapif_init, tcpip_input) == NULL) {
        fputs("no card\n", stderr);
        return 1;
    }
    netif_set_default(&card);
    netif_set_link_up(&card);
    netif_set_up(&card);
    struct tcp_pcb *listener = tcp_new();
    tcp_bind(listener, IP_ANY_TYPE, OPEN_PORT);
    tcp_accept(tcp_listen_with_backlog(listener, BACKLOG), welcome);
    sys_timeout(CALL_MS, call, NULL);
    UNLOCK_TCPIP_CORE();
    puts("ready");
    fflush(stdout);
    for (;;) {
        pause();
    }
}
