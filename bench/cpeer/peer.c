// SPDX-License-Identifier: Apache-2.0
/* The worker protocol: options in, one JSON line out. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peer.h"

#define SAMPLES_MAX (1U << 23)

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

void die(const char *what, int err)
{
	if (err)
		fprintf(stderr, "%s: %s\n", what, strerror(err < 0 ? -err : err));
	else
		fprintf(stderr, "%s\n", what);
	exit(1);
}

static uint32_t number(const char *s)
{
	char *end;
	unsigned long v = strtoul(s, &end, 10);

	if (!*s || *end || v > UINT32_MAX)
		die("not a number in the options", 0);
	return (uint32_t)v;
}

static void header_parse(struct options *o, const char *hex)
{
	size_t n = strlen(hex);
	unsigned int byte;

	if (n % 2 || n / 2 > HEADER_MAX)
		die("header: not whole bytes, or too many", 0);
	for (size_t i = 0; i < n / 2; i++) {
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			die("header: not hexadecimal", 0);
		o->header[i] = (uint8_t)byte;
	}
	o->header_len = (uint32_t)(n / 2);
}

void options_parse(struct options *o, int argc, char **argv)
{
	int c;

	*o = (struct options){ .batch = 64, .budget = 256, .rx_frames = 8192, .tx_frames = 2048 };
	while ((c = getopt(argc, argv, "i:q:s:b:u:R:T:S:w:t:l:r:p:x:")) != -1) {
		switch (c) {
		case 'i': o->ifname = optarg; break;
		case 'q': o->queue = number(optarg); break;
		case 's': o->size = number(optarg); break;
		case 'b': o->batch = number(optarg); break;
		case 'u': o->budget = number(optarg); break;
		case 'R': o->rx_frames = number(optarg); break;
		case 'T': o->tx_frames = number(optarg); break;
		case 'S': o->sndbuf = number(optarg); break;
		case 'w': o->warmup = number(optarg) * 1000000ULL; break;
		case 't': o->window = number(optarg) * 1000000ULL; break;
		case 'l': o->local = optarg; break;
		case 'r': o->remote = optarg; break;
		case 'p': o->port = (uint16_t)number(optarg); break;
		case 'x': header_parse(o, optarg); break;
		default: exit(2);
		}
	}
	if (optind != argc - 1)
		die("one mode is wanted", 0);
	o->mode = argv[optind];
	if (!o->batch || o->size < o->header_len)
		die("the batch is 0 or the frame is smaller than its header", 0);
}

void ready_and_wait(void)
{
	char line[16];

	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(1); /* the harness went away */
}

void window_plan(struct window *w, const struct options *o)
{
	cost_open(&w->cost);
	w->opened = w->closed = w->at_open = w->at_close = 0;
	w->begin = now_ns() + o->warmup;
	w->end = w->begin + o->window;
}

bool window_tick(struct window *w, uint64_t packets)
{
	uint64_t now = now_ns();

	if (!w->opened && now >= w->begin) {
		w->opened = now;
		w->at_open = packets;
		cost_read(&w->cost, &w->cost.opened);
	}
	if (now < w->end)
		return true;
	if (!w->closed) {
		w->closed = now;
		w->at_close = packets;
		cost_read(&w->cost, &w->cost.closed);
	}
	return false;
}

void samples_init(struct samples *s)
{
	/* Touched now: a page fault in the run would be a latency. */
	*s = (struct samples){ .rtt = malloc(SAMPLES_MAX * sizeof(*s->rtt)), .cap = SAMPLES_MAX };
	if (!s->rtt)
		die("samples: no memory", 0);
	memset(s->rtt, 0xff, SAMPLES_MAX * sizeof(*s->rtt));
}

void samples_add(struct samples *s, uint64_t rtt)
{
	if (s->len < s->cap)
		s->rtt[s->len++] = rtt > UINT32_MAX ? UINT32_MAX : (uint32_t)rtt;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint32_t quantile(const struct samples *s, double q)
{
	return s->len ? s->rtt[(uint32_t)(q * (s->len - 1))] : 0;
}

void report(const struct options *o, const struct window *w, uint64_t total, const char *mode,
	    struct samples *s, const struct counter *counters)
{
	uint64_t packets = w->at_close - w->at_open;

	printf("{\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"seconds\":%.9f,\"total\":%" PRIu64
	       ",\"mode\":\"%s\"", packets, packets * o->size,
	       (double)(w->closed - w->opened) / 1e9, total, mode);
	if (s && s->len) {
		qsort(s->rtt, s->len, sizeof(*s->rtt), by_value);
		printf(",\"rtt\":{\"samples\":%u,\"p50\":%u,\"p90\":%u,\"p99\":%u,\"p999\":%u,"
		       "\"max\":%u}", s->len, quantile(s, 0.5), quantile(s, 0.9),
		       quantile(s, 0.99), quantile(s, 0.999), quantile(s, 1));
	}
	cost_print(&w->cost);
	printf(",\"counters\":{");
	for (const struct counter *c = counters; c && c->name; c++)
		printf("%s\"%s\":%" PRIu64, c == counters ? "" : ",", c->name, c->value);
	printf("}}\n");
	fflush(stdout);
}
