package perftest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"xroce/roce/wire"
)

// Lengths of the message of Keys with its NUL, with a GID and without: an adapter
// on InfiniBand may send the short one.
const (
	keysLen      = 108
	keysShortLen = 59
)

// ErrMessage says that the peer sent something else than what is due.
var ErrMessage = errors.New("perftest: not a message of the exchange")

// ErrNoGID says that the peer sent its keys without a GID, which RoCE needs.
var ErrNoGID = errors.New("perftest: the peer sent no GID: start it with -x INDEX of a RoCE v2 GID")

// An Endpoint is what one end tells of one of its queue pairs (struct
// pingpong_dest).
type Endpoint struct {
	LID      uint16 // 0 on RoCE
	OutReads uint16 // READs and atomics that it answers at a time
	QPN      uint32 // 24 bits
	PSN      wire.PSN
	RKey     uint32 // key of the memory that the peer may use
	VAddr    uint64 // where the part for this QP begins
	GID      wire.GID
	// SRQN is the shared receive queue of XRC. Two ends of ours that test a group tell there
	// which queue pair they send with.
	SRQN uint32
}

// AppendText appends the message without its NUL: fields in hexadecimal, each with
// a colon behind it.
func (e Endpoint) AppendText(b []byte) []byte {
	b = fmt.Appendf(b, "%04x:%04x:%06x:%06x:%08x:%016x:", e.LID, e.OutReads, e.QPN,
		uint32(e.PSN), e.RKey, e.VAddr)
	for _, octet := range e.GID {
		b = fmt.Appendf(b, "%02x:", octet)
	}
	return fmt.Appendf(b, "%08x:", e.SRQN)
}

// CheckGroup is ErrMessage for keys with the GID of a group, but for that which the user has named:
// a peer could have us send to all of it.
func (e *Endpoint) CheckGroup(group wire.GID) error {
	if e.GID.IsMulticast() && e.GID != group {
		return fmt.Errorf("%w: keys with the GID of a group, %s", ErrMessage, e.GID)
	}
	return nil
}

// ParseEndpoint reads a message without its NUL. The error is ErrMessage, also of one with
// the GID of a group: a peer could have us send to all of that.
func ParseEndpoint(text string) (Endpoint, error) { return parseEndpoint(text, wire.GID{}) }

// parseEndpoint is ParseEndpoint for who sends to a group by his own choice, which a receiver of
// the tool tells as its address.
func parseEndpoint(text string, group wire.GID) (Endpoint, error) {
	wrong := func() (Endpoint, error) {
		return Endpoint{}, fmt.Errorf("%w: %q instead of keys", ErrMessage, text)
	}
	if len(text) != keysLen-1 {
		return wrong()
	}
	var e Endpoint
	fields := strings.Split(strings.TrimSuffix(text, ":"), ":")
	widths := [...]int{4, 4, 6, 6, 8, 16}
	if len(fields) != len(widths)+len(e.GID)+1 {
		return wrong()
	}
	var numbers [len(widths)]uint64
	for i, digits := range widths {
		var err error
		numbers[i], err = strconv.ParseUint(fields[i], 16, 4*digits)
		if err != nil || len(fields[i]) != digits {
			return wrong()
		}
	}
	for i := range e.GID {
		octet, err := hex.DecodeString(fields[len(widths)+i])
		if err != nil || len(octet) != 1 {
			return wrong()
		}
		e.GID[i] = octet[0]
	}
	if err := e.CheckGroup(group); err != nil {
		return Endpoint{}, err
	}
	srqn, err := strconv.ParseUint(fields[len(fields)-1], 16, 32)
	if err != nil {
		return wrong()
	}
	e.LID, e.OutReads = uint16(numbers[0]), uint16(numbers[1])
	e.QPN, e.PSN, e.RKey = uint32(numbers[2]), wire.PSN(numbers[3]), uint32(numbers[4])
	e.VAddr, e.SRQN = numbers[5], uint32(srqn)
	return e, nil
}
