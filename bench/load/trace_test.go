package load

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"xroce/engine/capture/read"
	"xroce/roce/dissect"
	"xroce/roce/wire"
)

// TestTrace: a trace is a capture as long as was asked for, each packet is one of RoCE with a right
// ICRC, and each message is acknowledged with the PSN of its end.
func TestTrace(t *testing.T) {
	const want = 1 << 20
	var file bytes.Buffer
	packets, err := WriteTrace(&file, want)
	if err != nil || file.Len() < want || file.Len() > want+4096 {
		t.Fatal(file.Len(), err)
	}
	r, err := read.New(&file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var (
		p       read.Packet
		d       dissect.Dissector
		packet  dissect.Packet
		last    wire.PSN
		n, acks uint64
	)
	for ; ; n++ {
		if err = r.Next(&p); err != nil {
			break
		}
		d.Dissect(p.Link, p.Data, p.Length, &packet)
		w := &packet.RoCE
		switch {
		case !packet.IsRoCE || packet.ICRC != dissect.Good:
			t.Fatalf("packet %d: %s", n+1, packet.AppendInfo(nil))
		case w.BTH.Opcode != wire.RCAck:
			last = w.BTH.PSN
		case w.BTH.PSN != last:
			t.Fatalf("packet %d acknowledges %v, want %v", n+1, w.BTH.PSN, last)
		default:
			acks++
		}
	}
	if !errors.Is(err, io.EOF) || n != packets || acks < packets/5 || acks > packets/3 {
		t.Errorf("%d packets of %d, %d of them acknowledges: %v", n, packets, acks, err)
	}
}
