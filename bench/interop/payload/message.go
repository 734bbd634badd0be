package payload

import (
	"fmt"

	"xroce/roce/wire"
)

// A message is one that was put together of packets.
type message struct {
	kind   kind
	number int // from 1 on, of its kind on its line
	// place is the address and the key of the peer's memory that it names, and how
	// many bytes of that; not of a SEND.
	place  wire.RETH
	data   []byte            // of a SEND and a WRITE, and what answered a READ
	header [wire.GRHLen]byte // of a datagram
	atomic wire.AtomicETH
	add    bool   // of an atomic: fetch and add, else compare and swap
	orig   uint64 // what answered it
}

// A kind is what a message is.
type kind string

// The kinds.
const (
	kindSend   kind = "SEND"
	kindWrite  kind = "WRITE"
	kindRead   kind = "READ"
	kindAtomic kind = "atomic"
)

// String names a message, for people.
func (m *message) String() string {
	if m.kind == kindAtomic {
		return fmt.Sprintf("atomic %d", m.number)
	}
	return fmt.Sprintf("%s %d of %d bytes", m.kind, m.number, len(m.data))
}

// An assembly puts messages together: the requests on one line, with the answers on
// the other, as if each packet had been sent once.
type assembly struct {
	requests, answers *talk
	mtu               int
	numbers           map[kind]int
	messages          []*message
}

// assemble returns the messages in their order. The error says why that cannot be
// done: what is missing, or not as the protocol has it.
func assemble(requests, answers *talk, mtu int) ([]*message, error) {
	a := assembly{requests: requests, answers: answers, mtu: mtu, numbers: map[kind]int{}}
	for at := int32(0); at < requests.end; {
		n, err := a.next(at)
		if err != nil {
			return nil, fmt.Errorf("the message that begins with PSN 0x%06x: %w",
				requests.first.Add(uint32(at)), err)
		}
		at += n
	}
	return a.messages, nil
}

// next takes the message whose first request is there, and returns how many PSNs it
// has.
func (a *assembly) next(at int32) (psns int32, err error) {
	h, err := a.request(at)
	if err != nil {
		return 0, err
	}
	switch {
	case h.spec.Is(wire.ClassRead):
		return a.read(at, h)
	case h.spec.Is(wire.ClassAtomic):
		return 1, a.fetch(at, h)
	case h.spec.Is(wire.ClassSend):
		return a.carried(at, h, kindSend)
	case h.spec.Is(wire.ClassWrite):
		return a.carried(at, h, kindWrite)
	}
	return 0, fmt.Errorf("nothing is known about %s", h.spec.Name)
}

// begin makes the next message of a kind.
func (a *assembly) begin(k kind, h *heard) *message {
	a.numbers[k]++
	m := &message{kind: k, number: a.numbers[k], place: h.reth, header: h.header}
	a.messages = append(a.messages, m)
	return m
}

// request is the request with a PSN, counted from the first one.
func (a *assembly) request(at int32) (*heard, error) {
	return came(a.requests.requests, a.requests.first.Add(uint32(at)), "request")
}

// answer is what answered that.
func (a *assembly) answer(at int32) (*heard, error) {
	return came(a.answers.answers, a.requests.first.Add(uint32(at)), "answer")
}

// came finds a packet that must have come.
func came(said map[wire.PSN]*heard, psn wire.PSN, what string) (*heard, error) {
	h := said[psn]
	switch {
	case h == nil:
		return nil, fmt.Errorf("no %s with PSN 0x%06x was sent", what, psn)
	case !h.arrived:
		return nil, fmt.Errorf("the %s with PSN 0x%06x never arrived", what, psn)
	}
	return h, nil
}

// carried takes a message whose data are in its requests.
func (a *assembly) carried(at int32, h *heard, k kind) (psns int32, err error) {
	if !h.spec.Is(wire.ClassFirst) {
		return 0, fmt.Errorf("it begins with %s", h.spec.Name)
	}
	m := a.begin(k, h)
	for {
		m.data = append(m.data, h.data...)
		psns++
		if h.spec.Is(wire.ClassLast) {
			break
		}
		if len(h.data) != a.mtu {
			return 0, fmt.Errorf("%s has %d bytes, not the path MTU", h.spec.Name, len(h.data))
		}
		service := h.spec.Service
		if h, err = a.request(at + psns); err != nil {
			return 0, err
		}
		same := k == kindSend && h.spec.Is(wire.ClassSend) ||
			k == kindWrite && h.spec.Is(wire.ClassWrite)
		if !same || h.spec.Service != service || h.spec.Is(wire.ClassFirst) {
			return 0, fmt.Errorf("it goes on with %s", h.spec.Name)
		}
	}
	if k == kindWrite && int(m.place.DMALen) != len(m.data) {
		return 0, fmt.Errorf("%s says that it has %d", m, m.place.DMALen)
	}
	return psns, nil
}

// read takes a READ. Its answers have the PSNs from its own on, and so has a request
// for the rest of it.
func (a *assembly) read(at int32, h *heard) (psns int32, err error) {
	m := a.begin(kindRead, h)
	length := int(h.reth.DMALen)
	psns = int32(max(1, (length+a.mtu-1)/a.mtu))
	for i := range psns {
		from := int(i) * a.mtu
		if again := a.requests.requests[a.requests.first.Add(uint32(at+i))]; i > 0 && again != nil {
			rest := wire.RETH{
				VA: h.reth.VA + uint64(from), RKey: h.reth.RKey, DMALen: uint32(length - from),
			}
			if !again.spec.Is(wire.ClassRead) || again.reth != rest {
				return 0, fmt.Errorf("in the middle of %+v is %s %+v", h.reth, again.spec.Name,
					again.reth)
			}
		}
		answer, err := a.answer(at + i)
		if err != nil {
			return 0, err
		}
		if n := min(a.mtu, length-from); len(answer.data) != n || !answer.spec.Is(wire.ClassRead) {
			return 0, fmt.Errorf("answer %d to a READ of %d bytes is %s with %d bytes, not %d",
				i+1, length, answer.spec.Name, len(answer.data), n)
		}
		m.data = append(m.data, answer.data...)
	}
	return psns, nil
}

// fetch takes an atomic.
func (a *assembly) fetch(at int32, h *heard) error {
	m := a.begin(kindAtomic, h)
	answer, err := a.answer(at)
	if err != nil {
		return err
	}
	if !answer.spec.Is(wire.ClassAtomic) {
		return fmt.Errorf("an atomic was answered by %s", answer.spec.Name)
	}
	m.atomic, m.orig, m.add = h.atomic, answer.orig, h.spec == wire.RCFetchAdd.Spec()
	m.place = wire.RETH{VA: h.atomic.VA, RKey: h.atomic.RKey, DMALen: AtomicLen}
	return nil
}

// AtomicLen is how many bytes an atomic is about.
const AtomicLen = 8

// does is the value that an atomic leaves behind, given the old one.
func (m *message) does(old uint64) uint64 {
	switch {
	case m.add:
		return old + m.atomic.SwapAdd
	case old == m.atomic.Compare:
		return m.atomic.SwapAdd
	}
	return old
}
