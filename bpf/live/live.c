//go:build ignore

// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Sends frames that user space wrote. transmit is run once a frame, on a page of
 * the kernel; sent is told what came of them. doc.go has the whole.
 *
 * Needs Linux 5.18 and, for sent alone, kernel BTF.
 */
#include "../kernel.h"

/* Frames of one run. As in live.go. */
#define FRAMES 1024

/* No live frame is longer: a page of 4096 bytes without XDP_PACKET_HEADROOM. */
#define ROOM 3840

#define ETH_HLEN 14
#define LOOPBACK_IFINDEX 1

struct desc {
	__u32 slot;
	__u32 len;
};

/* As in sys_linux.go. */
struct batch {
	__u64 task; /* that runs it, 0 before its first frame */
	__u32 count; /* frames to send */
	__u32 next; /* that is taken next */
	__u32 done; /* of which it is known what came of them */
	__u32 told; /* how often sent was told something */
	__u32 sent;
	__u32 lost;
	__s32 err; /* of the driver, 0 or negative */
	__u32 zero;
	struct desc frames[FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct batch);
} batch SEC(".maps");

/* The bytes of frames. The loader makes the slots as long as the interface needs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FRAMES);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, ROOM);
} slots SEC(".maps");

/* The interface. An index would be one of the network namespace of who runs this. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} interface SEC(".maps");

SEC("xdp")
int transmit(struct xdp_md *ctx)
{
	const __u32 none = 0;
	struct batch *b = bpf_map_lookup_elem(&batch, &none);
	__u32 i, len, slot;
	void *bytes;

	if (!b)
		return XDP_DROP;
	i = b->next;
	if (i >= b->count || i >= FRAMES)
		return XDP_DROP;
	b->next = i + 1;
	if (!b->task)
		b->task = bpf_get_current_task();
	slot = b->frames[i].slot;
	len = b->frames[i].len;
	bytes = bpf_map_lookup_elem(&slots, &slot);
	if (!bytes || len < ETH_HLEN || len > ROOM)
		return XDP_DROP;
	if (len != ctx->data_end - ctx->data &&
	    bpf_xdp_adjust_tail(ctx, (int)(len - (ctx->data_end - ctx->data))))
		return XDP_DROP;
	if (bpf_xdp_store_bytes(ctx, 0, bytes, len))
		return XDP_DROP;
	return bpf_redirect_map(&interface, 0, XDP_DROP);
}

struct net_device {
	int ifindex;
} __attribute__((preserve_access_index));

/*
 * TP_PROTO(from_dev, to_dev, sent, drops, err). It is ours when our task runs it
 * on frames that came from nowhere, which counts as loopback: an interrupt upon
 * our task may send frames of others, which came from an interface.
 */
SEC("tp_btf/xdp_devmap_xmit")
int sent(__u64 *ctx)
{
	const __u32 none = 0;
	const struct net_device *from = (void *)ctx[0];
	struct batch *b = bpf_map_lookup_elem(&batch, &none);
	__u32 took = ctx[2], dropped = ctx[3];

	if (!b || b->task != bpf_get_current_task() || from->ifindex != LOOPBACK_IFINDEX)
		return 0;
	b->told++;
	b->sent += took;
	if ((int)ctx[4])
		b->err = (int)ctx[4];
	if (took + dropped == b->next - b->done) {
		b->done += took;
		b->next = b->done; /* those that it did not take are the last ones */
	} else {
		b->lost += b->next - b->done - took;
		b->done = b->next;
	}
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
