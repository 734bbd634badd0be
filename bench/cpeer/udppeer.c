// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel's own way: connected UDP sockets, batched with sendmmsg and
 * recvmmsg for rate, one blocking or spinning exchange at a time for latency.
 * tx-gso and rx-gro hand many datagrams to the kernel, and take them from it,
 * as one (UDP_SEGMENT, UDP_GRO).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer.h"

#define BATCH_MAX 512U
#define PAYLOAD_MAX 65536U
#define SEGMENTS 64U /* UDP_MAX_SEGMENTS of kernels before 6.9 */
#define GSO_MAX 65507U /* bytes of payload that one IPv4 datagram may have */
#define GSO_BATCH 16U

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

struct batch {
	struct mmsghdr msg[BATCH_MAX];
	struct iovec iov[BATCH_MAX];
	uint8_t *bytes;
};

static struct sockaddr_in address(const char *ip, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (!ip || inet_pton(AF_INET, ip, &a.sin_addr) != 1)
		die("not an IPv4 address", 0);
	return a;
}

static int udp_open(const struct options *o)
{
	struct sockaddr_in local = address(o->local, o->port);
	struct sockaddr_in remote = address(o->remote, o->port);
	int fd = socket(AF_INET, SOCK_DGRAM, 0), size = (int)o->sndbuf;

	if (fd < 0 || bind(fd, (struct sockaddr *)&local, sizeof(local)) ||
	    connect(fd, (struct sockaddr *)&remote, sizeof(remote)))
		die("udp socket", errno);
	if (size && (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) ||
		     setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size))))
		die("socket buffers", errno);
	return fd;
}

static struct batch *batch_new(uint32_t n, uint32_t size)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (b)
		b->bytes = calloc(n, size);
	if (!b || !b->bytes)
		die("no memory", 0);
	for (uint32_t i = 0; i < n; i++) {
		b->iov[i] = (struct iovec){ b->bytes + (size_t)i * size, size };
		b->msg[i].msg_hdr.msg_iov = &b->iov[i];
		b->msg[i].msg_hdr.msg_iovlen = 1;
	}
	return b;
}

/* Sends batches of n buffers, each of which is so many datagrams of o->size bytes. */
static void send_batches(int fd, const struct options *o, uint32_t n, uint32_t segments,
			 const char *mode)
{
	struct batch *b = batch_new(n, segments * o->size);
	struct counter counters[] = { { "tx_again", 0 }, { NULL, 0 } };
	struct window w;
	uint64_t total = 0;

	window_plan(&w, o);
	while (window_tick(&w, total)) {
		int sent = sendmmsg(fd, b->msg, n, 0);

		if (sent > 0)
			total += (uint64_t)sent * segments;
		else if (errno == EAGAIN || errno == ENOBUFS || errno == ECONNREFUSED)
			counters[0].value++;
		else
			die("sendmmsg", errno);
	}
	report(o, &w, total, mode, NULL, counters);
}

static void run_tx(int fd, const struct options *o)
{
	send_batches(fd, o, o->batch, 1, "udp sendmmsg");
}

/* The kernel cuts each buffer into datagrams, as late as it can. */
static void run_tx_gso(int fd, const struct options *o)
{
	uint32_t fit = GSO_MAX / o->size;
	int size = (int)o->size;

	if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)))
		die("UDP_SEGMENT", errno);
	send_batches(fd, o, GSO_BATCH, fit < SEGMENTS ? fit : SEGMENTS, "udp sendmmsg, UDP_SEGMENT");
}

static void run_rx(int fd, const struct options *o)
{
	struct batch *b = batch_new(o->batch, o->size);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t total = 0, last = 0;
	struct window w;

	window_plan(&w, o);
	for (;;) {
		bool open = window_tick(&w, total);
		int n = recvmmsg(fd, b->msg, o->batch, MSG_DONTWAIT, NULL);

		if (n > 0) {
			total += (uint64_t)n;
			last = now_ns();
			continue;
		}
		if (errno != EAGAIN && errno != ECONNREFUSED)
			die("recvmmsg", errno);
		if (!open && now_ns() > last + QUIET_NS)
			break;
		poll(&p, 1, 10);
	}
	report(o, &w, total, "udp recvmmsg", NULL, NULL);
}

/* How many datagrams the kernel has joined in a buffer: all but the last are as long as it says. */
static uint32_t segments_of(struct msghdr *m, uint32_t len)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		int size;

		if (c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_GRO)
			continue;
		memcpy(&size, CMSG_DATA(c), sizeof(size));
		if (size > 0)
			return (len + (uint32_t)size - 1) / (uint32_t)size;
	}
	return 1; /* it came alone */
}

