//go:build ignore

// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Steers RoCE packets for addresses that we own to AF_XDP sockets, and leaves
 * everything else to the kernel: it never drops a packet and never changes one.
 *
 * classify.go makes the same decisions in Go; the tests hold the two together.
 * Needs Linux 5.18 (multi-buffer XDP), and no kernel BTF.
 */
#include "kernel.h"

#define ROCE_V2_UDP_DPORT 4791

/* frag_off: more fragments, and the offset. DF and the reserved bit are free. */
#define IP_FRAGMENT_MASK 0x3fff

/*
 * What happened to a packet: the index into counters. The names and the order
 * are those of reason.go, in lower case. The redirects come first.
 */
enum reason {
	REDIRECT_V2_IPV4,
	REDIRECT_V2_IPV6,
	REDIRECT_V1,
	REDIRECT_NATIVE,
	PASS_NOT_ROCE,
	PASS_NOT_OURS,
	PASS_FRAGMENT,
	PASS_EXTENSION,
	PASS_MALFORMED,
	PASS_TRUNCATED,
	PASS_VLAN_DEPTH,
	PASS_NO_SOCKET,
	REASONS,
};

enum kind {
	KIND_IPV4 = 1, /* addr is ::ffff:a.b.c.d, as in a GID */
	KIND_IPV6 = 2,
	KIND_V1 = 3, /* addr begins with the MAC address, then zeros */
	KIND_NATIVE = 4, /* the same */
};

struct key {
	union {
		__u8 mac[16];
		__u32 ip[4];
	} addr;
	__u8 kind;
	__u8 zero[3];
};

/* How many addresses are looked at before the hash. */
#define NEAR 4

/* The first that we own, or zeros, which are no key: no kind is 0. */
struct near {
	struct key key[NEAR];
};

struct count {
	__u64 packets;
	__u64 bytes;
};

/* One socket for each receive queue. The loader sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} xsks SEC(".maps");

/* The addresses that we own. Presence counts, the value is 1. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct key);
	__type(value, __u8);
} owned SEC(".maps");

/*
 * Some of them again, in an array: most hosts own no more, and to compare with
 * these is much less than the hash of a key, for each packet. The kernel does
 * not write a key in one go, but it writes the kind last, and what is half gone
 * is the key of nobody.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct near);
} near SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, REASONS);
	__type(key, enum reason);
	__type(value, struct count);
} counters SEC(".maps");

/*
 * Copies a header to the stack; 0 on success, negative when the packet ends
 * before the header does. The helper is slower than a look at the packet, and
 * needed twice: a driver with multi-buffer receive may put headers outside the
 * linear part (mlx5 with striding receive queues), and without CAP_PERFMON the
 * verifier forbids adding anything but a constant to a packet pointer.
 */
#define LOAD(ctx, off, to)                                                     \
	({                                                                     \
		typeof(to) from = (void *)(long)(ctx)->data + (off);           \
		void *end = (void *)(long)(ctx)->data_end;                     \
		long err = 0;                                                  \
		if (__builtin_constant_p(off) && (void *)(from + 1) <= end)    \
			*(to) = *from;                                         \
		else                                                           \
			err = bpf_xdp_load_bytes(ctx, off, to, sizeof(*(to))); \
		err;                                                           \
	})

static __always_inline int is_vlan(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD);
}

/* Whether a key is owned. */
static __always_inline int is_owned(const struct key *key)
{
	const __u32 *k = (const __u32 *)key, *own;
	const struct near *first;
	const __u32 none = 0;
	int i;

	first = bpf_map_lookup_elem(&near, &none);
	if (first) {
#pragma unroll
		for (i = 0; i < NEAR; i++) {
			own = (const __u32 *)&first->key[i];
			if (k[3] == own[3] && k[4] == own[4] && k[0] == own[0] &&
			    k[1] == own[1] && k[2] == own[2])
				return 1;
		}
	}
	return bpf_map_lookup_elem(&owned, key) != 0;
}

static __always_inline enum reason classify_mac(const struct ethhdr *eth, enum kind kind,
						struct key *key, enum reason redirect)
{
	key->kind = kind;
	__builtin_memcpy(key->addr.mac, eth->h_dest, sizeof(eth->h_dest));
	return redirect;
}

/*
 * The UDP header at off. room is what the IP header leaves for UDP in bytes,
 * left what the packet does. The lengths are judged after the port: what is
 * not RoCE is none of our business.
 */
static __always_inline enum reason classify_udp(struct xdp_md *ctx, __u32 off, int room, int left,
						enum reason redirect)
{
	struct udphdr udp;
	int len;

	if (LOAD(ctx, off, &udp))
		return PASS_TRUNCATED;
	if (udp.dest != bpf_htons(ROCE_V2_UDP_DPORT))
		return PASS_NOT_ROCE;
	len = bpf_ntohs(udp.len);
	if (len < (int)sizeof(udp) || len > room)
		return PASS_MALFORMED;
	if (room > left)
		return PASS_TRUNCATED;
	return redirect;
}

static __always_inline enum reason classify_ipv4(struct xdp_md *ctx, __u32 off, __u32 len,
						 struct key *key)
{
	struct iphdr ip;
	int room, left;
	__u32 ihl;

