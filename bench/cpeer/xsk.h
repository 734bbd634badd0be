/* SPDX-License-Identifier: Apache-2.0 */
/* One AF_XDP socket on libxdp, with its frames. */
#ifndef XSK_H
#define XSK_H

#include <xdp/xsk.h>

#include "peer.h"

/* Newer than some distributions' headers. */
#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)
#endif
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9
#endif

#define CHUNK 4096U

struct xsk {
	struct xsk_socket *socket;
	struct xsk_umem *umem;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons comp, rx;
	uint8_t *area;
	int fd;

	uint64_t *free; /* addresses of transmit frames at rest, a stack */
	uint32_t free_len;
	uint32_t stride; /* bytes from one transmit frame to the next */

	uint64_t kicks, again, busy, nobufs;
};

/* Opens the socket, fills the fill ring and attaches the redirecting program. */
void xsk_open(struct xsk *x, const struct options *o);
/* Makes the kernel send: one call. */
void xsk_kick(struct xsk *x);
/* Waits until something can be received, at most 10 ms. */
void xsk_wait(struct xsk *x);
/* Gives n received chunks back. */
void xsk_refill(struct xsk *x, const uint64_t *addr, uint32_t n);
/* Prints the run, with the kernel's counters. */
void xsk_report(struct xsk *x, const struct options *o, const struct window *w, uint64_t total,
		struct samples *s);

#endif
