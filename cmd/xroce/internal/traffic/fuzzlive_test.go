package traffic_test

import (
	"net/netip"
	"testing"
	"time"

	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/gen"
	"xroce/roce/wire"
	"xroce/xsk"
)

// A stranger sends malformed packets from an address to the device of a lab.
type stranger struct {
	*sim.Port
	l      *lab
	fuzzer *gen.Fuzzer
}

// newStranger adds a host that aims at queue pairs, in the name of an address.
func (l *lab) newStranger(name string, seed uint64, qps ...uint32) *stranger {
	l.t.Helper()
	c := sim.PortConfig{
		Name: "c", MAC: [6]byte{2, 0, 0, 0, 0, 3}, MTU: 1500,
		Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.3")},
	}
	port, err := l.net.NewPort(c)
	l.must(err)
	path := route().Path
	path.SrcMAC, path.HopLimit = c.MAC, 64
	path.Src = wire.GIDFromAddr(netip.MustParseAddr(name))
	f, err := gen.NewFuzzer(path, 1514, seed, 0, qps)
	l.must(err)
	return &stranger{port, l, f}
}

// send sends so many packets.
func (s *stranger) send(n int) {
	var f [1]xsk.TxFrame
	for range n {
		if s.Reserve(f[:]) == 0 {
			s.l.must(s.Flush())
			continue
		}
		f[0].Len = s.fuzzer.Next(f[0].Data, 0)
		s.Transmit(f[:])
		s.l.must(s.Flush())
	}
}

// counter is a counter of the device.
func (l *lab) counter(name string) uint64 {
	l.t.Helper()
	all, err := l.dev.Counters()
	l.must(err)
	for _, c := range all {
		if c.Name == name {
			return c.Value
		}
	}
	l.t.Fatalf("no counter %s", name)
	return 0
}

// TestFuzzLiveQP: a connection works on while a third host sends malformed packets to its queue
// pair, as if nothing were; the counters say what came and why it had no effect.
func TestFuzzLiveQP(t *testing.T) {
	l := newLab(t, sim.Faults{})
	qp := l.responder(0x77, 5, 0)
	s := l.requests(gen.Config{
		Sizes: gen.List(400), RoCE: gen.RoCE{
			Opcodes: []wire.Opcode{wire.RCWriteOnly, wire.RCReadRequest}, DestQP: qp.QPN(),
			PSN: 5, RKey: l.mr.RKey(), VA: l.mr.Addr(), ReadLen: 2000,
		},
	}, gen.RequesterConfig{QPN: 0x77}, 500, "100kpps")
	c := l.newStranger("192.0.2.3", 7, qp.QPN())
	l.meanwhile = func() { c.send(8) }
	got, err := s.Run(t.Context())
	if err != nil || got.Packets != 500 || got.Resent != 0 || got.Damaged != 0 ||
		qp.State() != roce.StateRTR {
		t.Fatalf("%+v, %v, %s", got, err, qp.State())
	}
	if sent := c.fuzzer.Number(); sent < 1000 || l.counter("drop_bad_source") < sent/20 {
		t.Errorf("%d packets, drop_bad_source %d", sent, l.counter("drop_bad_source"))
	}
}

// TestFuzzSpoofedQP: who sends in the name of the peer can end a connection, and no more: the
// device goes on, and the next connection works.
func TestFuzzSpoofedQP(t *testing.T) {
	for seed := range uint64(4) {
		l := newLab(t, sim.Faults{})
		qp := l.responder(0x77, 5, 10)
		c := l.newStranger("192.0.2.1", seed, qp.QPN())
		for range 100 {
			c.send(20)
			l.must(l.Wait(100 * time.Microsecond))
			for l.dev.Progress() {
			}
		}
		next := l.responder(0x78, 9, 0)
		s := l.requests(gen.Config{
			Sizes: gen.List(400), RoCE: gen.RoCE{
				Opcodes: []wire.Opcode{wire.RCWriteOnly}, DestQP: next.QPN(), PSN: 9,
				RKey: l.mr.RKey(), VA: l.mr.Addr(),
			},
		}, gen.RequesterConfig{QPN: 0x78}, 100, "max")
		if got, err := s.Run(t.Context()); err != nil || got.Packets != 100 {
			t.Errorf("seed %d: %+v, %v, the first one in %s", seed, got, err, qp.State())
		}
	}
}
