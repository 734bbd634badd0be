/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The part of the kernel's ABI that xdp.c and live/live.c use, spelled out here instead of
 * included: the object file then depends on the compiler alone, not on the
 * kernel and libbpf headers of the machine that compiled it. Names and numbers
 * are those of include/uapi/linux/{bpf,if_ether,ip,ipv6,udp}.h.
 */
#ifndef XROCE_KERNEL_H
#define XROCE_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef __u16 __be16;

#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))

/* A map definition carries its attributes in BTF: a number as the length of an
 * array, a type as the target of a pointer.
 */
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define bpf_htons(x) __builtin_bswap16(x)
#else
#define bpf_htons(x) ((__be16)(x))
#endif
#define bpf_ntohs(x) bpf_htons(x)

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_DEVMAP = 14,
	BPF_MAP_TYPE_XSKMAP = 17,
};

#define BPF_F_MMAPABLE (1U << 10)

enum xdp_action {
	XDP_DROP = 1,
	XDP_PASS = 2,
	XDP_REDIRECT = 4,
};

struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
	__u32 rx_queue_index;
	__u32 egress_ifindex;
};

/* The numbers are those of enum bpf_func_id. The newest three are of Linux 5.18,
 * as is SEC("xdp.frags") itself.
 */
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static __u64 (*bpf_get_current_task)(void) = (void *)35;
static long (*bpf_redirect_map)(void *map, __u64 key, __u64 flags) = (void *)51;
static long (*bpf_xdp_adjust_tail)(struct xdp_md *ctx, int delta) = (void *)65;
static __u64 (*bpf_xdp_get_buff_len)(struct xdp_md *ctx) = (void *)188;
static long (*bpf_xdp_load_bytes)(struct xdp_md *ctx, __u32 off, void *to, __u32 len) = (void *)189;
static long (*bpf_xdp_store_bytes)(struct xdp_md *ctx, __u32 off, const void *from,
				   __u32 len) = (void *)190;

#define ETH_P_IP 0x0800
#define ETH_P_8021Q 0x8100
#define ETH_P_IPV6 0x86DD
#define ETH_P_8021AD 0x88A8
#define ETH_P_802_EX1 0x88B5 /* IEEE 802 local experimental EtherType 1 */
#define ETH_P_IBOE 0x8915

#define IPPROTO_UDP 17

#define NEXTHDR_HOP 0
#define NEXTHDR_ROUTING 43
#define NEXTHDR_FRAGMENT 44
#define NEXTHDR_ESP 50
#define NEXTHDR_AUTH 51
#define NEXTHDR_DEST 60
#define NEXTHDR_MOBILITY 135

struct ethhdr {
	__u8 h_dest[6];
	__u8 h_source[6];
	__be16 h_proto;
};

struct vlan_hdr {
	__be16 h_vlan_TCI;
	__be16 h_vlan_encapsulated_proto;
};

struct iphdr {
	__u8 version_ihl; /* version in the high 4 bits, ihl in the low 4 */
	__u8 tos;
	__be16 tot_len;
	__be16 id;
	__be16 frag_off;
	__u8 ttl;
	__u8 protocol;
	__u16 check;
	__u32 saddr;
	__u32 daddr;
};

struct ipv6hdr {
	__u8 version_priority; /* version in the high 4 bits */
	__u8 flow_lbl[3];
	__be16 payload_len;
	__u8 nexthdr;
	__u8 hop_limit;
	__u32 saddr[4];
	__u32 daddr[4];
};

struct udphdr {
	__be16 source;
	__be16 dest;
	__be16 len;
	__u16 check;
};

#endif
