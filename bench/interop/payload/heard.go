package payload

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"xroce/bench/softroce"
	"xroce/roce/wire"
)

// A heard is what a packet said about data, however often it was sent.
type heard struct {
	spec    *wire.OpcodeSpec
	reth    wire.RETH
	atomic  wire.AtomicETH
	orig    uint64            // the old value in the answer of an atomic
	header  [wire.GRHLen]byte // what the receive of a datagram begins with
	data    []byte            // payload
	arrived bool              // a copy of it came to the end of the cable
}

// newHeard takes from a packet what has to do with data.
func newHeard(frame []byte, p *wire.Packet) *heard {
	h := &heard{
		spec: p.Spec, reth: p.RETH(), atomic: p.AtomicETH(), orig: p.AtomicAckETH().OrigData,
		data: make([]byte, p.PayloadLen()),
	}
	p.CopyPayload(h.data)
	if p.Spec.Service == wire.ServiceUD {
		h.header = datagramHeader(frame)
	}
	return h
}

// datagramHeader is what the receive of a datagram begins with (IBA annex A17): the
// IPv6 header, or 20 bytes of zero and the IPv4 header. The frame has no VLAN tag.
func datagramHeader(frame []byte) (h [wire.GRHLen]byte) {
	const ipv4Len = 20
	if binary.BigEndian.Uint16(frame[offEtherType:]) == 0x0800 {
		copy(h[wire.GRHLen-ipv4Len:], frame[offIPv4:])
		return h
	}
	copy(h[:], frame[offIPv4:])
	return h
}

// differs says how a packet that was sent again is another one, "" when it is the
// same. A READ response may begin or end the answer to a request that was repeated in
// part, so its opcode is no part of what it says.
func (h *heard) differs(again *heard) string {
	reads := h.spec.Is(wire.ClassRead|wire.ClassResponse) &&
		again.spec.Is(wire.ClassRead|wire.ClassResponse)
	switch {
	case h.spec != again.spec && !reads:
		return fmt.Sprintf("it was %s and is %s", h.spec.Name, again.spec.Name)
	case h.reth != again.reth:
		return fmt.Sprintf("its RETH was %+v and is %+v", h.reth, again.reth)
	case h.atomic != again.atomic:
		return fmt.Sprintf("its AtomicETH was %+v and is %+v", h.atomic, again.atomic)
	case h.orig != again.orig:
		return fmt.Sprintf("it answered 0x%x and answers 0x%x", h.orig, again.orig)
	case len(h.data) != len(again.data):
		return fmt.Sprintf("it had %d bytes and has %d", len(h.data), len(again.data))
	case !bytes.Equal(h.data, again.data):
		at := unequal(h.data, again.data)
		return fmt.Sprintf("byte %d was 0x%02x and is 0x%02x", at, h.data[at], again.data[at])
	}
	return ""
}

// unequal is the first place at which two slices of the same length differ, their
// length when they do not.
func unequal(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}

// A line is all that goes from one end to a queue pair of the other.
type line struct {
	from softroce.End
	qpn  uint32
}

// A talk is what was said on a line, by PSN.
type talk struct {
	first    wire.PSN // of the first request; nothing is sent before it
	begun    bool
	end      int32 // behind the last request, counted from first
	requests map[wire.PSN]*heard
	answers  map[wire.PSN]*heard // to requests on the line the other way
}
