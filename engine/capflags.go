package engine

// CapFlags are capabilities, with the values of enum ib_uverbs_device_cap_flags.
type CapFlags uint64

// The capabilities that a device may have.
const (
	CapBadPKeyCounter  CapFlags = 1 << 1
	CapBadQKeyCounter  CapFlags = 1 << 2
	CapCurrQPStateMod  CapFlags = 1 << 7
	CapPortActiveEvent CapFlags = 1 << 10 // of a host that is a PortWatcher
	CapSysImageGUID    CapFlags = 1 << 11
	CapRCRNRNAKGen     CapFlags = 1 << 12
	CapSRQResize       CapFlags = 1 << 13
	CapMemWindow       CapFlags = 1 << 17
	CapXRC             CapFlags = 1 << 20
	// CapMemMgtExtensions is LOCAL_INV, SEND with invalidate, and registration by a work
	// request, which a UMR is here, under a key whose low 8 bits the application chooses.
	CapMemMgtExtensions CapFlags = 1 << 21
	CapMWType2A         CapFlags = 1 << 23
	CapMWType2B         CapFlags = 1 << 24
	CapFlushGlobal      CapFlags = 1 << 38
	// CapFlushPersistent is for memory that can be made persistent: a file, or any other
	// with MROptions.Sync.
	CapFlushPersistent CapFlags = 1 << 39
	CapAtomicWrite     CapFlags = 1 << 40

	capsOfAll = CapBadPKeyCounter | CapBadQKeyCounter | CapCurrQPStateMod | CapPortActiveEvent |
		CapSysImageGUID | CapRCRNRNAKGen | CapSRQResize | CapMemWindow | CapXRC |
		CapMemMgtExtensions | CapFlushGlobal | CapFlushPersistent | CapAtomicWrite
)
