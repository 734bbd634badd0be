package msg_test

import (
	"testing"

	"xroce/roce/msg"
)

// TestNoAllocations: parsing and putting is on the way of every message.
func TestNoAllocations(t *testing.T) {
	private, slot := unhex(t, goldenHello), make([]byte, 4096)
	control := make([]byte, msg.MaxControlLen)
	refused := make([]byte, msg.ControlLen)
	rts := msg.Control{
		Type: msg.TypeRTS, Flags: msg.FlagGet, Len: 1 << 20, RailCount: 2,
		Rails: [msg.MaxFurtherRails]msg.RailKey{{Rail: 1}, {Rail: 2}},
	}
	h := hello
	n := testing.AllocsPerRun(100, func() {
		theirs, err := msg.ParseHello(private)
		must(t, err)
		_, err = msg.Agree(&h, &theirs)
		must(t, err)
		h.Put(private)

		var w msg.FrameWriter
		w.Reset(slot)
		for w.Room() >= 64 {
			payload, _ := w.Append(&msg.RecordHeader{Type: msg.RecordEager, Len: 61, Tag: 5})
			payload[0] = 1
		}
		f, err := msg.ParseFrame(w.Finish(&msg.FrameHeader{Epoch: 1}))
		must(t, err)
		it := f.Iterate()
		for r := (msg.Record{}); it.Next(&r); {
			rts.Len += uint64(r.Payload[0])
		}
		must(t, it.Err())

		_, err = msg.ParseControl(rts.Put(control))
		must(t, err)
		if _, err = msg.ParseControl(refused); err == nil {
			t.Error("no error")
		}
		rts.ID += msg.ParseImmediate(msg.ImmediateOf(1, 2, 3).Uint32()).Uint32()
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
