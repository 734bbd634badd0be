package gen

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"xroce/roce/wire"
)

// Kind says what frames are.
type Kind uint8

// The kinds of frames.
const (
	KindUDP      Kind = iota // UDP datagrams
	KindEthernet             // raw frames with an EtherType
	KindRoCE                 // RoCE packets
	KindPFC                  // priority-based flow control
	numKinds
)

// String is the name of the kind.
func (k Kind) String() string {
	switch k {
	case KindUDP:
		return "udp"
	case KindEthernet:
		return "ethernet"
	case KindRoCE:
		return "roce"
	case KindPFC:
		return "pfc"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ParseKind finds a kind by its name.
func ParseKind(name string) (Kind, error) {
	for k := range numKinds {
		if k.String() == name {
			return k, nil
		}
	}
	return 0, fmt.Errorf("gen: no kind %q of frames: there are udp, ethernet, roce and pfc", name)
}

// Defaults of a Config.
const (
	// DefaultPort is the UDP port of discard (RFC 863), which generators use by habit.
	DefaultPort = 9
	// DefaultEtherType is IEEE 802 local experimental 2.
	DefaultEtherType = 0x88b6
)

// A Config says what the frames of a flow are. Path says from where they come and where they
// go; its framing is that of the addresses, or RoCE v1. Ethernet frames need its MAC
// addresses alone.
type Config struct {
	Kind      Kind
	Path      wire.Path
	DstPort   uint16 // of UDP datagrams, DefaultPort for 0; that of RoCE is its own
	EtherType uint16 // of Ethernet frames, DefaultEtherType for 0
	Sizes     Values // lengths of frames in bytes, from the Ethernet header on, without FCS
	MaxFrame  int    // longest frame that may be made
	Wrap      *Wrap  // what frames are put into, nil for nothing
	Fill      Fill   // what is behind the signature
	Pattern   []byte // of FillPattern
	Vary      []Vary
	RoCE      RoCE
	PFC       PFC
	Faults    []Fault

	Flow uint16 // for the signature
	Run  uint8  // the same
	Seed uint64 // of what is by chance
}

// A Wrap puts frames into others, as an encapsulation does, and one that is long into several: its
// segments. Sizes and mistakes are those of the frames inside.
type Wrap struct {
	Max int // longest frame inside, in bytes
	// Put writes the frame that has inner in it, or the first segment, and returns its length. It
	// keeps neither, but inner until Rest has written the last segment. Its error ends the flow:
	// there is no frame, and Flow.Err says so.
	Put func(frame, inner []byte) (int, error)

	// Rest writes the next segment and returns its length, Left is how many there are still to
	// come, and One the longest frame inside that is not put into segments. Rest is nil where
	// there are none.
	Rest func(frame []byte) int
	Left func() int
	One  int
}

// segments reports whether frames may be put into several.
func (w *Wrap) segments() bool { return w != nil && w.Rest != nil }

// RoCE is what is special to packets of RoCE.
type RoCE struct {
	Opcodes []wire.Opcode // a sequence that repeats; one UD SEND when empty
	DestQP  uint32        // 24 bits
	SrcQP   uint32        // of UD
	PSN     wire.PSN      // the first
	PKey    uint16        // wire.DefaultPKey for 0
	QKey    uint32        // of UD
	MTU     wire.MTU      // payload of FIRST and MIDDLE packets; 1024 for none
	VA      uint64        // address of WRITE, READ and atomics
	RKey    uint32        // key of that
	ReadLen uint32        // length of READs; one MTU for 0
	AckReq  bool          // each LAST and ONLY asks for an acknowledge
}

// Fill says what the payload is.
type Fill uint8

// The ways to fill a payload.
const (
	FillZeros Fill = iota
	FillCount      // 0, 1, 2 and so on
	FillRandom
	FillPattern // bytes that repeat
	numFills
)

// String is the name of the way.
func (f Fill) String() string {
	return [...]string{"zeros", "count", "random", "pattern"}[min(f, numFills-1)]
}

// ParseFill finds a way by its name, or reads the bytes of a pattern: 0xdeadbeef.
func ParseFill(text string) (Fill, []byte, error) {
	if digits, ok := strings.CutPrefix(text, "0x"); ok {
		pattern, err := hex.DecodeString(digits)
		if err != nil || len(pattern) == 0 {
			return 0, nil, fmt.Errorf("gen: payload %q: a pattern is 0x and two digits a byte",
				text)
		}
		return FillPattern, pattern, nil
	}
	for f := range FillPattern {
		if f.String() == text {
			return f, nil, nil
		}
	}
	return 0, nil, fmt.Errorf("gen: no payload %q: there are zeros, count, random and bytes that "+
		"repeat, as 0xdeadbeef", text)
}

// ErrConfig says that a Config makes no frames. It is wrapped with what is wrong.
var ErrConfig = errors.New("gen: bad flow")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...)
}

// pattern is n bytes of payload.
func (c *Config) pattern(n int) []byte {
	b := make([]byte, n)
	switch c.Fill {
	case FillCount:
		for i := range b {
			b[i] = byte(i)
		}
	case FillRandom:
		random := rand.NewPCG(c.Seed, uint64(c.Flow))
		for i := range b {
			b[i] = byte(random.Uint64())
		}
	case FillPattern:
		for i := range b {
			b[i] = c.Pattern[i%len(c.Pattern)]
		}
	}
	return b
}
