// SPDX-License-Identifier: Apache-2.0
/*
 * The AF_XDP peer on libxdp: send, receive, forward, ping and echo, as plain
 * as C allows, to be measured beside ours.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xsk.h"

#define BATCH_MAX 512U

/* Takes finished transmit frames off the completion ring. */
static void reap(struct xsk *x)
{
	uint32_t idx, n = xsk_ring_cons__peek(&x->comp, BATCH_MAX, &idx);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = *xsk_ring_cons__comp_addr(&x->comp, idx + i);

		/* A frame of two chunks is back when its second one is. */
		if (x->stride == CHUNK || addr & CHUNK)
			x->free[x->free_len++] = addr & ~(uint64_t)(x->stride - 1);
	}
	if (n)
		xsk_ring_cons__release(&x->comp, n);
}

/* Queues up to n frames of o->size bytes; the bytes are there already. */
static uint32_t queue(struct xsk *x, const struct options *o, uint32_t n)
{
	uint32_t pieces = x->stride / CHUNK, idx;

	if (n > x->free_len)
		n = x->free_len;
	if (!n || xsk_ring_prod__reserve(&x->tx, n * pieces, &idx) != n * pieces)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = x->free[--x->free_len];
		uint32_t left = o->size;

		for (uint32_t p = 0; p < pieces; p++, addr += CHUNK, left -= CHUNK) {
			bool more = left > CHUNK;

			*xsk_ring_prod__tx_desc(&x->tx, idx++) = (struct xdp_desc){
				.addr = addr,
				.len = more ? CHUNK : left,
				.options = more ? XDP_PKT_CONTD : 0,
			};
		}
	}
	xsk_ring_prod__submit(&x->tx, n * pieces);
	return n;
}

static void run_tx(struct xsk *x, const struct options *o)
{
	struct window w;
	uint64_t queued = 0;
	uint32_t all = x->free_len;

	window_plan(&w, o);
	while (window_tick(&w, queued)) {
		reap(x);
		queued += queue(x, o, o->batch);
		xsk_kick(x);
	}
	for (uint64_t end = now_ns() + DRAIN_NS; x->free_len < all && now_ns() < end; reap(x))
		xsk_kick(x);
	xsk_report(x, o, &w, queued - (all - x->free_len), NULL);
}

/*
 * Takes the chunks of up to o->batch packets off the RX ring. Returns how many
 * packets they end: a packet of two chunks may be split between two batches.
 */
static uint32_t receive(struct xsk *x, const struct options *o, struct xdp_desc *desc,
			uint32_t *chunks)
{
	uint32_t pieces = x->stride / CHUNK, idx, packets = 0;
	uint32_t n = xsk_ring_cons__peek(&x->rx, o->batch * pieces, &idx);

	for (uint32_t i = 0; i < n; i++) {
		desc[i] = *xsk_ring_cons__rx_desc(&x->rx, idx + i);
		packets += !(desc[i].options & XDP_PKT_CONTD);
	}
	if (n)
		xsk_ring_cons__release(&x->rx, n);
	*chunks = n;
	return packets;
}

static void refill(struct xsk *x, const struct xdp_desc *desc, uint32_t n)
{
	uint64_t addr[BATCH_MAX];

	for (uint32_t i = 0; i < n; i++)
		addr[i] = desc[i].addr;
	xsk_refill(x, addr, n);
}

static void run_rx(struct xsk *x, const struct options *o)
{
	struct xdp_desc desc[BATCH_MAX];
	uint64_t total = 0, last = 0, seen = 0;
	uint32_t chunks;
	struct window w;

	window_plan(&w, o);
	for (;;) {
		bool open = window_tick(&w, total);
		uint32_t n = receive(x, o, desc, &chunks);

		for (uint32_t i = 0; i < chunks; i++)
			seen += *(volatile uint8_t *)(x->area + desc[i].addr);
		refill(x, desc, chunks);
		total += n;
		if (chunks) {
			last = now_ns();
			continue;
		}
		if (!open && now_ns() > last + QUIET_NS)
			break;
		xsk_wait(x);
	}
	xsk_report(x, o, &w, total, NULL);
	if (total && !seen)
		die("only zeros came", 0);
}

/* Sends a frame back where it came from: Ethernet and IPv4 addresses change places. */
static void reflect(uint8_t *frame)
{
	uint8_t mac[6], ip[4];

	memcpy(mac, frame, 6);
	memcpy(frame, frame + 6, 6);
	memcpy(frame + 6, mac, 6);
	memcpy(ip, frame + 26, 4);
	memcpy(frame + 26, frame + 30, 4);
	memcpy(frame + 30, ip, 4);
}

