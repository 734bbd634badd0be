package perf

import (
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// A beginning is a Reporter that notes when the messages of a test are about to begin.
type beginning struct {
	*Record
	begins atomic.Bool
}

// Begins implements Reporter.
func (b *beginning) Begins(*Info) { b.begins.Store(true) }

// An interposed connection is one of a client: when the server has posted its receives, and before
// the first message is sent, it has something done.
type interposed struct {
	net.Conn
	begins *atomic.Bool
	do     func()
}

// Read implements net.Conn. What is read first after the beginning is the word of a server that
// is ready.
func (c interposed) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.begins.CompareAndSwap(true, false) {
		c.do()
	}
	return n, err
}

// received is how many messages a device has received.
func received(t *testing.T, dev *engine.Device) uint64 {
	t.Helper()
	counters, err := dev.Counters()
	must(t, err)
	for _, c := range counters {
		if c.Name == "rdma_recvs" {
			return c.Value
		}
	}
	t.Fatal("nobody counts messages")
	return 0
}

// posted is how many receives the queue pairs of a device have, or its shared queues.
func posted(dev *engine.Device) (n uint32) {
	r := dev.Resources(100)
	for _, qp := range r.QPs {
		n += qp.RecvQueue
	}
	for _, srq := range r.SRQs {
		n += uint32(srq.Recvs)
	}
	return n
}

// A stranger is a third host that sends datagrams.
type stranger struct {
	*testing.T
	dev *engine.Device
	cq  *engine.CQ
	qp  *engine.QP
	mr  *engine.MR
	pd  *engine.PD
}

func newStranger(t *testing.T, p *pair) *stranger {
	t.Helper()
	s := &stranger{T: t, dev: device(t, p.network, 3, engine.Options{})}
	s.pd = s.dev.AllocPD()
	var err error
	s.cq, err = s.dev.CreateCQ(1)
	must(t, err)
	s.mr, err = s.dev.RegMR(s.pd, make([]byte, 1024), mem.LocalWrite)
	must(t, err)
	s.qp, err = s.dev.CreateQP(s.pd, engine.QPInit{
		Type: roce.TypeUD, SendCQ: s.cq, RecvCQ: s.cq, MaxSendWR: 1, MaxSendSGE: 1, SignalAll: true,
	})
	must(t, err)
	must(t, s.qp.Start(qkey))
	return s
}

// send sends a datagram of each of the lengths to an address and a queue pair.
func (s *stranger) send(to netip.Addr, qpn uint32, lengths []int) {
	index, err := s.dev.SourceGID(netip.AddrFrom4([4]byte{192, 0, 2, 2}))
	if err != nil {
		s.Error(err)
		return
	}
	ah, err := s.dev.CreateAH(s.Context(), s.pd, engine.AddressVector{
		DGID: wire.GIDFromAddr(to), SGIDIndex: index,
	})
	if err != nil {
		s.Error(err)
		return
	}
	for _, n := range lengths {
		err := s.qp.PostSend(&roce.SendWR{
			Opcode: roce.OpSend, SGList: []roce.SGE{s.mr.SGE(0, n)}, AH: ah,
			RemoteQPN: qpn, RemoteQKey: qkey,
		})
		var wcs [1]roce.Completion
		if err == nil {
			_, err = s.cq.Wait(s.Context(), wcs[:])
		}
		if err != nil || wcs[0].Err() != nil {
			s.Error(err, wcs[0].Err())
		}
	}
}