	if (LOAD(ctx, off, &ip))
		return PASS_TRUNCATED;
	ihl = (ip.version_ihl & 0xf) * 4;
	if (ip.version_ihl >> 4 != 4 || ihl < sizeof(ip))
		return PASS_MALFORMED;
	if (ip.protocol != IPPROTO_UDP)
		return PASS_NOT_ROCE;
	if (ip.frag_off & bpf_htons(IP_FRAGMENT_MASK))
		return PASS_FRAGMENT;
	key->kind = KIND_IPV4;
	key->addr.mac[10] = 0xff;
	key->addr.mac[11] = 0xff;
	key->addr.ip[3] = ip.daddr;
	room = (int)bpf_ntohs(ip.tot_len) - (int)ihl;
	left = (int)len - (int)(off + ihl);
	if (ihl == sizeof(ip)) /* keeps the offset constant */
		return classify_udp(ctx, off + sizeof(ip), room, left, REDIRECT_V2_IPV4);
	return classify_udp(ctx, off + ihl, room, left, REDIRECT_V2_IPV4);
}

static __always_inline enum reason classify_ipv6(struct xdp_md *ctx, __u32 off, __u32 len,
						 struct key *key)
{
	struct ipv6hdr ip;

	if (LOAD(ctx, off, &ip))
		return PASS_TRUNCATED;
	if (ip.version_priority >> 4 != 6)
		return PASS_MALFORMED;
	switch (ip.nexthdr) {
	case IPPROTO_UDP:
		break;
	case NEXTHDR_FRAGMENT:
		return PASS_FRAGMENT;
	case NEXTHDR_HOP:
	case NEXTHDR_ROUTING:
	case NEXTHDR_ESP:
	case NEXTHDR_AUTH:
	case NEXTHDR_DEST:
	case NEXTHDR_MOBILITY:
		return PASS_EXTENSION;
	default:
		return PASS_NOT_ROCE;
	}
	key->kind = KIND_IPV6;
	__builtin_memcpy(key->addr.ip, ip.daddr, sizeof(ip.daddr));
	off += sizeof(ip);
	return classify_udp(ctx, off, bpf_ntohs(ip.payload_len), (int)len - (int)off,
			    REDIRECT_V2_IPV6);
}

/* What follows the Ethernet header and its tags, at off. */
static __always_inline enum reason classify_type(struct xdp_md *ctx, const struct ethhdr *eth,
						 __be16 proto, __u32 off, __u32 len,
						 struct key *key)
{
	switch (proto) {
	case bpf_htons(ETH_P_IP):
		return classify_ipv4(ctx, off, len, key);
	case bpf_htons(ETH_P_IPV6):
		return classify_ipv6(ctx, off, len, key);
	case bpf_htons(ETH_P_IBOE):
		return classify_mac(eth, KIND_V1, key, REDIRECT_V1);
	case bpf_htons(ETH_P_802_EX1):
		return classify_mac(eth, KIND_NATIVE, key, REDIRECT_NATIVE);
	}
	return PASS_NOT_ROCE;
}

/*
 * What to do with a packet whose address is owned, and key, the zeroed key of
 * that. Spelled out for no tag, one and two, so that each has constant offsets.
 */
static __always_inline enum reason classify(struct xdp_md *ctx, __u32 len, struct key *key)
{
	const __u32 none = sizeof(struct ethhdr);
	const __u32 one = none + sizeof(struct vlan_hdr);
	const __u32 two = one + sizeof(struct vlan_hdr);
	struct ethhdr eth;
	struct vlan_hdr tag;

	if (LOAD(ctx, 0, &eth))
		return PASS_TRUNCATED;
	if (!is_vlan(eth.h_proto))
		return classify_type(ctx, &eth, eth.h_proto, none, len, key);
	if (LOAD(ctx, none, &tag))
		return PASS_TRUNCATED;
	if (!is_vlan(tag.h_vlan_encapsulated_proto))
		return classify_type(ctx, &eth, tag.h_vlan_encapsulated_proto, one, len, key);
	if (LOAD(ctx, one, &tag))
		return PASS_TRUNCATED;
	if (!is_vlan(tag.h_vlan_encapsulated_proto))
		return classify_type(ctx, &eth, tag.h_vlan_encapsulated_proto, two, len, key);
	return PASS_VLAN_DEPTH;
}

SEC("xdp.frags")
int xroce(struct xdp_md *ctx)
{
	__u32 len = bpf_xdp_get_buff_len(ctx);
	struct key key = {};
	enum reason reason = classify(ctx, len, &key);
	struct count *count;
	int verdict = XDP_PASS;

	if (reason <= REDIRECT_NATIVE && !is_owned(&key))
		reason = PASS_NOT_OURS;
	if (reason <= REDIRECT_NATIVE) {
		verdict = bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS);
		if (verdict != XDP_REDIRECT)
			reason = PASS_NO_SOCKET;
	}
	count = bpf_map_lookup_elem(&counters, &reason);
	if (count) {
		count->packets++;
		count->bytes += len;
	}
	return verdict;
}

char _license[] SEC("license") = "Dual MIT/GPL";