/* Gives forwarded chunks that were sent back to the fill ring. */
static void recycle(struct xsk *x)
{
	uint64_t addr[BATCH_MAX];
	uint32_t idx, n = xsk_ring_cons__peek(&x->comp, BATCH_MAX, &idx);

	for (uint32_t i = 0; i < n; i++)
		addr[i] = *xsk_ring_cons__comp_addr(&x->comp, idx + i);
	if (n)
		xsk_ring_cons__release(&x->comp, n);
	xsk_refill(x, addr, n);
}

/* Whether the kernel has descriptors of ours still to send. */
static bool unsent(const struct xsk *x)
{
	return *(volatile uint32_t *)x->tx.consumer != x->tx.cached_prod;
}

/* Queues received chunks for sending as they lie; false when there is no room. */
static bool forward(struct xsk *x, const struct xdp_desc *desc, uint32_t n)
{
	uint32_t idx;
	bool head = true;

	if (xsk_ring_prod__reserve(&x->tx, n, &idx) != n)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (head)
			reflect(x->area + desc[i].addr);
		head = !(desc[i].options & XDP_PKT_CONTD);
		*xsk_ring_prod__tx_desc(&x->tx, idx + i) = desc[i];
	}
	xsk_ring_prod__submit(&x->tx, n);
	return true;
}

/* The last descriptors of a batch that are the beginning of an unfinished packet. */
static uint32_t unfinished(const struct xdp_desc *desc, uint32_t n)
{
	uint32_t k = 0;

	while (k < n && desc[n - 1 - k].options & XDP_PKT_CONTD)
		k++;
	return k;
}

/* Forwards until nothing came for a while; spin is for latency, else it sleeps. */
static void run_fwd(struct xsk *x, const struct options *o, bool spin)
{
	struct xdp_desc desc[BATCH_MAX];
	uint64_t total = 0, last = 0;
	uint32_t held = 0, n;
	struct window w;

	window_plan(&w, o);
	for (;;) {
		bool open = window_tick(&w, total);
		uint32_t packets = receive(x, o, desc + held, &n), whole;

		n += held;
		held = unfinished(desc, n);
		whole = n - held;
		if (whole && !forward(x, desc, whole))
			refill(x, desc, whole); /* dropped: the way back is full */
		memmove(desc, desc + whole, held * sizeof(*desc));
		if (unsent(x))
			xsk_kick(x);
		recycle(x);
		total += packets;
		if (n) {
			last = now_ns();
			continue;
		}
		if (!open && now_ns() > last + QUIET_NS)
			break;
		if (!spin && !unsent(x))
			xsk_wait(x);
	}
	xsk_report(x, o, &w, total, NULL);
}

static void run_ping(struct xsk *x, const struct options *o)
{
	struct xdp_desc desc[BATCH_MAX];
	struct samples s;
	struct window w;
	uint64_t total = 0;
	uint32_t n;

	samples_init(&s);
	window_plan(&w, o);
	while (window_tick(&w, total)) {
		uint64_t sent = now_ns(), back;

		reap(x);
		queue(x, o, 1);
		xsk_kick(x);
		do {
			receive(x, o, desc, &n);
			back = now_ns();
		} while (!n && back - sent < RETRY_NS);
		refill(x, desc, n);
		total += n > 0;
		if (n && w.opened)
			samples_add(&s, back - sent);
	}
	xsk_report(x, o, &w, total, &s);
}

int main(int argc, char **argv)
{
	struct options o;
	struct xsk x;

	options_parse(&o, argc, argv);
	if (!o.ifname || o.size > 2 * CHUNK || o.batch > BATCH_MAX / 4)
		die("no interface, or a frame or batch that is too large", 0);
	xsk_open(&x, &o);
	ready_and_wait();
	if (!strcmp(o.mode, "tx"))
		run_tx(&x, &o);
	else if (!strcmp(o.mode, "rx"))
		run_rx(&x, &o);
	else if (!strcmp(o.mode, "fwd"))
		run_fwd(&x, &o, false);
	else if (!strcmp(o.mode, "echo"))
		run_fwd(&x, &o, true);
	else if (!strcmp(o.mode, "ping"))
		run_ping(&x, &o);
	else
		die("modes: tx, rx, fwd, echo, ping", 0);
	return 0;
}
