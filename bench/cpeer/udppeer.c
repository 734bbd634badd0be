// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel's own way: connected UDP sockets, batched with sendmmsg and
 * recvmmsg for rate, one blocking or spinning exchange at a time for latency.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer.h"

#define BATCH_MAX 512U
#define PAYLOAD_MAX 65536U

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

static struct batch *batch_new(const struct options *o)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (b)
		b->bytes = calloc(o->batch, o->size);
	if (!b || !b->bytes)
		die("no memory", 0);
	for (uint32_t i = 0; i < o->batch; i++) {
		b->iov[i] = (struct iovec){ b->bytes + (size_t)i * o->size, o->size };
		b->msg[i].msg_hdr.msg_iov = &b->iov[i];
		b->msg[i].msg_hdr.msg_iovlen = 1;
	}
	return b;
}

static void run_tx(int fd, const struct options *o)
{
	struct batch *b = batch_new(o);
	struct counter counters[] = { { "tx_again", 0 }, { NULL, 0 } };
	struct window w;
	uint64_t total = 0;

	window_plan(&w, o);
	while (window_tick(&w, total)) {
		int n = sendmmsg(fd, b->msg, o->batch, 0);

		if (n > 0)
			total += (uint64_t)n;
		else if (errno == EAGAIN || errno == ENOBUFS || errno == ECONNREFUSED)
			counters[0].value++;
		else
			die("sendmmsg", errno);
	}
	report(o, &w, total, "udp sendmmsg", NULL, counters);
}

static void run_rx(int fd, const struct options *o)
{
	struct batch *b = batch_new(o);
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
	int fd;

	options_parse(&o, argc, argv);
	if (o.batch > BATCH_MAX || o.size > PAYLOAD_MAX || !o.size)
		die("a batch or a payload that is too large", 0);
	fd = udp_open(&o);
	ready_and_wait();
	if (!strcmp(o.mode, "tx"))
		run_tx(fd, &o);
	else if (!strcmp(o.mode, "rx"))
		run_rx(fd, &o);
	else if (!strcmp(o.mode, "ping") || !strcmp(o.mode, "ping-spin"))
		run_exchange(fd, &o, o.mode[4], true);
	else if (!strcmp(o.mode, "echo") || !strcmp(o.mode, "echo-spin"))
		run_exchange(fd, &o, o.mode[4], false);
	else
		die("modes: tx, rx, ping, ping-spin, echo, echo-spin", 0);
	return 0;
}
