package verbs

import (
	"fmt"

	"xroce/roce/cc"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// MaxRdAtomic is the largest number of READs, atomics and their like
// outstanding on a QP.
const MaxRdAtomic = 128

// Attr are the attributes of a QP (struct ibv_qp_attr). Which of them a call
// sets is told by its mask.
type Attr struct {
	State      State
	CurState   State
	SQDraining bool // query only: in SQD and not yet drained
	PathMTU    wire.MTU
	Access     mem.Access // what the peer may do: REMOTE_* and FLUSH_* flags
	PKeyIndex  uint16     // in the P_Key table of the device
	// PathBytes is the payload of a full packet where two of our own ends have agreed on one that
	// is no path MTU of the architecture: 256 to 4096, a multiple of 4, or 0 for PathMTU. A wire
	// with an MTU of 1500 has room for 1420 bytes, and a path MTU of 1024 on it.
	PathBytes uint16
	Port      uint8 // 1
	// Congestion is the congestion control of a connected QP, on a device that has any:
	// without the attribute that of the device. It also holds the responses to READs to a
	// rate.
	Congestion      cc.Algorithm
	QKey            uint32    // of a datagram QP
	Path            wire.Path // the address vector, resolved; SrcPort 0 lets the QP choose
	DestQPN         uint32
	RQPSN           wire.PSN
	SQPSN           wire.PSN
	MaxRdAtomic     uint8 // READs and atomics that we may have outstanding, 0 to MaxRdAtomic
	MaxDestRdAtomic uint8 // READs and atomics of the peer that are remembered, as above
	MinRNRTimer     uint8 // RNR timer code, 0 to 31
	Timeout         uint8 // local ACK timeout 4.096 us * 2^Timeout, 0 for none, 0 to 31
	RetryCnt        uint8 // 0 to 7
	RNRRetry        uint8 // 0 to 7, 7 is for ever
	Extensions      Extensions
	// NoFlowControl says that one of the ends has no end-to-end flow control (IBA
	// 12.7.26): no credits are told to the peer, and those that it tells are no limit.
	NoFlowControl bool
	RateLimit     uint32 // of requests, in kbit/s of frames, 0 for none
	// Keepalive is how many milliseconds an RC QP in RTS may hear nothing of its peer before
	// it asks whether that is there, in vain once and RETRY_CNT times more, each for the time
	// of the local ACK timeout, 4.3 s at most (of Keepalive, where that is 0), before it goes
	// to ERR. 0 is never to ask.
	Keepalive uint32
}

// FullPacket is the payload of a full packet in bytes: the path MTU, or what both ends agreed on.
func (a *Attr) FullPacket() int {
	if a.PathBytes != 0 {
		return int(a.PathBytes)
	}
	return a.PathMTU.Bytes()
}

// Check tests the ranges of the attributes in the mask. The error is ErrInvalid and names
// the first that is out of range. What depends on the QP is not looked at.
func (a *Attr) Check(mask AttrMask) error {
	for _, c := range []struct {
		bit   AttrMask
		value uint32
		max   uint32
	}{
		{AttrTimeout, uint32(a.Timeout), 31},
		{AttrRetryCnt, uint32(a.RetryCnt), 7},
		{AttrRNRRetry, uint32(a.RNRRetry), 7},
		{AttrMinRNRTimer, uint32(a.MinRNRTimer), 31},
		{AttrMaxRdAtomic, uint32(a.MaxRdAtomic), MaxRdAtomic},
		{AttrMaxDestRdAtomic, uint32(a.MaxDestRdAtomic), MaxRdAtomic},
		{AttrDestQPN, a.DestQPN, 1<<24 - 1},
		{AttrCongestion, uint32(a.Congestion), uint32(cc.AlgorithmSwift)},
		{AttrExtensions, uint32(a.Extensions), uint32(extensionsKnown)},
	} {
		if mask&c.bit != 0 && c.value > c.max {
			return fmt.Errorf("%w: %s %d is above %d", ErrInvalid, c.bit, c.value, c.max)
		}
	}
	if mask&AttrPort != 0 && a.Port != 1 {
		return fmt.Errorf("%w: PORT %d, the device has port 1", ErrInvalid, a.Port)
	}
	if mask&AttrPathMTU != 0 && a.PathMTU.Bytes() == 0 {
		return fmt.Errorf("%w: PATH_MTU code %d is not in 1..5", ErrInvalid, uint8(a.PathMTU))
	}
	if n := int(a.PathBytes); mask&AttrPathBytes != 0 && n != 0 &&
		(n < wire.MTU256.Bytes() || n > wire.MTU4096.Bytes() || n%4 != 0) {
		return fmt.Errorf("%w: PATH_BYTES %d is no multiple of 4 in 256..4096", ErrInvalid, n)
	}
	return nil
}

// Take copies the attributes in the mask from another set, but for the states: those are
// the QP's to change. PSNs are cut to their 24 bits.
func (a *Attr) Take(from *Attr, mask AttrMask) {
	set := func(bit AttrMask, copyOne func()) {
		if mask&bit != 0 {
			copyOne()
		}
	}
	set(AttrAccess, func() { a.Access = from.Access })
	set(AttrPKeyIndex, func() { a.PKeyIndex = from.PKeyIndex })
	set(AttrPort, func() { a.Port = from.Port })
	set(AttrAV, func() { a.Path = from.Path })
	set(AttrPathMTU, func() { a.PathMTU = from.PathMTU })
	set(AttrPathBytes, func() { a.PathBytes = from.PathBytes })
	set(AttrDestQPN, func() { a.DestQPN = from.DestQPN })
	set(AttrRQPSN, func() { a.RQPSN = from.RQPSN.Add(0) })
	set(AttrSQPSN, func() { a.SQPSN = from.SQPSN.Add(0) })
	set(AttrMaxRdAtomic, func() { a.MaxRdAtomic = from.MaxRdAtomic })
	set(AttrMaxDestRdAtomic, func() { a.MaxDestRdAtomic = from.MaxDestRdAtomic })
	set(AttrMinRNRTimer, func() { a.MinRNRTimer = from.MinRNRTimer })
	set(AttrTimeout, func() { a.Timeout = from.Timeout })
	set(AttrRetryCnt, func() { a.RetryCnt = from.RetryCnt })
	set(AttrRNRRetry, func() { a.RNRRetry = from.RNRRetry })
	set(AttrQKey, func() { a.QKey = from.QKey })
	set(AttrRateLimit, func() { a.RateLimit = from.RateLimit })
	set(AttrCongestion, func() { a.Congestion = from.Congestion })
	set(AttrExtensions, func() { a.Extensions = from.Extensions })
	set(AttrKeepalive, func() { a.Keepalive = from.Keepalive })
	set(AttrFlowControl, func() { a.NoFlowControl = from.NoFlowControl })
}
