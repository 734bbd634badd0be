package main

import (
	"fmt"
	"time"

	"xroce/engine"
	"xroce/roce"
)

// A limit is a line of `devinfo -v`: what a device can do at most, under its name in
// ibv_devinfo.
type limit struct {
	name  string
	value func(engine.DeviceAttr) uint64
	text  func(uint64) string // how it is printed, nil for a decimal number
}

// count is the value of a limit that is a number of things.
func count(of func(engine.DeviceAttr) int) func(engine.DeviceAttr) uint64 {
	return func(a engine.DeviceAttr) uint64 { return uint64(of(a)) }
}

// none is the value of what RoCE devices do not have.
func none(engine.DeviceAttr) uint64 { return 0 }

// limits are those of every device, in the order of ibv_devinfo.
var limits = []limit{
	{"max_mr_size", func(a engine.DeviceAttr) uint64 { return a.MaxMRSize }, hex},
	{"page_size_cap", func(a engine.DeviceAttr) uint64 { return a.PageSizeCap }, hex},
	{"max_qp", count(func(a engine.DeviceAttr) int { return a.MaxQP }), nil},
	{"max_qp_wr", count(func(a engine.DeviceAttr) int { return a.MaxQPWR }), nil},
	{
		"device_cap_flags", func(a engine.DeviceAttr) uint64 { return uint64(uint32(a.Caps)) },
		flagLines(deviceCaps, "0x%08x"),
	},
	{"max_sge", count(func(a engine.DeviceAttr) int { return a.MaxSGE }), nil},
	{"max_sge_rd", count(func(a engine.DeviceAttr) int { return a.MaxSGERd }), nil},
	{"max_cq", count(func(a engine.DeviceAttr) int { return a.MaxCQ }), nil},
	{"max_cqe", count(func(a engine.DeviceAttr) int { return a.MaxCQE }), nil},
	{"max_mr", count(func(a engine.DeviceAttr) int { return a.MaxMR }), nil},
	{"max_pd", count(func(a engine.DeviceAttr) int { return a.MaxPD }), nil},
	{"max_qp_rd_atom", count(func(a engine.DeviceAttr) int { return a.MaxQPRdAtom }), nil},
	{"max_ee_rd_atom", none, nil},
	{"max_res_rd_atom", count(func(a engine.DeviceAttr) int { return a.MaxResRdAtom }), nil},
	{"max_qp_init_rd_atom", count(func(a engine.DeviceAttr) int { return a.MaxQPInitRdAtom }), nil},
	{"max_ee_init_rd_atom", none, nil},
	{
		"atomic_cap", func(a engine.DeviceAttr) uint64 { return uint64(a.AtomicCap) },
		func(v uint64) string { return fmt.Sprintf("ATOMIC_GLOB (%d)", v) },
	},
	{"max_ee", none, nil},
	{"max_rdd", none, nil},
	{"max_mw", count(func(a engine.DeviceAttr) int { return a.MaxMW }), nil},
	{"max_raw_ipv6_qp", none, nil},
	{"max_raw_ethy_qp", count(func(a engine.DeviceAttr) int { return a.MaxRawEthQP }), nil},
	{"max_mcast_grp", count(func(a engine.DeviceAttr) int { return a.MaxMcastGrp }), nil},
	{"max_mcast_qp_attach", count(func(a engine.DeviceAttr) int { return a.MaxMcastQP }), nil},
	{
		"max_total_mcast_qp_attach",
		count(func(a engine.DeviceAttr) int { return a.MaxMcastSum }), nil,
	},
	{"max_ah", count(func(a engine.DeviceAttr) int { return a.MaxAH }), nil},
	{"max_fmr", none, nil},
	{"max_srq", count(func(a engine.DeviceAttr) int { return a.MaxSRQ }), nil},
	{"max_srq_wr", count(func(a engine.DeviceAttr) int { return a.MaxSRQWR }), nil},
	{"max_srq_sge", count(func(a engine.DeviceAttr) int { return a.MaxSRQSGE }), nil},
	// Ours: layouts of keys.
	{"max_layout_entries", count(func(a engine.DeviceAttr) int { return a.MaxEntries }), nil},
	{"max_layout_dims", count(func(a engine.DeviceAttr) int { return a.MaxDims }), nil},
	{"max_layout_depth", count(func(a engine.DeviceAttr) int { return a.MaxDepth }), nil},
	// Of struct ibv_qp_cap, and of inline receive.
	{"max_inline_data", count(func(a engine.DeviceAttr) int { return a.MaxInline }), nil},
	{"max_inline_recv", count(func(a engine.DeviceAttr) int { return a.MaxInlineRcv }), nil},
	{"max_pkeys", count(func(a engine.DeviceAttr) int { return a.MaxPkeys }), nil},
	{
		"local_ca_ack_delay",
		func(a engine.DeviceAttr) uint64 { return uint64(a.CAAckDelay) }, nil,
	},
	{
		"general_odp_caps", func(a engine.DeviceAttr) uint64 { return uint64(a.ODP.General) },
		flagLines(odpGeneral, "0x%x"),
	},
	{"rc_odp_caps", func(a engine.DeviceAttr) uint64 { return uint64(a.ODP.RC) }, odpText},
	{"uc_odp_caps", func(a engine.DeviceAttr) uint64 { return uint64(a.ODP.UC) }, odpText},
	{"ud_odp_caps", func(a engine.DeviceAttr) uint64 { return uint64(a.ODP.UD) }, odpText},
	{"xrc_odp_caps", func(a engine.DeviceAttr) uint64 { return uint64(a.ODP.XRC) }, odpText},
	{
		"device_cap_flags_ex", func(a engine.DeviceAttr) uint64 { return uint64(a.Caps) },
		flagLines(deviceCapsEx, "0x%X"),
	},
	{
		"completion_timestamp_mask",
		func(a engine.DeviceAttr) uint64 { return a.TimestampMask },
		func(v uint64) string { return fmt.Sprintf("0x%016x", v) },
	},
	{
		"hca_core_clock", func(a engine.DeviceAttr) uint64 { return a.CoreClock },
		func(v uint64) string { return fmt.Sprintf("%dkHZ", v) },
	},
	// Of packet_pacing_caps.
	{
		"qp_rate_limit_min", func(a engine.DeviceAttr) uint64 { return uint64(a.Pacing.MinRate) },
		kbps,
	},
	{
		"qp_rate_limit_max", func(a engine.DeviceAttr) uint64 { return uint64(a.Pacing.MaxRate) },
		kbps,
	},
	{
		"qp_rate_limit_qps", func(a engine.DeviceAttr) uint64 { return uint64(a.Pacing.Types) },
		flagLines(qpTypes, "0x%x"),
	},
	// Of cq moderation caps.
	{"max_cq_count", count(func(a engine.DeviceAttr) int { return a.CQModeration.MaxCount }), nil},
	{
		"max_cq_period",
		func(a engine.DeviceAttr) uint64 {
			return uint64(a.CQModeration.MaxPeriod / time.Microsecond)
		},
		func(v uint64) string { return fmt.Sprintf("%d us", v) },
	},
}

