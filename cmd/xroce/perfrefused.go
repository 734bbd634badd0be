package main

import (
	"errors"

	"github.com/spf13/pflag"

	"xroce/roce"
)

// What rdma_cm does in perftest and not here.
var (
	errManagedRC = errors.New("-R: rdma_cm connects queue pairs of type RC (-c) only; with -z " +
		"it has the exchange alone")
)

// perfRefused are the flags of the tools that we do not have, with the reason that
// the user gets. They are no secret but of no use, so the help leaves them out.
var perfRefused = []struct {
	name, short string
	value       bool // takes a value
	why         string
}{
	{"vector", "X", true, "there is one completion vector"},
	{"report-cycles", "C", false, "no cycle counter is read; times are microseconds"},
	{"mcg", "g", false, "only SENDs of datagrams go to a group"},
	{"MGID", "M", true, "only SENDs of datagrams go to a group"},
	{"dualport", "O", false, "a device has one port"},
	{"report-per-port", "", false, "a device has one port"},
	{"dlid", "", true, "RoCE has no LIDs"},
	{"dont_xchg_versions", "", false, "perftest itself refuses peers without a version"},
	{"source_ip", "", true, "the routing table decides"},
	{"inline_recv", "", true, "a WRITE makes no completion that could carry it"},
	{"mr_per_qp", "", false, "one region is for all QPs"},
	{"wait_destroy", "", true, "nothing outlives the test"},
	{"typical_pkt_size", "", true, "it is for the packet pacing of raw Ethernet tests"},
	{"log_dci_streams", "", true, "there is no DC transport"},
	{"log_active_dci_streams", "", true, "there is no DC transport"},
	{"aes_xts", "", false, "there is no encryption"},
	{"encrypt_on_tx", "", false, "there is no encryption"},
	{"sig_before", "", false, "there is no encryption"},
	{"aes_block_size", "", true, "there is no encryption"},
	{"data_enc_keys_number", "", true, "there is no encryption"},
	{"kek_path", "", true, "there is no encryption"},
	{"credentials_path", "", true, "there is no encryption"},
	{"data_enc_key_app_path", "", true, "there is no encryption"},
	{"data_validation", "", false, "perftest 4.5 has none; 'xroce pingpong -c' compares data"},
}

// registerIgnored adds the flags that change nothing here, and those that are only
// there to be refused with a reason.
func (f *perfFlags) registerIgnored(flags *pflag.FlagSet) {
	flags.IntVarP(&f.sl, "sl", "S", 0, "service level: there is 0 without VLAN priorities")
	flags.IntVar(&f.pkey, "pkey_index", 0, "index of the P_Key: there is 0")
	flags.StringVar(&f.forceLink, "force-link", "Ethernet", "link type: there is Ethernet")
	for _, same := range []struct{ name, short, why string }{
		{"CPU-freq", "F", "ignored: time does not depend on the CPU's frequency"},
		{"use_old_post_send", "", "ignored: there is one way to post"},
		{"disable_pcie_relaxed", "", "ignored: no bus is in between"},
	} {
		flags.BoolVarP(&f.ignored, same.name, same.short, false, same.why)
	}
	hide := func(name, short string, value bool) {
		if flags.Lookup(name) != nil || short != "" && flags.ShorthandLookup(short) != nil {
			return
		}
		flags.StringP(name, short, "", "")
		added := flags.Lookup(name)
		added.Hidden = true
		if !value {
			added.NoOptDefVal = "true"
		}
	}
	for _, r := range perfRefused {
		hide(r.name, r.short, r.value)
	}
}

// refuse tells why a flag that was given cannot be had.
func (f *perfFlags) refuse(flags *pflag.FlagSet) error {
	switch {
	case flags.Changed("tos") && !f.c.Managed:
		return usagef("-T: the type of service is for queue pairs of -R; --tclass marks others")
	case flags.Changed("tos") && flags.Changed("tclass"):
		return usagef("-T and --tclass are two names of one field with -R")
	case flags.Changed("retry_count") && !f.c.Managed:
		return usagef("--retry_count: it is for queue pairs of -R; others try 7 times")
	case f.c.Managed && f.connection != roce.TypeRC.String():
		return exitError{exitUnsupported, errManagedRC}
	}
	for _, r := range perfRefused {
		// One that is shown is a flag of this test.
		if flag := flags.Lookup(r.name); flag.Hidden && flag.Changed {
			return usagef("--%s: %s", r.name, r.why)
		}
	}
	switch {
	case f.sl != 0:
		return usagef("-S %d: there is only service level 0 without VLAN priorities", f.sl)
	case f.pkey != 0:
		return usagef("--pkey_index %d: the device has one P_Key, at index 0", f.pkey)
	case f.forceLink != "Ethernet":
		return usagef("--force-link %s: there is only Ethernet", f.forceLink)
	}
	return nil
}
