/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the C peers share: the worker protocol, the measuring window and the
 * samples of a latency run.
 *
 * A worker prints "ready" when its sockets are open, waits for one line on
 * standard input, works for warm-up plus window, and prints one JSON line.
 * bench/load speaks the same protocol in Go.
 */
#ifndef PEER_H
#define PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUIET_NS 200000000ULL /* a receiver ends when nothing came for so long */
#define DRAIN_NS 2000000000ULL /* a sender waits so long until what it queued is sent */
#define RETRY_NS 100000000ULL /* a ping unanswered for so long is lost */
#define HEADER_MAX 128

struct options {
	const char *mode;
	const char *ifname;
	uint32_t queue;
	uint32_t size;   /* frame bytes from the Ethernet header on, or UDP payload */
	uint32_t batch;  /* frames handled at a time */
	uint32_t budget; /* XDP_MAX_TX_SKB_BUDGET */
	uint32_t rx_frames; /* also the size of the RX ring; the others have twice as many */
	uint32_t tx_frames;
	uint32_t sndbuf; /* bytes, doubled by the kernel */
	uint64_t warmup; /* nanoseconds */
	uint64_t window; /* nanoseconds */
	const char *local, *remote; /* IPv4 addresses of the socket peers */
	uint16_t port;
	uint8_t header[HEADER_MAX]; /* first bytes of each frame sent */
	uint32_t header_len;
};

/* What was used so far. */
struct usage {
	uint64_t user_ns, system_ns;
	uint64_t user_cycles, kernel_cycles;
};

/* What is used within a window. */
struct cost {
	int user_fd, kernel_fd; /* perf events */
	int err;                /* errno when the machine counts no cycles */
	struct usage opened, closed;
};

/* The part of a run that counts: from the end of the warm-up on. */
struct window {
	uint64_t begin, end;         /* planned, CLOCK_MONOTONIC nanoseconds */
	uint64_t opened, closed;     /* as it came */
	uint64_t at_open, at_close;  /* packets at these moments */
	struct cost cost;
};

struct samples {
	uint32_t *rtt; /* nanoseconds */
	uint32_t len, cap;
};

struct counter {
	const char *name;
	uint64_t value;
};

uint64_t now_ns(void);
void die(const char *what, int err) __attribute__((noreturn));

void options_parse(struct options *o, int argc, char **argv);

/* Tells the harness that the sockets are open and waits for its go. */
void ready_and_wait(void);

void cost_open(struct cost *c);
void cost_read(struct cost *c, struct usage *u);
void cost_print(const struct cost *c);

void window_plan(struct window *w, const struct options *o);
/* Notes the packet count when a border is passed; false once it is closed. */
bool window_tick(struct window *w, uint64_t packets);

void samples_init(struct samples *s);
void samples_add(struct samples *s, uint64_t rtt);

/* Prints the JSON line. samples may be NULL; counters end with a NULL name. */
void report(const struct options *o, const struct window *w, uint64_t total, const char *mode,
	    struct samples *s, const struct counter *counters);

#endif