// kbps prints a rate as ibv_devinfo does.
func kbps(v uint64) string { return fmt.Sprintf("%dkbps", v) }

// A capability is a flag with its name.
type capability struct {
	value uint64
	name  string
}

// deviceCaps are the names of enum ibv_device_cap_flags for what a device may have,
// deviceCapsEx of those above 32 bits.
var (
	deviceCaps = []capability{
		{uint64(engine.CapBadPKeyCounter), "BAD_PKEY_CNTR"},
		{uint64(engine.CapBadQKeyCounter), "BAD_QKEY_CNTR"},
		{uint64(engine.CapCurrQPStateMod), "CURR_QP_STATE_MOD"},
		{uint64(engine.CapPortActiveEvent), "PORT_ACTIVE_EVENT"},
		{uint64(engine.CapSysImageGUID), "SYS_IMAGE_GUID"},
		{uint64(engine.CapRCRNRNAKGen), "RC_RNR_NAK_GEN"},
		{uint64(engine.CapSRQResize), "SRQ_RESIZE"},
		{uint64(engine.CapMemWindow), "MEM_WINDOW"},
		{uint64(engine.CapXRC), "XRC"},
		{uint64(engine.CapMemMgtExtensions), "MEM_MGT_EXTENSIONS"},
		{uint64(engine.CapMWType2A), "MEM_WINDOW_TYPE_2A"},
		{uint64(engine.CapMWType2B), "MEM_WINDOW_TYPE_2B"},
	}
	deviceCapsEx = []capability{
		{uint64(engine.CapFlushGlobal), "FLUSH_GLOBAL"},
		{uint64(engine.CapFlushPersistent), "FLUSH_PERSISTENT"},
		{uint64(engine.CapAtomicWrite), "ATOMIC_WRITE"},
	}
	odpGeneral   = []capability{{1, "ODP_SUPPORT"}, {2, "ODP_SUPPORT_IMPLICIT"}}
	odpTransport = []capability{
		{1, "SUPPORT_SEND"},
		{2, "SUPPORT_RECV"},
		{4, "SUPPORT_WRITE"},
		{8, "SUPPORT_READ"},
		{16, "SUPPORT_ATOMIC"},
		{32, "SUPPORT_SRQ"},
		{64, "SUPPORT_FLUSH"},
		{128, "SUPPORT_ATOMIC_WRITE"},
	}
	qpTypes = []capability{
		{1 << roce.TypeRC, "SUPPORT_RC"},
		{1 << roce.TypeUC, "SUPPORT_UC"},
		{1 << roce.TypeUD, "SUPPORT_UD"},
		{1 << roce.TypeRawPacket, "SUPPORT_RAW_PACKET"},
		{1 << roce.TypeXRCSend, "SUPPORT_XRC_INI"},
	}
)

// hex prints a number as ibv_devinfo does where bits count.
func hex(v uint64) string { return fmt.Sprintf("0x%x", v) }

// odpText prints what paging a transport can do.
func odpText(v uint64) string {
	if v == 0 {
		return "NO SUPPORT"
	}
	return flagLines(odpTransport, "0x%08x")(v)
}

// flagLines prints flags as a number and the name of each that is set on a line of
// its own, as ibv_devinfo does.
func flagLines(caps []capability, format string) func(uint64) string {
	return func(v uint64) string {
		s := fmt.Sprintf(format, v)
		for _, c := range caps {
			if v&c.value != 0 {
				s += "\n\t\t\t\t\t" + c.name
			}
		}
		return s
	}
}

// print is the value of a device as ibv_devinfo prints it.
func (l limit) print(a engine.DeviceAttr) string {
	if l.text == nil {
		return fmt.Sprint(l.value(a))
	}
	return l.text(l.value(a))
}

// limitValues are the limits by name.
func limitValues(a engine.DeviceAttr) map[string]uint64 {
	m := map[string]uint64{}
	for _, l := range limits {
		m[l.name] = l.value(a)
	}
	return m
}
