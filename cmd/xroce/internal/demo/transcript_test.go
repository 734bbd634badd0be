package demo

import (
	"net/netip"
	"testing"

	"xroce/roce/cm"
	"xroce/roce/msg"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestTranscript: what a connection says beside what it must, or does not say, is found; who says
// hello, announces slots and ends first is left to it.
func TestTranscript(t *testing.T) {
	line := func(from int, text string) Line { return Line{From: from, Text: text} }
	begin := []Line{
		line(0, "REQ HELLO"), line(1, "REP HELLO"), line(1, "ADVERT class=0"),
		line(0, "ADVERT"), line(0, "ADVERT_ACK"), line(1, "ADVERT_ACK"),
	}
	eager, end := []Line{line(0, "FRAME class=0")}, []Line{line(1, "FIN"), line(0, "FIN")}
	join := func(parts ...[]Line) (all []Line) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for name, c := range map[string]struct {
		lines  []Line
		failed int
	}{
		"as it must be":        {join(begin, eager, end), 0},
		"a credit at any time": {join(begin, []Line{line(1, "CREDIT large=0")}, eager, end), 0},
		"another order":        {join(end, eager, begin), 0},
		"slots without use":    {join(begin[:5], eager, end), 0},
		"slots untold":         {join(begin[:3], begin[4:5], eager, end), 0},
		"slots without word":   {join(begin[:4], begin[5:], eager, end), 1},
		"slots of nobody":      {join(begin[:3], eager, end), 1},
		"an answer to nothing": {join(begin[:3], begin[4:], eager, end), 1},
		"no message":           {join(begin, end), 1},
		"the wrong direction":  {join(begin, []Line{line(1, "FRAME")}, end), 1},
		"one more":             {join(begin, eager, eager, end), 1},
		"no end":               {join(begin, eager), 1},
		"nothing":              {nil, 3},
	} {
		s := &speech{what: name, messages: []shownMessage{{size: 1, says: []string{"> FRAME"}}}}
		for n, lines := range [][][]Line{{c.lines}, {c.lines, nil}, nil} {
			report := &Report{}
			said := (&transcript{lines: lines}).verify([]*speech{s}, tally{report})
			want := [3]int{c.failed, c.failed + 1, 4}[n]
			if report.Failed != want || len(said) != 3 {
				t.Errorf("%s, %d connections: %d failed, %q", name, len(lines), report.Failed,
					report.Failures)
			}
		}
	}
}

// TestTranscriptWithoutProbes: a host that was stopped may be asked whether it is there, by a
// WRITE of no bytes, which is no part of what messages say; one of bytes is.
func TestTranscriptWithoutProbes(t *testing.T) {
	gid := func(host byte) wire.GID {
		return wire.GIDFromAddr(netip.AddrFrom4([4]byte{192, 0, 2, host}))
	}
	var tr transcript
	give := func(from, to byte, p roctest.Packet) {
		t.Helper()
		var path wire.Template
		if err := path.Init(wire.Path{
			Framing: wire.FramingV2IPv4, HopLimit: 64, SrcPort: 0xc000,
			Src: gid(from), Dst: gid(to),
		}); err != nil {
			t.Fatal(err)
		}
		var decoded wire.Packet
		if reason := decoded.Decode(p.Frame(&path), nil); reason != wire.OK {
			t.Fatal(reason)
		}
		if !tr.packet(&decoded) {
			t.Errorf("%s is of no connection of messages", p.Opcode)
		}
	}
	const qpn, psn = 0x222222, 100
	reply := cm.REP{LocalCommID: 6, RemoteCommID: 5, LocalQPN: qpn, StartingPSN: psn}
	(&msg.Hello{Payload: 1024, Slots: 32}).Put(reply.Private[:])
	mad := make([]byte, cm.MADLen)
	reply.Put(mad, 1)
	give(2, 1, roctest.Packet{Opcode: wire.UDSendOnly, DestQP: managerQP, Payload: mad})
	tr.of[qpn] = 0
	said := len(tr.lines[0])
	give(1, 2, roctest.Packet{Opcode: wire.RCWriteOnly, DestQP: qpn, PSN: psn, AckReq: true})
	if n := len(tr.lines[0]); n != said {
		t.Errorf("a probe is a line: %q", names(tr.lines[0]))
	}
	give(1, 2, roctest.Packet{
		Opcode: wire.RCWriteOnly, DestQP: qpn, PSN: psn + 1,
		RETH: wire.RETH{VA: 64, RKey: 1, DMALen: 8}, Payload: make([]byte, 8),
	})
	if n := len(tr.lines[0]); n != said+1 {
		t.Errorf("a WRITE of bytes is no line: %q", names(tr.lines[0]))
	}
}
