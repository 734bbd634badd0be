package traffic_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/encap"
	"xroce/roce/clock"
	"xroce/roce/gen"
	"xroce/roce/wire"
)

// envelopes are the formats that frames can be put into.
func envelopes() (names []string) {
	for _, s := range encap.Formats() {
		if s.Carriers&(encap.Native|encap.Datagrams) != 0 {
			names = append(names, s.Name)
		}
	}
	return names
}

// TestEncapsulated: frames of every length arrive out of every format, IPv4, IPv6 and raw, with
// a tag and without, and mistakes on purpose are found; the end of a flow asks for an answer.
func TestEncapsulated(t *testing.T) {
	for _, name := range envelopes() {
		for _, path := range []string{"192.0.2", "2001:db8:"} {
			for _, vlan := range []uint16{0, 7} {
				t.Run(name+"/"+path, func(t *testing.T) { encapsulated(t, name, path, vlan) })
			}
		}
	}
}

func encapsulated(t *testing.T, name, net string, vlan uint16) {
	r := route()
	dot := map[bool]string{true: ".", false: ":"}[strings.Contains(net, ".")]
	r.Path.Src = wire.GIDFromAddr(netip.MustParseAddr(net + dot + "1"))
	r.Path.Dst = wire.GIDFromAddr(netip.MustParseAddr(net + dot + "2"))
	p := plan("max", 0, traffic.PlanFlow{
		Format: name, Size: "100-1300", Payload: "random", VLAN: vlan,
		Vary:   []string{"src_port=2000-2009"},
		Faults: []string{"gap=100", "duplicate=90"},
	})
	flows, err := p.Make(r)
	if name == "raw6" && dot == "." {
		if !errors.Is(err, traffic.ErrPlan) {
			t.Errorf("IPv4: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	opener, err := traffic.NewOpener(name)
	if err != nil {
		t.Fatal(err)
	}
	sink := traffic.NewSink(opener)
	frame := make([]byte, r.MaxFrame)
	for range 1300 {
		n := flows[0].Next(frame, 1)
		at := max(90, n/2) // all headers lie in the first piece
		if asks, _ := sink.Frame(frame[:at], frame[at:n], 5); asks != nil {
			t.Fatal("a frame of data asked for an answer")
		}
		frame[n-40] ^= 1 // a checksum around it finds that
		sink.Frame(frame[:n], nil, 5)
	}
	asks, received := sink.Frame(frame[:flows[0].End(frame, 9)], nil, 10)
	counts, _ := sink.Counts()
	f := flows[0].Injected()
	if counts.Lost != f[gen.FaultGap] || counts.Duplicates != f[gen.FaultDuplicate] ||
		counts.Received+counts.Duplicates != 1300 || sink.Totals().Signed != 1300 {
		t.Errorf("%+v, %+v", counts, sink.Totals())
	}
	var answer [gen.MaxAnswer]byte
	if n := gen.Answer(answer[:], asks, received); n == 0 {
		t.Error("the end of the flow cannot be answered")
	}
}

// TestEncapsulatedAtAll: what a format cannot carry is refused by name, and so is what has no
// room.
func TestEncapsulatedAtAll(t *testing.T) {
	for name, f := range map[string]traffic.PlanFlow{
		"nobody":             {Format: "nobody"},
		"of connections":     {Format: "ipoib-cm"},
		"does not carry":     {Format: "ipoib", Kind: "ethernet"},
		"in these headers":   {Format: "eoib", Size: "9300"},
		"are for the neighb": {Format: "eoib", Kind: "pfc"},
	} {
		_, err := new(plan("max", 0, f)).Make(route())
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := traffic.NewOpener("ipoib-cm"); err == nil {
		t.Error("a sink of messages")
	}
}

// TestEncapsulationThatFails: a frame that cannot be put into others ends the run, and is told.
func TestEncapsulationThatFails(t *testing.T) {
	l := newWireLink()
	p := plan("max", 0, traffic.PlanFlow{Format: "eoib", Size: "200"})
	configs, err := p.Configs(route())
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("no room")
	for name, c := range map[string]struct {
		good   int // frames that can be made
		frames uint64
	}{"the first": {0, 0}, "a later one": {5, 5}, "the end of the flow": {9, 9}} {
		put, made := configs[0].Wrap.Put, 0
		config := configs[0]
		config.Wrap = &gen.Wrap{Max: config.Wrap.Max, Put: func(frame, inner []byte) (int, error) {
			if made == c.good {
				return 0, refused
			}
			made++
			return put(frame, inner)
		}}
		p.Count = 9
		s := sender(t, p, l, &virtual{look: 100, tick: 50 * clock.Microsecond})
		flow, err := gen.NewFlow(config)
		if err != nil {
			t.Fatal(err)
		}
		s.Flows = []*gen.Flow{flow}
		sent, err := s.Run(t.Context())
		if err == nil {
			err = s.End(none)
		}
		if !errors.Is(err, refused) || sent.Frames != c.frames || !errors.Is(flow.Err(), refused) {
			t.Errorf("%s: %v after %d frames", name, err, sent.Frames)
		}
	}
}

// TestEncapsulatedBySink: a generator and a sink over a link agree on all of it.
func TestEncapsulatedBySink(t *testing.T) {
	l := newWireLink()
	c := &virtual{look: 100, tick: 50 * clock.Microsecond}
	p := plan("max", 0, traffic.PlanFlow{Format: "vnic", Kind: "roce", Size: "200", Flows: 3})
	p.Count = 99
	s := sender(t, p, l, c)
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.End(none); err != nil {
		t.Fatal(err)
	}
	opener, err := traffic.NewOpener("vnic")
	if err != nil {
		t.Fatal(err)
	}
	sink := traffic.NewSink(opener)
	l.wait = func() { c.now += 50 * clock.Millisecond }
	if err := (&traffic.Collector{Link: l, Sink: sink, Clock: c}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	counts, _ := sink.Counts()
	if counts.Received != 99 || sink.NumFlows() != 3 || !sink.Over() {
		t.Errorf("%+v of %d flows", counts, sink.NumFlows())
	}
}
