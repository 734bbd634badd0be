package verbs

import "xroce/roce/mem"

// An SGE is one piece of local memory: Length bytes at Addr of the region with
// this LKey. A Length of 0 is nothing.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// SendFlags modify a send work request, with the values of enum ibv_send_flags.
type SendFlags uint8

// The send flags.
const (
	// SendFence holds the request back until all earlier READs, atomics and
	// their like are complete.
	SendFence SendFlags = 1 << 0
	// SendSignaled asks for a completion; without it only a failure makes one.
	SendSignaled SendFlags = 1 << 1
	// SendSolicited raises a solicited event at the peer.
	SendSolicited SendFlags = 1 << 2
	// SendInline says that the data is in Inline, and is copied when posted:
	// no memory key is looked at, and the buffer is free at once.
	SendInline SendFlags = 1 << 3

	// SendFlagsKnown are all of them.
	SendFlagsKnown = SendFence | SendSignaled | SendSolicited | SendInline
)

// A SendWR is a work request for the send queue. It is copied when posted.
type SendWR struct {
	WRID   uint64
	Opcode Opcode
	Flags  SendFlags
	SGList []SGE  // the data, in order
	Inline []byte // the data, with SendInline; SGList is empty then
	Imm    uint32 // immediate data, sent big-endian (htobe32 of imm_data in verbs)

	// WRITE, READ, atomics and FLUSH: where at the peer, under which key.
	RemoteAddr uint64
	RKey       uint32

	// InvalidateKey is the key that SEND_WITH_INV takes out of use at the peer
	// and LOCAL_INV here.
	InvalidateKey uint32

	// Bind is what BIND_MW binds a memory window to. It takes no SGList.
	Bind mem.Bind

	// UMR is the layout that UMR gives a key. It takes no SGList.
	UMR mem.UMR

	// CompareAdd is the number that FETCH_ADD adds, and that CMP_SWP compares
	// with; Swap is what CMP_SWP stores when they are equal. The old value of
	// the eight bytes at RemoteAddr goes to SGList, in host order.
	CompareAdd, Swap uint64

	// Flush says what FLUSH makes sure of, wire.FlushGlobal and
	// wire.FlushPersistent, for FlushLength bytes or for the whole region.
	Flush       uint8
	FlushLength uint32
	FlushRegion bool

	// AH, RemoteQPN and RemoteQKey address a datagram.
	AH         *AH
	RemoteQPN  uint32
	RemoteQKey uint32
	// PKeyIndex is the index of the P_Key of a datagram of QP 1; that of others is the QP's.
	PKeyIndex uint16

	// RemoteSRQN is the shared receive queue that a request on an XRC QP is for. READ,
	// WRITE and atomics name one too: its protection domain is that of the RKey.
	RemoteSRQN uint32
}

// A RecvWR is a work request for the receive queue. It is copied when posted.
type RecvWR struct {
	WRID   uint64
	SGList []SGE
}

// MaxMessage is the longest message in bytes (IBA 9.3.2).
const MaxMessage = 1 << 31
