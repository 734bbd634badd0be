package perf

import (
	"encoding/binary"
	"fmt"

	"xroce/engine/oob/perftest"
	"xroce/roce/wire"
)

// keysLen is the length of the message of Keys over rdma_cm in bytes: struct
// pingpong_dest with its padding, big-endian.
//
//	 0      4           8      12     16      20    24       32     48      52
//	+------+-----------+------+------+-------+-----+--------+------+-------+-----------+
//	| lid  | out_reads | qpn  | psn  | rkey  |  -  | vaddr  | gid  | srqn  | gid_index |
//	+------+-----------+------+------+-------+-----+--------+------+-------+-----------+
const keysLen = 56

// putKeys makes the message.
func putKeys(e perftest.Endpoint) []byte {
	b := make([]byte, keysLen)
	for i, v := range []uint32{
		uint32(e.LID), uint32(e.OutReads), e.QPN, uint32(e.PSN), e.RKey,
	} {
		binary.BigEndian.PutUint32(b[4*i:], v)
	}
	binary.BigEndian.PutUint64(b[24:], e.VAddr)
	copy(b[32:], e.GID[:])
	binary.BigEndian.PutUint32(b[48:], e.SRQN)
	return b
}

// parseKeys reads the message. The error is perftest.ErrMessage, also of one with the GID of a
// group but that which the user has named.
func parseKeys(b []byte, group wire.GID) (perftest.Endpoint, error) {
	if len(b) != keysLen {
		return perftest.Endpoint{}, fmt.Errorf("%w: %d bytes instead of keys", perftest.ErrMessage,
			len(b))
	}
	word := func(at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
	e := perftest.Endpoint{
		LID: uint16(word(0)), OutReads: uint16(word(4)), QPN: word(8) & 0xffffff,
		PSN: wire.PSN(word(12) & 0xffffff), RKey: word(16),
		VAddr: binary.BigEndian.Uint64(b[24:]), SRQN: word(48),
	}
	copy(e.GID[:], b[32:])
	if err := e.CheckGroup(group); err != nil {
		return perftest.Endpoint{}, err
	}
	return e, nil
}
