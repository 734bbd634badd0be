package analysis

import (
	"bytes"
	"math"
	"net/netip"
	"strings"
	"testing"

	"xroce/engine/capture"
	"xroce/engine/capture/read"
	"xroce/roce/analyze"
	"xroce/roce/clock"
	"xroce/roce/dissect"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// A moment is a packet of a host, 0 or 1, at a time of a capture.
type moment struct {
	host int
	at   int64
}

// captured reports what a pcapng has in which time stamps are nanoseconds: SENDs of the first host
// to the second, and of that to the first.
func captured(t *testing.T, moments ...moment) *analyze.Report {
	t.Helper()
	file := capture.AppendHeader(nil, "eth0", 0)
	hosts := [2]wire.GID{
		wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1")),
		wire.GIDFromAddr(netip.MustParseAddr("192.0.2.2")),
	}
	for i, m := range moments {
		var path wire.Template
		if err := path.Init(wire.Path{
			Framing: wire.FramingV2IPv4, HopLimit: 64, Src: hosts[m.host], Dst: hosts[1-m.host],
		}); err != nil {
			t.Fatal(err)
		}
		p := roctest.Packet{
			Opcode: wire.RCSendOnly, DestQP: [2]uint32{0x22, 0x11}[m.host], PSN: wire.PSN(i),
			AckReq: true, Payload: make([]byte, 8),
		}
		file = capture.AppendPacket(file, &capture.Packet{At: m.at, Head: p.Frame(&path)}, 0)
	}
	reader, err := read.New(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var (
		a      = analyze.New()
		d      dissect.Dissector
		c      read.Packet
		inside dissect.Packet
	)
	for i, m := range moments {
		if err := reader.Next(&c); err != nil || c.Time != m.at {
			t.Fatalf("packet %d at %d: %v", i, c.Time, err)
		}
		d.Dissect(c.Link, c.Data, c.Length, &inside)
		a.Add(c.Number, clock.Time(c.Time), c.Dropped, &inside)
	}
	return a.Report()
}

// TestHostileTimes: whatever time stamps a file has, there is a page, and numbers in it are some.
func TestHostileTimes(t *testing.T) {
	const last = math.MaxInt64
	for name, moments := range map[string][]moment{
		"the last time":     {{0, 0}, {1, last}, {1, last}},
		"as long as can be": {{0, 0}, {0, last}, {1, 0}, {1, last}},
		"near the last":     {{0, 0}, {1, last - 1000}, {1, last}},
		"backwards":         {{0, last}, {0, 0}, {1, last}, {1, 1}},
	} {
		r := captured(t, moments...)
		for i := range r.Connections {
			for j := range r.Connections[i].Directions {
				d := &r.Connections[i].Directions[j]
				bars := []analyze.Bar{{UpTo: 0, Count: 1}, {UpTo: last, Count: 1}}
				d.Operations = append(d.Operations, analyze.Operation{
					Kind: "SEND", Latency: &analyze.Latency{Bars: bars},
				})
			}
		}
		var page bytes.Buffer
		if err := HTML(&page, name, r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text := page.String()
		if !strings.Contains(text, "<svg ") ||
			!strings.HasSuffix(strings.TrimSpace(text), "</html>") {
			t.Errorf("%s: %s", name, text)
		}
		for _, none := range []string{"NaN", "Inf"} {
			if at := strings.Index(text, none); at >= 0 {
				t.Errorf("%s: %q", name, text[max(at-80, 0):at+20])
			}
		}
	}
}
