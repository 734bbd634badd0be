package payload

import (
	"encoding/binary"
	"fmt"

	"xroce/bench/softroce"
	"xroce/cmd/perfdump"
)

// A model is what the memory of xroce must have become by the messages of a case: it
// begins as that memory did, and each message that was heard changes it as it should
// have. In the end the two must be the same, each byte. What xroce sent is compared
// with the model at once.
type model struct {
	dump   *perfdump.Dump
	memory []byte
	owner  []*message // which message a byte was put by last, nil for none
	// counted tells that xroce counts its messages in the last byte of each.
	counted  bool
	values   map[uint64]uint64 // of the peer's memory, as the answers to our atomics tell
	compared int               // bytes of payload
}

// countedTest is that of ib_write_lat, whose ends look at the last byte of a message.
const countedTest = "write-lat"

func newModel(d *perfdump.Dump) *model {
	return &model{
		dump: d, memory: append([]byte(nil), d.Before...), owner: make([]*message, d.Length),
		counted: d.Test == countedTest,
		values:  map[uint64]uint64{},
	}
}

// queuePair plays the messages of one: first those that xroce sent, then those of the
// peer. The two are about different places.
func (m *model) queuePair(lines map[line]*talk, q *perfdump.QP) error {
	nobody := &talk{}
	out, in := lines[line{softroce.A, q.RemoteQPN}], lines[line{softroce.B, q.QPN}]
	if out == nil {
		out = nobody
	}
	if in == nil {
		in = nobody
	}
	for _, way := range []struct {
		who               string
		requests, answers *talk
		play              func(*perfdump.QP, *message) error
	}{{"xroce", out, in, m.ours}, {"the peer", in, out, m.theirs}} {
		list, err := assemble(way.requests, way.answers, m.dump.PathMTU)
		if err != nil {
			return fmt.Errorf("%s: %w", way.who, err)
		}
		for _, msg := range list {
			if err := way.play(q, msg); err != nil {
				return fmt.Errorf("%s of %s: %w", msg, way.who, err)
			}
		}
	}
	return nil
}

// ours plays a message that xroce asked for.
func (m *model) ours(q *perfdump.QP, msg *message) error {
	if msg.kind == kindSend {
		return m.sent(q.Send.Of(msg.number-1), msg)
	}
	if msg.place.RKey != q.RemoteRKey {
		return fmt.Errorf("it has the key 0x%08x, not 0x%08x", msg.place.RKey, q.RemoteRKey)
	}
	at := q.Send.Offset + msg.place.VA - q.RemoteAddress
	switch msg.kind {
	case kindWrite:
		if last := at + uint64(len(msg.data)) - 1; m.counted && last < uint64(len(m.memory)) {
			m.memory[last] = byte(msg.number)
		}
		return m.sent(at, msg)
	case kindRead:
		return m.landed(at, msg, msg.data)
	}
	// The peer's memory is not ours to see, but its answers have to follow from one
	// another, so that each of our atomics was done once.
	if old, known := m.values[msg.place.VA]; known && msg.orig != old {
		return fmt.Errorf("it was answered 0x%x, and the last one left 0x%x", msg.orig, old)
	}
	m.values[msg.place.VA] = msg.does(msg.orig)
	return m.landed(at, msg, binary.NativeEndian.AppendUint64(nil, msg.orig))
}

// theirs plays a message that the peer asked for.
func (m *model) theirs(q *perfdump.QP, msg *message) error {
	if msg.kind == kindSend {
		header := msg.header[:m.dump.Header]
		return m.landed(q.Receive.Of(msg.number-1), msg, header, msg.data)
	}
	if msg.place.RKey != m.dump.RKey {
		return fmt.Errorf("it has the key 0x%08x, not 0x%08x", msg.place.RKey, m.dump.RKey)
	}
	at := msg.place.VA - m.dump.Address
	switch msg.kind {
	case kindWrite:
		return m.landed(at, msg, msg.data)
	case kindRead:
		return m.sent(at, msg)
	}
	piece, err := m.piece(at, AtomicLen)
	if err != nil {
		return err
	}
	old := binary.NativeEndian.Uint64(piece)
	if msg.orig != old {
		return fmt.Errorf("xroce answered 0x%x, and the memory held 0x%x", msg.orig, old)
	}
	m.compared += AtomicLen
	return m.landed(at, msg, binary.NativeEndian.AppendUint64(nil, msg.does(old)))
}

// piece is part of the memory.
func (m *model) piece(at uint64, n int) ([]byte, error) {
	if at > uint64(len(m.memory)) || uint64(n) > uint64(len(m.memory))-at {
		return nil, fmt.Errorf("%d bytes at 0x%x are not in the memory, which has 0x%x", n, at,
			len(m.memory))
	}
	return m.memory[at:][:n], nil
}

// sent compares what xroce sent with where it was to be taken from.
func (m *model) sent(at uint64, msg *message) error {
	want, err := m.piece(at, len(msg.data))
	if err != nil {
		return err
	}
	if i := unequal(want, msg.data); i < len(want) {
		return fmt.Errorf("byte %d was sent as 0x%02x, and memory 0x%x holds 0x%02x", i,
			msg.data[i], at+uint64(i), want[i])
	}
	m.compared += len(want)
	return nil
}

// landed puts what came for xroce where it must be in the end, if nothing else comes
// there.
func (m *model) landed(at uint64, msg *message, pieces ...[]byte) error {
	for _, data := range pieces {
		to, err := m.piece(at, len(data))
		if err != nil {
			return err
		}
		copy(to, data)
		for i := range data {
			m.owner[at+uint64(i)] = msg
		}
		at += uint64(len(data))
	}
	return nil
}

// end compares the memory of xroce with the model.
func (m *model) end() error {
	for _, msg := range m.owner {
		if msg != nil {
			m.compared++
		}
	}
	after := m.dump.After
	at := unequal(m.memory, after)
	if at == len(after) {
		return nil
	}
	wrong := 0
	for i := range after {
		if m.memory[i] != after[i] {
			wrong++
		}
	}
	if m.owner[at] == nil {
		return fmt.Errorf("memory 0x%x, to which nothing was sent, holds 0x%02x, not 0x%02x "+
			"any more, and %d bytes are wrong in all", at, after[at], m.memory[at], wrong)
	}
	msg, from := m.owner[at], at
	for from > 0 && m.owner[from-1] == msg {
		from--
	}
	return fmt.Errorf("%s: its byte %d is 0x%02x, and memory 0x%x holds 0x%02x; %d bytes are "+
		"wrong in all", msg, at-from, m.memory[at], at, after[at], wrong)
}