// TestStrays: what others send to the queue pairs of a test, or to its group, neither ends it nor
// counts: both ends succeed, with all messages of the peer, and say how many came.
func TestStrays(t *testing.T) {
	group := netip.MustParseAddr("239.1.2.3")
	in := wire.GIDFromAddr(group)
	all := []int{3, 1024, 7, 1024, 1024}
	for _, tt := range []struct {
		name    string
		test    Test
		change  func(c *Config)
		lengths []int
		asTool  bool
		both    bool // ends receive them
	}{
		{"bw", Test{Verb: Send}, func(*Config) {}, all, false, false},
		{"bw, a tool", Test{Verb: Send}, func(*Config) {}, all, true, false},
		{"bw -g", Test{Verb: Send}, func(c *Config) { c.Group = in }, all, false, false},
		{"bw -g, a tool", Test{Verb: Send}, func(c *Config) { c.Group = in }, all, true, false},
		{"bw -g -e", Test{Verb: Send}, func(c *Config) {
			c.Group, c.Events = in, true
		}, all, false, false},
		{"bw -g -b", Test{Verb: Send}, func(c *Config) {
			c.Group, c.Both = in, true
		}, all, false, true},
		{"bw -q 2", Test{Verb: Send}, func(c *Config) { c.QPs = 2 }, all, false, false},
		{"bw --use-srq", Test{Verb: Send}, func(c *Config) { c.UseSRQ = true }, all, false, false},
		{"bw rate", Test{Verb: Send}, func(c *Config) {
			c.Rate = Rate{Value: 1000, Units: 'M'}
		}, all, false, false},
		{"lat", Test{Send, true}, func(*Config) {}, all, false, false},
		{"lat -g", Test{Send, true}, func(c *Config) { c.Group = in }, all, false, true},
		// A tool does not say of which queue pair it is.
		{"lat -g, a tool", Test{Send, true}, func(c *Config) {
			c.Group = in
		}, []int{3, 7}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := brief(tt.test)
			c.Type, c.Size, c.Iters, c.RxDepth = roce.TypeUD, 1024, 40, 40
			tt.change(&c)
			p := newPair(t, c)
			p.ends[0].asTool = tt.asTool
			begin := &beginning{Record: &p.records[0]}
			p.ends[0].Tell = begin
			s := newStranger(t, p)
			strange := func() {
				server := p.devs[1]
				depth, before := posted(server), received(t, server)
				to, qpn := netip.AddrFrom4([4]byte{192, 0, 2, 2}), server.Resources(1).QPs[0].LQPN
				if !c.Group.IsZero() {
					to, qpn = group, wire.MulticastQP
				}
				s.send(to, qpn, tt.lengths)
				// None of the messages that count may come before there are receives for all.
				for limit := time.Now().Add(timeout.Scaled(time.Minute)); !s.Failed() &&
					(posted(server) < depth ||
						received(t, server) < before+uint64(len(tt.lengths))); {
					if server.Resources(0).Total.QP == 0 || time.Now().After(limit) {
						t.Error("strays are not looked at")
						return
					}
					time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
				}
			}
			p.wrap = func(end int, conn net.Conn) net.Conn {
				if end == 0 {
					return interposed{conn, &begin.begins, strange}
				}
				return conn
			}
			errs := p.run(t)
			for i := range errs {
				if errs[i] != nil || len(p.records[i].Rows) != 1 {
					t.Fatalf("end %d: %v, results %+v", i, errs[i], p.records[i].Rows)
				}
				row, want := p.records[i].Rows[0], uint64(0)
				if i == 1 || tt.both {
					want = uint64(len(tt.lengths))
				}
				if row.Iters != uint64(c.Iters*c.QPs) || row.Lost != 0 || row.Strays != want {
					t.Errorf("end %d: %+v, want %d strays", i, row, want)
				}
			}
		})
	}
}

// TestStraysOfASharedQueue: of receives that several queue pairs share the queue pair that took one
// says who is its peer, not the flow that posted it.
func TestStraysOfASharedQueue(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	must(t, err)
	dev := device(t, network, 1, engine.Options{})
	c := brief(Test{Verb: Send})
	c.Type, c.QPs, c.UseSRQ = roce.TypeUD, 2, true
	e, err := newEnd(dev, &c, ownSystem, wire.MTU1024, 0, nil)
	must(t, err)
	defer e.close()
	e.remote[0].QPN, e.remote[1].QPN = 0x111, 0x222
	e.peers = e.findPeers()
	for took := range e.flows {
		for from := range e.remote {
			wc := roce.Completion{
				WRID: wridRecv, QPN: e.flows[took].qp.QPN(), SrcQP: e.remote[from].QPN,
			}
			if got := e.stray(&wc); got != (took != from) {
				t.Errorf("%d of %d is a stray: %t", took, from, got)
			}
		}
	}
}

// TestWrongLengthOfThePeer: a datagram of the peer that has another length ends the test.
func TestWrongLengthOfThePeer(t *testing.T) {
	c := brief(Test{Verb: Send})
	c.Type, c.Size = roce.TypeUD, 1024
	p := newPair(t, c)
	p.ends[0].asTool = true
	p.ends[0].Size = 1000
	errs := p.run(t)
	if errs[1] == nil || !strings.Contains(errs[1].Error(), "has 1000 bytes, not 1024") {
		t.Errorf("the server: %v", errs[1])
	}
}
