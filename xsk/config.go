package xsk

import (
	"fmt"
	"math/bits"
	"time"
)

// Mode says how frames get between the device and the UMEM.
type Mode uint8

// The modes of a socket.
const (
	ModeAuto     Mode = iota // zero-copy when the driver can, copy otherwise
	ModeCopy                 // the kernel copies each frame; works on every device
	ModeZeroCopy             // the driver uses our frames, or Open fails
)

// String returns the name that flags and reports use.
func (m Mode) String() string {
	switch m {
	case ModeAuto:
		return "auto"
	case ModeCopy:
		return "copy"
	case ModeZeroCopy:
		return "zero-copy"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// MultiBuffer says whether a frame may span two chunks (XDP_USE_SG).
type MultiBuffer uint8

// The choices for Config.MultiBuffer.
const (
	MultiBufferAuto MultiBuffer = iota // when the MTU needs it
	MultiBufferOff
	MultiBufferOn // needs an XDP program loaded with BPF_F_XDP_HAS_FRAGS
)

// Defaults of Config.
const (
	// DefaultRxFrames covers a reader that is descheduled for 8 ms at 1.5
	// million frames a second.
	DefaultRxFrames = 12288
	// maxDefaultRxFrames bounds those of all queues of a Group together, unless each has the
	// fewest already.
	maxDefaultRxFrames = 2 * DefaultRxFrames
	// DefaultTxFrames covers a round trip of 1 ms at 2 million frames a second.
	DefaultTxFrames = 2048
	// DefaultChunkSize is the largest that the kernel takes with 4 KiB pages.
	DefaultChunkSize = 4096
	// DefaultTxBudget is twice the usual batch of 64: one send call a batch even
	// when each frame is two descriptors.
	DefaultTxBudget = 128
	// DefaultBindTimeout covers the deferred release of a just closed socket on
	// a machine that is starved, where 5 s and more were seen; some milliseconds are usual.
	DefaultBindTimeout = 20 * time.Second
)

// Limits of Config.
const (
	minChunkSize = 2048 // kernel: XDP_UMEM_MIN_CHUNK_SIZE
	minTxBudget  = 32   // kernel: TX_BATCH_SIZE
	// maxTxBudget keeps a send call below about half a millisecond. The call
	// is a raw one (see Kernel.Send), and the collector waits for it.
	maxTxBudget = 256
	maxFrames   = 1 << 20 // 4 GiB of pinned memory
	maxRing     = 1 << 22
	maxQueue    = 1 << 16
	// bindPoll is the time between two tries of a bind that found the queue
	// taken.
	bindPoll = time.Millisecond
	// vlanLen and ethLen: what a frame has in front of the MTU's bytes.
	ethLen  = 14
	vlanLen = 4
)

// Config says what socket Open makes. The zero value of each field means its
// default, except for Interface and Ifindex, of which one is required.
type Config struct {
	Interface string // interface name
	Ifindex   int    // interface index; used when Interface is empty
	Queue     int    // queue number of the device

	// RxFrames and TxFrames are the frames to receive and to send. Those that are 0 are
	// DefaultRxFrames, less of a Group of more than two queues, and DefaultTxFrames, or half as
	// many, and again, as far as a sixteenth, where the process may not lock that much memory
	// or its cgroup has not so much left, with those that are not 0: Info.Limited tells. These
	// are had as they are, or Open fails and says how much memory they need and there is.
	RxFrames, TxFrames int
	// Memory bounds how many bytes the frames and the rings take: those of RxFrames and TxFrames
	// that are 0 are halved as often as that needs. 0 is no bound. Whoever has many devices, or
	// little traffic, is served by 8 MiB; what bursts more than there are frames for is lost.
	Memory int64
	// Sockets is how many like this one are to be open at once, 1 for 0. Each takes no more than
	// its part of what may be locked and of what the cgroup has left.
	Sockets int
	// HugePages takes the frames from the huge pages of 2 MiB that the system has reserved
	// (vm.nr_hugepages), and fails when there are too few. Without it they are ordinary pages,
	// which the kernel may join.
	HugePages bool
	// FillTarget is how many of the receive frames the kernel has until many of those
	// are found waiting, or RaiseFillTarget asks for more; default RxFrames, all. Few stay in the
	// cache, which is worth a lot where senders wait for the receiver. From those who
	// do not, the first burst of more is lost. In zero-copy mode the kernel has all.
	FillTarget int
	ChunkSize  int // bytes per chunk, 2048 or 4096; default DefaultChunkSize

	// Ring sizes in entries, powers of two. By default each ring holds every
	// chunk that can be in it, so none overflows. The receive ring may be made
	// smaller; the others only larger.
	RxRing, TxRing, FillRing, CompletionRing int

	Mode        Mode
	MultiBuffer MultiBuffer

	// BusyPoll makes the socket prefer busy polling for that many microseconds
	// per call (SO_BUSY_POLL, SO_PREFER_BUSY_POLL); BusyPollBudget is the
	// number of frames per poll, by default 64. 0 leaves it off.
	BusyPoll       int
	BusyPollBudget int

	// SndBuf is the socket's send buffer in bytes as given to SO_SNDBUF; the
	// kernel doubles it. In copy mode it bounds how many frames are on their
	// way at once. 0 leaves the system's default.
	SndBuf int

	// TxBudget is the number of descriptors one send call handles in copy mode
	// (XDP_MAX_TX_SKB_BUDGET), 32 to 256. Kernels without the option handle 32;
	// Flush then calls more often.
	TxBudget int

	// Dedicated says that the goroutine that waits has one of Go's processors
	// (GOMAXPROCS) to itself. Wait then keeps it for the first 5 ms of its sleep
	// instead of giving it up, and so wakes up faster.
	Dedicated bool

	// BindTimeout bounds how long Open waits for a queue that is still taken: a quarter of it is
	// for one that a process is seen to hold.
	BindTimeout time.Duration

	// Kernel replaces the operating system; nil means Linux.
	Kernel Kernel

	// others are the sockets of a Group beside the first. They only receive.
	others int
	// fitRx and fitTx say that the number of those frames was 0: it is ours to choose.
	fitRx, fitTx bool
}

// withDefaults returns the configuration with every zero field filled in,
// except those that depend on the device.
func (c Config) withDefaults() Config {
	set := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	if c.RxFrames == 0 {
		c.RxFrames = c.defaultRxFrames()
		c.FillTarget = min(c.FillTarget, c.RxFrames)
	}
	set(&c.TxFrames, DefaultTxFrames)
	set(&c.FillTarget, c.RxFrames)
	set(&c.ChunkSize, DefaultChunkSize)
	set(&c.TxBudget, DefaultTxBudget)
	set(&c.BusyPollBudget, 64)
	set(&c.Sockets, 1)
	if c.BindTimeout == 0 {
		c.BindTimeout = DefaultBindTimeout
	}
	return c
}

// defaultRxFrames is how many receive frames each queue has. Of several queues it is less: what
// comes is spread over them, and the memory is to stay within bounds.
func (c *Config) defaultRxFrames() int {
	n := DefaultRxFrames
	for n > minRxFrames && n*(1+c.others) > maxDefaultRxFrames {
		n /= 2
	}
	return n
}

// Validate tells what is wrong with the configuration, defaults applied. It
// does not look at the device.
func (c Config) Validate() error {
	c = c.withDefaults()
	check := func(name string, v, low, high int) error {
		if v < low || v > high {
			return fmt.Errorf("xsk: %s is %d, want %d to %d", name, v, low, high)
		}
		return nil
	}
	if c.Interface == "" && c.Ifindex <= 0 {
		return fmt.Errorf("xsk: no interface: neither Interface nor Ifindex is set")
	}
	for _, f := range []struct {
		name         string
		v, low, high int
	}{
		{"Queue", c.Queue, 0, maxQueue},
		{"RxFrames", c.RxFrames, 1, maxFrames},
		{"TxFrames", c.TxFrames, 1, maxFrames / 2},
		{"Sockets", c.Sockets, 1, maxQueue},
		{"FillTarget", c.FillTarget, 1, c.RxFrames},
		{"ChunkSize", c.ChunkSize, minChunkSize, DefaultChunkSize},
		{"TxBudget", c.TxBudget, minTxBudget, maxTxBudget},
		{"BusyPoll", c.BusyPoll, 0, 1 << 20},
		{"BusyPollBudget", c.BusyPollBudget, 1, 1<<16 - 1},
		{"SndBuf", c.SndBuf, 0, 1 << 30},
		{"Mode", int(c.Mode), 0, int(ModeZeroCopy)},
		{"MultiBuffer", int(c.MultiBuffer), 0, int(MultiBufferOn)},
		{"RxRing", c.RxRing, 0, maxRing},
		{"TxRing", c.TxRing, 0, maxRing},
		{"FillRing", c.FillRing, 0, maxRing},
		{"CompletionRing", c.CompletionRing, 0, maxRing},
	} {
		if err := check(f.name, f.v, f.low, f.high); err != nil {
			return err
		}
	}
	if c.Memory < 0 {
		return fmt.Errorf("xsk: Memory is %d bytes, want 0 or more", c.Memory)
	}
	if bits.OnesCount(uint(c.ChunkSize)) != 1 {
		return fmt.Errorf("xsk: ChunkSize is %d, want a power of two", c.ChunkSize)
	}
	for _, r := range []int{c.RxRing, c.TxRing, c.FillRing, c.CompletionRing} {
		if r&(r-1) != 0 {
			return fmt.Errorf("xsk: ring size is %d, want a power of two", r)
		}
	}
	return nil
}

// layout is a configuration together with what the device decides.
type layout struct {
	multi    bool   // frames may span two chunks
	perTx    uint32 // chunks per transmit frame
	chunks   uint32
	fillRing uint32
	compRing uint32
	rxRing   uint32
	txRing   uint32
	txBudget int
	umemSize int
}

// layout decides what depends on the MTU.
func (c Config) layout(mtu int) (layout, error) {
	var l layout
	switch c.MultiBuffer {
	case MultiBufferOn:
		l.multi = true
	case MultiBufferAuto:
		l.multi = mtu+ethLen+vlanLen > rxRoom(uint32(c.ChunkSize), false, false)
	}
	l.perTx = 1
	if l.multi {
		l.perTx = 2
	}
	rx := uint32(c.RxFrames)
	l.chunks = rx + uint32(c.TxFrames)*l.perTx
	l.umemSize = (int(l.chunks) + c.others*c.RxFrames) * c.ChunkSize

	// A chunk is in at most one ring, once. So a fill ring with a slot for every
	// receive chunk, and TX and completion rings with a slot for every chunk
	// (received ones may be forwarded), cannot overflow.
	var err error
	size := func(name string, asked int, floor, need uint32) uint32 {
		if asked == 0 {
			return ceilPow2(need)
		}
		if uint32(asked) < floor && err == nil {
			err = fmt.Errorf("xsk: %s is %d, want at least %d: one for each chunk",
				name, asked, floor)
		}
		return uint32(asked)
	}
	l.fillRing = size("FillRing", c.FillRing, rx, rx)
	l.rxRing = size("RxRing", c.RxRing, 1, rx)
	l.txRing = size("TxRing", c.TxRing, l.chunks, l.chunks)
	l.compRing = size("CompletionRing", c.CompletionRing, l.chunks, l.chunks)
	l.txBudget = min(c.TxBudget, int(l.txRing))
	return l, err
}

// ringBytes is how many bytes the rings have, those of the others of a Group as well.
func (c *Config) ringBytes(l layout) int64 {
	const addr, desc = 8, 16
	receive := addr*int64(l.fillRing) + desc*int64(l.rxRing)
	return receive*int64(1+c.others) + desc*int64(l.txRing) + addr*int64(l.compRing)
}

// ceilPow2 returns the smallest power of two that is at least n, for n >= 1.
func ceilPow2(n uint32) uint32 { return 1 << bits.Len32(n-1) }
