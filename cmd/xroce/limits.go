package main

import (
	"fmt"

	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A limit is what a device can do at most, under its name in struct
// ibv_device_attr. Limits that memory alone sets, as for the size of a region and
// for CQs, PDs and address handles, are left out: no number would be true.
type limit struct {
	name  string
	value uint64
	text  func(uint64) string // how it is printed, nil for a decimal number
}

// limits are those of every device, in the order of ibv_devinfo.
var limits = []limit{
	{"max_qp", maxQP, nil},
	{"max_qp_wr", roce.MaxWR, nil},
	{"device_cap_flags", capabilities(deviceCaps), flagLines(deviceCaps, "0x%08x")},
	{"max_sge", roce.MaxSGE, nil},
	{"max_sge_rd", roce.MaxSGE, nil},
	{"max_cqe", roce.MaxCQDepth, nil},
	{"max_mr", numbers24, nil},
	{"max_qp_rd_atom", roce.MaxRdAtomic, nil},
	{"max_ee_rd_atom", 0, nil},
	{"max_res_rd_atom", maxQP * roce.MaxRdAtomic, nil},
	{"max_qp_init_rd_atom", roce.MaxRdAtomic, nil},
	{"max_ee_init_rd_atom", 0, nil},
	{"atomic_cap", atomicGlob, func(v uint64) string { return fmt.Sprintf("ATOMIC_GLOB (%d)", v) }},
	{"max_ee", 0, nil},
	{"max_rdd", 0, nil},
	{"max_mw", 0, nil},
	{"max_fmr", 0, nil},
	{"max_srq", numbers24, nil},
	{"max_srq_wr", roce.MaxWR, nil},
	{"max_srq_sge", roce.MaxSGE, nil},
	{"max_layout_entries", mem.MaxEntries, nil}, // ours, like the two behind it
	{"max_layout_dims", mem.MaxDims, nil},
	{"max_layout_depth", mem.MaxDepth, nil},
	{"max_inline_data", roce.MaxInline, nil}, // of struct ibv_qp_cap
	{"max_pkeys", 1, nil},
	{"local_ca_ack_delay", 15, nil},
	{
		"device_cap_flags_ex", capabilities(deviceCaps) | capabilities(deviceCapsEx),
		flagLines(deviceCapsEx, "0x%X"),
	},
}

const (
	// maxQP is how many QP numbers there are: 16 are left to services that have
	// fixed ones, and the last is that of multicast.
	maxQP = wire.MulticastQP - 16
	// numbers24 is how many of 24 bits there are without 0.
	numbers24 = 1<<24 - 1
	// atomicGlob says that atomics of peers and of this machine's CPUs are atomic
	// with each other (enum ibv_atomic_cap).
	atomicGlob = 2
)

// A capability is a flag with its name.
type capability struct {
	value uint64
	name  string
}

// deviceCaps are those of enum ibv_device_cap_flags that the stack has, deviceCapsEx
// those above 32 bits (enum ib_uverbs_device_cap_flags).
var (
	deviceCaps = []capability{
		{1 << 1, "BAD_PKEY_CNTR"},
		{1 << 2, "BAD_QKEY_CNTR"},
		{1 << 7, "CURR_QP_STATE_MOD"},
		{1 << 10, "PORT_ACTIVE_EVENT"},
		{1 << 11, "SYS_IMAGE_GUID"},
		{1 << 12, "RC_RNR_NAK_GEN"},
		{1 << 13, "SRQ_RESIZE"},
		{1 << 20, "XRC"},
	}
	deviceCapsEx = []capability{
		{1 << 38, "FLUSH_GLOBAL"},
		{1 << 40, "ATOMIC_WRITE"},
	}
)

// capabilities are the flags together.
func capabilities(caps []capability) (sum uint64) {
	for _, c := range caps {
		sum |= c.value
	}
	return sum
}

// flagLines prints flags as a number and each one's name on a line of its own, as
// ibv_devinfo does.
func flagLines(caps []capability, format string) func(uint64) string {
	return func(v uint64) string {
		s := fmt.Sprintf(format, v)
		for _, c := range caps {
			s += "\n\t\t\t\t\t" + c.name
		}
		return s
	}
}

// String is the value as ibv_devinfo prints it.
func (l limit) String() string {
	if l.text == nil {
		return fmt.Sprint(l.value)
	}
	return l.text(l.value)
}

// limitValues are the limits by name.
func limitValues() map[string]uint64 {
	m := map[string]uint64{}
	for _, l := range limits {
		m[l.name] = l.value
	}
	return m
}
