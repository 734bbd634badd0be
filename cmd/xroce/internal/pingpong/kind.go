package pingpong

import (
	"xroce/roce"
	"xroce/roce/wire"
)

// A Kind is what the messages go over, by the name of the example that plays it.
type Kind string

// The kinds.
const (
	RC  Kind = "rc"  // a reliable connection: ibv_rc_pingpong
	UC  Kind = "uc"  // an unreliable connection: ibv_uc_pingpong
	UD  Kind = "ud"  // datagrams: ibv_ud_pingpong
	SRQ Kind = "srq" // reliable connections that share their receives: ibv_srq_pingpong
)

// Kinds lists all kinds.
func Kinds() []Kind { return []Kind{RC, UC, UD, SRQ} }

// Valid reports whether k is one of Kinds.
func (k Kind) Valid() bool { return k == RC || k == UC || k == UD || k == SRQ }

// DefaultSize is the size of a message in bytes by default.
func (k Kind) DefaultSize() int {
	if k == UD {
		return 1024
	}
	return 4096
}

// Pages reports whether the memory of a kind can be paged on demand: what has no page yet is
// asked for again, which nothing but a reliable connection does.
func (k Kind) Pages() bool { return k.Acknowledged() }

// Acknowledged reports whether messages of a kind are acknowledged, and sent again when they are
// not within the ACK timeout.
func (k Kind) Acknowledged() bool { return k.qpType() == roce.TypeRC }

// places reports whether each receive has a place of its own: messages come while one is looked
// at, of several queue pairs, or of strangers.
func (k Kind) places() bool { return k == SRQ || k == UD }

// Tool is the name of the program that may be the other end.
func (k Kind) Tool() string { return "ibv_" + string(k) + "_pingpong" }

// qpType is the type of the QPs.
func (k Kind) qpType() roce.QPType {
	switch k {
	case UC:
		return roce.TypeUC
	case UD:
		return roce.TypeUD
	}
	return roce.TypeRC
}

// headroom is how many bytes a receive has before the message.
func (k Kind) headroom() int {
	if k == UD {
		return wire.GRHLen
	}
	return 0
}

// qkey is the Q_Key of all datagrams, as in ibv_ud_pingpong.
const qkey = 0x11111111
