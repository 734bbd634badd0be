package analyze

import (
	"net/netip"
	"strings"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/dissect"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// A rig feeds an Analyzer with packets between two hosts: queue pair 0x11 of the first and 0x22 of
// the second.
type rig struct {
	t      *testing.T
	a      *Analyzer
	d      dissect.Dissector
	paths  [2]wire.Template
	now    clock.Time
	number int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, a: New()}
	hosts := [2]wire.GID{
		wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1")),
		wire.GIDFromAddr(netip.MustParseAddr("192.0.2.2")),
	}
	for i := range r.paths {
		path := wire.Path{
			Framing: wire.FramingV2IPv4, HopLimit: 64, Src: hosts[i], Dst: hosts[1-i],
		}
		if err := r.paths[i].Init(path); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// give feeds a packet of a host, so much later than the last.
func (r *rig) give(host int, after clock.Time, p roctest.Packet) {
	r.t.Helper()
	if p.DestQP == 0 {
		p.DestQP = [2]uint32{0x22, 0x11}[host]
	}
	frame := p.Frame(&r.paths[host])
	r.now += after
	r.number++
	var packet dissect.Packet
	r.d.Dissect(dissect.LinkEthernet, frame, len(frame), &packet)
	r.a.Add(r.number, r.now, 0, &packet)
}

// send is a SEND of one packet of the first host.
func (r *rig) send(after clock.Time, psn wire.PSN) {
	r.t.Helper()
	r.give(0, after, roctest.Packet{
		Opcode: wire.RCSendOnly, PSN: psn, AckReq: true, Payload: make([]byte, 8),
	})
}

// ack is an acknowledgement of the second host.
func (r *rig) ack(after clock.Time, psn wire.PSN, syndrome wire.Syndrome, msn uint32) {
	r.t.Helper()
	r.give(1, after, roctest.Packet{
		Opcode: wire.RCAck, PSN: psn, AETH: wire.AETH{Syndrome: syndrome, MSN: msn},
	})
}

// says holds that the diagnosis has some words, and returns the report.
func (r *rig) says(words ...string) *Report {
	r.t.Helper()
	report := r.a.Report()
	all := strings.Join(report.Diagnosis, "\n")
	for _, w := range words {
		if !strings.Contains(all, w) {
			r.t.Errorf("no %q in\n%s", w, all)
		}
	}
	if len(words) == 0 && all != "Nothing went wrong." {
		r.t.Errorf("%s", all)
	}
	return report
}