static void run_rx_gro(int fd, const struct options *o)
{
	static union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control[GSO_BATCH];
	struct batch *b = batch_new(GSO_BATCH, PAYLOAD_MAX);
	struct counter counters[] = { { "rx_buffers", 0 }, { NULL, 0 } };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t total = 0, last = 0;
	struct window w;

	window_plan(&w, o);
	for (;;) {
		bool open = window_tick(&w, total);
		int n;

		for (uint32_t i = 0; i < GSO_BATCH; i++) {
			b->msg[i].msg_hdr.msg_control = control[i].bytes;
			b->msg[i].msg_hdr.msg_controllen = sizeof(control[i].bytes);
		}
		n = recvmmsg(fd, b->msg, GSO_BATCH, MSG_DONTWAIT, NULL);
		for (int i = 0; i < n; i++)
			total += segments_of(&b->msg[i].msg_hdr, b->msg[i].msg_len);
		if (n > 0) {
			counters[0].value += (uint64_t)n;
			last = now_ns();
			continue;
		}
		if (errno != EAGAIN && errno != ECONNREFUSED)
			die("recvmmsg", errno);
		if (!open && now_ns() > last + QUIET_NS)
			break;
		poll(&p, 1, 10);
	}
	report(o, &w, total, "udp recvmmsg, UDP_GRO", NULL, counters);
}

/* One datagram, spinning or asleep; 0 when none came before the deadline. */
static ssize_t receive(int fd, uint8_t *buf, const struct options *o, bool spin, uint64_t deadline)
{
	ssize_t n;

	do
		n = recv(fd, buf, o->size, spin ? MSG_DONTWAIT : 0);
	while (n < 0 && (errno == ECONNREFUSED || (spin && errno == EAGAIN)) &&
	       now_ns() < deadline);
	if (n < 0 && errno != EAGAIN && errno != ECONNREFUSED)
		die("recv", errno);
	return n < 0 ? 0 : n;
}

static void run_exchange(int fd, const struct options *o, bool spin, bool ping)
{
	struct timeval patience = { .tv_usec = RETRY_NS / 1000 };
	uint8_t *buf = calloc(1, PAYLOAD_MAX);
	uint64_t total = 0, last = 0;
	struct samples s = { 0 };
	struct window w;

	if (!buf || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		die("exchange", errno);
	if (ping)
		samples_init(&s);
	window_plan(&w, o);
	for (;;) {
		bool open = window_tick(&w, total);
		uint64_t sent = now_ns();

		if (ping ? !open : !open && sent > last + QUIET_NS)
			break;
		if (ping && send(fd, buf, o->size, 0) < 0 && errno != ECONNREFUSED)
			die("send", errno);
		if (!receive(fd, buf, o, spin, sent + RETRY_NS))
			continue;
		last = now_ns();
		total++;
		if (!ping && send(fd, buf, o->size, 0) < 0 && errno != ECONNREFUSED)
			die("send", errno);
		if (ping && w.opened)
			samples_add(&s, last - sent);
	}
	report(o, &w, total, spin ? "udp spinning" : "udp blocking", &s, NULL);
}

int main(int argc, char **argv)
{
	struct options o;
	int fd, on = 1;

	options_parse(&o, argc, argv);
	if (o.batch > BATCH_MAX || o.size > PAYLOAD_MAX || !o.size)
		die("a batch or a payload that is too large", 0);
	fd = udp_open(&o);
	if (!strcmp(o.mode, "rx-gro") && setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)))
		die("UDP_GRO", errno);
	ready_and_wait();
	if (!strcmp(o.mode, "tx"))
		run_tx(fd, &o);
	else if (!strcmp(o.mode, "rx"))
		run_rx(fd, &o);
	else if (!strcmp(o.mode, "tx-gso"))
		run_tx_gso(fd, &o);
	else if (!strcmp(o.mode, "rx-gro"))
		run_rx_gro(fd, &o);
	else if (!strcmp(o.mode, "ping") || !strcmp(o.mode, "ping-spin"))
		run_exchange(fd, &o, o.mode[4], true);
	else if (!strcmp(o.mode, "echo") || !strcmp(o.mode, "echo-spin"))
		run_exchange(fd, &o, o.mode[4], false);
	else
		die("modes: tx, rx, tx-gso, rx-gro, ping, ping-spin, echo, echo-spin", 0);
	return 0;
}
