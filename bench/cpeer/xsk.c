// SPDX-License-Identifier: Apache-2.0
/*
 * Opens one AF_XDP socket the way bench/load opens ours: the same number of
 * frames, the same rings, copy mode, one program that redirects everything.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "xsk.h"

/*
 * Rings but RX have twice the entries there are receive frames: room for every
 * frame, forwarded ones too, and then some, because the kernel publishes a frame
 * before it publishes that the ring it came from has room again.
 */
#define SPARE 2U

#define BIND_PATIENCE_NS 60000000000ULL /* the last owner of the queue may still be leaving */

/* return bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS); */
static void program_attach(const char *ifname, int map)
{
	struct bpf_insn insns[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1,
		  .off = offsetof(struct xdp_md, rx_queue_index) },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD,
		  .imm = map },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, load, .prog_flags = BPF_F_XDP_HAS_FRAGS);
	LIBBPF_OPTS(bpf_link_create_opts, link, .flags = XDP_FLAGS_DRV_MODE);
	int prog, err;

	prog = bpf_prog_load(BPF_PROG_TYPE_XDP, "redirect_all", "Apache-2.0", insns,
			     sizeof(insns) / sizeof(insns[0]), &load);
	if (prog < 0)
		die("load the XDP program", prog);
	/* A link, so that the program goes away with this process. */
	err = bpf_link_create(prog, (int)if_nametoindex(ifname), BPF_XDP, &link);
	if (err < 0)
		die("attach the XDP program", err);
}

static void umem_create(struct xsk *x, const struct options *o)
{
	struct xsk_umem_config config = {
		.fill_size = o->rx_frames * SPARE,
		.comp_size = o->rx_frames * SPARE,
		.frame_size = CHUNK,
	};
	uint64_t bytes = (uint64_t)o->rx_frames * CHUNK + (uint64_t)o->tx_frames * x->stride;
	int err;

	x->area = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (x->area == MAP_FAILED)
		die("mmap", errno);
	err = xsk_umem__create(&x->umem, x->area, bytes, &x->fill, &x->comp, &config);
	if (err)
		die("xsk_umem__create", err);
}

static int socket_create(struct xsk *x, const struct options *o)
{
	struct xsk_socket_config config = {
		.rx_size = o->rx_frames,
		.tx_size = o->rx_frames * SPARE,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = XDP_COPY | XDP_USE_NEED_WAKEUP |
			      (x->stride > CHUNK ? XDP_USE_SG : 0),
	};

	return xsk_socket__create(&x->socket, o->ifname, o->queue, x->umem, &x->rx, &x->tx,
				  &config);
}

static void frames_place(struct xsk *x, const struct options *o)
{
	uint32_t idx;

	if (xsk_ring_prod__reserve(&x->fill, o->rx_frames, &idx) != o->rx_frames)
		die("the fill ring is smaller than asked for", 0);
	for (uint32_t i = 0; i < o->rx_frames; i++)
		*xsk_ring_prod__fill_addr(&x->fill, idx + i) = (uint64_t)i * CHUNK;
	xsk_ring_prod__submit(&x->fill, o->rx_frames);

	x->free = calloc(o->tx_frames, sizeof(*x->free));
	if (!x->free)
		die("no memory", 0);
	for (uint32_t i = 0; i < o->tx_frames; i++) {
		uint64_t addr = (uint64_t)o->rx_frames * CHUNK + (uint64_t)i * x->stride;

		/* Written once: sending the same bytes again costs nothing more. */
		memcpy(x->area + addr, o->header, o->header_len);
		x->free[x->free_len++] = addr;
	}
}

static void options_set(struct xsk *x, const struct options *o)
{
	int sndbuf = (int)o->sndbuf, budget = (int)o->budget;

	if (sndbuf && setsockopt(x->fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf, sizeof(sndbuf)))
		die("SO_SNDBUFFORCE", errno);
	if (budget > 32 && setsockopt(x->fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget,
				      sizeof(budget)) && errno != ENOPROTOOPT)
		die("XDP_MAX_TX_SKB_BUDGET", errno);
}

void xsk_open(struct xsk *x, const struct options *o)
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	struct timespec ms = { .tv_nsec = 1000000 };
	uint64_t patience = now_ns() + BIND_PATIENCE_NS;
	int map, err;

	if (o->tx_frames * ((o->size + CHUNK - 1) / CHUNK) > o->rx_frames)
		die("more transmit chunks than receive frames", 0);
	*x = (struct xsk){ .stride = (o->size + CHUNK - 1) / CHUNK * CHUNK };
	setrlimit(RLIMIT_MEMLOCK, &unlimited); /* CAP_IPC_LOCK alone does as well */
	umem_create(x, o);
	while ((err = socket_create(x, o)) == -EBUSY && now_ns() < patience)
		nanosleep(&ms, NULL);
	if (err)
		die("xsk_socket__create", err);
	x->fd = xsk_socket__fd(x->socket);
	options_set(x, o);
	frames_place(x, o);

	map = bpf_map_create(BPF_MAP_TYPE_XSKMAP, "xsks", 4, 4, o->queue + 1, NULL);
	if (map < 0)
		die("create the XSKMAP", map);
	err = bpf_map_update_elem(map, &o->queue, &x->fd, BPF_ANY);
	if (err)
		die("fill the XSKMAP", err);
	program_attach(o->ifname, map);
}

void xsk_kick(struct xsk *x)
{
	x->kicks++;
	if (sendto(x->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0)
		return;
	switch (errno) {
	case EAGAIN: x->again++; break;
	case EBUSY: x->busy++; break; /* one frame was dropped by the device */
	case ENOBUFS: x->nobufs++; break;
	case EINTR: break;
	default: die("sendto", errno);
	}
}

void xsk_wait(struct xsk *x)
{
	struct pollfd p = { .fd = x->fd, .events = POLLIN };

	if (poll(&p, 1, 10) < 0 && errno != EINTR)
		die("poll", errno);
}

void xsk_refill(struct xsk *x, const uint64_t *addr, uint32_t n)
{
	uint32_t idx;

	if (xsk_ring_prod__reserve(&x->fill, n, &idx) != n)
		die("more frames came back than were given", 0);
	for (uint32_t i = 0; i < n; i++)
		*xsk_ring_prod__fill_addr(&x->fill, idx + i) = addr[i];
	xsk_ring_prod__submit(&x->fill, n);
}

void xsk_report(struct xsk *x, const struct options *o, const struct window *w, uint64_t total,
		struct samples *s)
{
	struct xdp_statistics k = { 0 };
	socklen_t len = sizeof(k);

	if (getsockopt(x->fd, SOL_XDP, XDP_STATISTICS, &k, &len))
		die("XDP_STATISTICS", errno);
	struct counter counters[] = {
		{ "rx_dropped", k.rx_dropped },
		{ "rx_invalid_descs", k.rx_invalid_descs },
		{ "tx_invalid_descs", k.tx_invalid_descs },
		{ "rx_ring_full", k.rx_ring_full },
		{ "rx_fill_ring_empty_descs", k.rx_fill_ring_empty_descs },
		{ "tx_ring_empty_descs", k.tx_ring_empty_descs },
		{ "tx_kicks", x->kicks },
		{ "tx_again", x->again },
		{ "tx_busy", x->busy },
		{ "tx_nobufs", x->nobufs },
		{ NULL, 0 },
	};
	report(o, w, total, "native copy", s, counters);
}
