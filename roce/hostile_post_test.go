package roce_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/internal/handle"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// TestHostileUseAfterPost: the caller's lists, inline data and requests are its
// own again once posted: whatever it writes there, what was posted is what
// happens.
func TestHostileUseAfterPost(t *testing.T) {
	for _, k := range kinds {
		for _, inline := range []bool{false, true} {
			sentAsPosted(t, k, inline)
		}
		receivedAsPosted(t, k)
	}
}

func sentAsPosted(t *testing.T, k kind, inline bool) {
	t.Helper()
	if k.typ == roce.TypeXRCRecv {
		return
	}
	s := bareStand(t, k)
	s.moveUp(roce.StateRTS)
	fill(s.area(areaOpen), 1)
	want := bytes.Clone(s.area(areaOpen)[:60])
	wr := s.request(roce.OpSend, areaOpen, 0, 20)
	wr.SGList = []roce.SGE{
		s.sge(areaOpen, 0, 20), s.sge(areaOpen, 20, 0), s.sge(areaOpen, 20, 40),
	}
	if inline {
		wr.SGList, wr.Inline, wr.Flags = nil, bytes.Clone(want), roce.SendInline
	}
	if !s.post(&wr) {
		t.Fatalf("%s: not posted", k.name)
	}
	list, data := wr.SGList, wr.Inline
	wr = roce.SendWR{WRID: 99, Opcode: roce.OpRead, RemoteAddr: 1, RKey: 1, Imm: 1}
	for i := range list {
		list[i] = roce.SGE{Addr: math.MaxUint64, Length: math.MaxUint32, LKey: 0xdead}
	}
	clear(data)
	if k.typ == roce.TypeRawPacket {
		n := s.qp.NextPacket(0, s.frame)
		if !bytes.Equal(s.frame[:n], want) {
			t.Errorf("RAW_PACKET, inline %t: sent %x", inline, s.frame[:n])
		}
		return
	}
	sent := s.sendAll()
	if len(sent) != 1 || !bytes.Equal(sent[0].Payload, want) {
		t.Errorf("%s, inline %t: sent %d packets, want one of what was posted", k.name, inline,
			len(sent))
	}
	s.check()
}

func receivedAsPosted(t *testing.T, k kind) {
	t.Helper()
	op, ok := k.opcode(wire.RCSendOnly)
	if !ok || k.typ == roce.TypeXRCSend {
		return
	}
	s := bareStand(t, k)
	s.moveUp(roce.StateRTR)
	list := []roce.SGE{s.sge(areaOpen, 0, 70), s.sge(areaOpen, 0, 0), s.sge(areaOpen, 100, 70)}
	wr := roce.RecvWR{SGList: list}
	if s.srq != nil {
		must(t, s.srq.PostRecv(&wr))
	} else {
		must(t, s.qp.PostRecv(&wr))
	}
	s.recvPosted++
	for i := range list {
		list[i] = s.sge(areaForeign, 0, 1)
	}
	wr = roce.RecvWR{WRID: 99}
	n := 100
	if k.typ == roce.TypeRawPacket {
		s.giveFrame(bytes.Repeat([]byte{0x5a}, n))
	} else {
		s.giveLong(op, n)
	}
	s.check()
	open := s.area(areaOpen)
	if s.recvDone != 1 || changed(open[70:100]) >= 0 || open[69] != 0x5a || open[100] != 0x5a {
		t.Errorf("%s: %d receives done, memory %x", k.name, s.recvDone, open[60:110])
	}
}

// TestHostileSGECount: lists of 0 to 33 pieces for queues that take up to 32.
func TestHostileSGECount(t *testing.T) {
	for _, most := range []int{1, 4, roce.MaxSGE} {
		for _, n := range []int{0, 1, 4, 5, 31, 32, 33, 255, 256, 257} {
			s := newScript(t, options{SGE: most})
			srq, err := roce.NewSRQ(1, roce.SRQConfig{Domain: s.domain, MaxWR: 4, MaxSGE: most})
			must(t, err)
			list := make([]roce.SGE, n)
			for what, err := range map[string]error{
				"send":   s.qp.PostSend(&roce.SendWR{Opcode: roce.OpSend, SGList: list}),
				"recv":   s.qp.PostRecv(&roce.RecvWR{SGList: list}),
				"shared": srq.PostRecv(&roce.RecvWR{SGList: list}),
			} {
				if (err == nil) != (n <= most) || err != nil && !errors.Is(err, roce.ErrInvalid) {
					t.Errorf("%s of %d pieces, the queue takes %d: %v", what, n, most, err)
				}
			}
			wantPosted := uint32(b2i(n <= most))
			v := s.qp.Snapshot()
			if _, posted := srq.Query(); v.SendPosted != wantPosted ||
				v.RecvPosted != wantPosted || posted != int(wantPosted) {
				t.Errorf("%d pieces of %d: %s, %d shared", n, most, v, posted)
			}
		}
	}
	for _, n := range []int{-1, 0, 33, math.MaxInt32} {
		e := newEndpoint(t, qpnA, options{}.filled())
		c := e.config(options{}.filled())
		c.MaxSendSGE = n
		if _, err := roce.NewQP(1, c); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("a QP of %d send pieces: %v", n, err)
		}
		c = e.config(options{}.filled())
		c.MaxRecvSGE = n
		if _, err := roce.NewQP(1, c); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("a QP of %d receive pieces: %v", n, err)
		}
	}
}

// TestHostileSGESums: lengths whose sums pass 2^31, 2^32 and 2^63.
func TestHostileSGESums(t *testing.T) {
	lengths := []uint32{0, 1, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 1}
	for _, a := range lengths {
		for _, b := range lengths {
			for _, pieces := range []int{2, 3, 32} {
				s := newScript(t, options{SGE: roce.MaxSGE})
				list := make([]roce.SGE, pieces)
				sum := uint64(0)
				for i := range list {
					list[i].Length = []uint32{a, b}[i%2]
					sum += uint64(list[i].Length)
				}
				want := sum <= roce.MaxMessage
				for what, err := range map[string]error{
					"send": s.qp.PostSend(&roce.SendWR{Opcode: roce.OpSend, SGList: list}),
					"read": s.qp.PostSend(&roce.SendWR{Opcode: roce.OpRead, SGList: list}),
					"recv": s.qp.PostRecv(&roce.RecvWR{SGList: list}),
				} {
					if (err == nil) != want || err != nil && !errors.Is(err, roce.ErrInvalid) {
						t.Errorf("%s of %d pieces of %d and %d: %v", what, pieces, a, b, err)
					}
				}
				// What was taken names no memory: it fails, alone.
				s.qp.NextPacket(0, s.frame)
				if want && sum > 0 {
					s.ExpectCQE(failed(0, roce.StatusLocProtErr), failed(0, roce.StatusWRFlushErr))
				}
			}
		}
	}
}

// TestHostileSGEPlaces: pieces of nothing in any place, and pieces that end
// within packets: what arrives is what the list says, byte for byte.
func TestHostileSGEPlaces(t *testing.T) {
	noise := newNoise(5)
	for range 300 {
		p := newRCPair(t, options{SGE: roce.MaxSGE, Memory: 1 << 14})
		a, b := p.ends[0], p.ends[1]
		fill(a.buf[:1<<13], 3)
		list, data := pieces(noise, a, 0)
		into, room := pieces(noise, b, len(data))
		must(t, b.qp.PostRecv(&roce.RecvWR{SGList: into}))
		must(t, a.qp.PostSend(&roce.SendWR{Opcode: roce.OpSend, SGList: list}))
		p.run()
		wcs := drain(t, a.send)
		fits := len(data) <= len(room)
		if len(wcs) != 1 || (wcs[0].Status == roce.StatusSuccess) != fits {
			t.Fatalf("%d bytes into %d: %+v", len(data), len(room), wcs)
		}
		if !fits {
			continue
		}
		var got []byte
		for _, e := range into {
			got = append(got, b.buf[e.Addr-b.region.Addr():][:e.Length]...)
		}
		if !bytes.Equal(got[:len(data)], data) {
			t.Fatalf("%d bytes from %d pieces into %d differ", len(data), len(list), len(into))
		}
	}
}

// pieces is a list of up to 32 pieces that do not overlap, of at least so many
// bytes most of the time, with the bytes that are there.
func pieces(noise *rand.Rand, e *endpoint, least int) (list []roce.SGE, data []byte) {
	n, off := noise.IntN(roce.MaxSGE+1), 0
	for i := range n {
		size := noise.IntN(4) * noise.IntN(80)
		if i == n-1 && noise.IntN(8) != 0 {
			size = max(size, least-len(data))
		}
		list = append(list, e.sge(off, size)...)
		data = append(data, e.buf[off:][:size]...)
		off += size + noise.IntN(3)
	}
	return list, data
}

// TestHostileCreateArguments: each create call with each of its arguments wrong
// in turn. It says so, and nothing of it is left: what it was given serves
// another.
func TestHostileCreateArguments(t *testing.T) {
	o := options{}.filled()
	for name, spoil := range map[string]func(c *roce.QPConfig){
		"type":         func(c *roce.QPConfig) { c.Type = 5 },
		"high type":    func(c *roce.QPConfig) { c.Type = 200 },
		"domain":       func(c *roce.QPConfig) { c.Domain = nil },
		"keys":         func(c *roce.QPConfig) { c.Common.Keys = nil },
		"no common":    func(c *roce.QPConfig) { c.Common = nil },
		"counters":     func(c *roce.QPConfig) { c.Counters = nil },
		"send CQ":      func(c *roce.QPConfig) { c.SendCQ = nil },
		"receive CQ":   func(c *roce.QPConfig) { c.RecvCQ = nil },
		"window":       func(c *roce.QPConfig) { c.Window = -1 },
		"large window": func(c *roce.QPConfig) { c.Window = 1<<16 + 1 },
		"inline":       func(c *roce.QPConfig) { c.MaxInline = -1 },
		"large inline": func(c *roce.QPConfig) { c.MaxInline = roce.MaxInline + 1 },
		"MTU":          func(c *roce.QPConfig) { c.MTU = 6 },
		"XRC domain":   func(c *roce.QPConfig) { c.XRCD = roce.NewXRCD() },
		"no XRCD":      func(c *roce.QPConfig) { c.Type = roce.TypeXRCRecv },
		"send depth":   func(c *roce.QPConfig) { c.MaxSendWR = 0 },
		"deep send":    func(c *roce.QPConfig) { c.MaxSendWR = roce.MaxWR + 1 },
		"recv depth":   func(c *roce.QPConfig) { c.MaxRecvWR = 0 },
		"deep recv":    func(c *roce.QPConfig) { c.MaxRecvWR = math.MaxInt32 },
		"send pieces":  func(c *roce.QPConfig) { c.MaxSendSGE = 33 },
		"recv pieces":  func(c *roce.QPConfig) { c.MaxRecvSGE = -1 },
	} {
		e := newEndpoint(t, qpnA, o)
		c := e.config(o)
		spoil(&c)
		if qp, err := roce.NewQP(1, c); qp != nil || !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("NewQP with wrong %s: %v, %v", name, qp, err)
		}
		if *e.count != (counter.Set{}) || e.keys.Len() != 1 {
			t.Errorf("NewQP with wrong %s left something", name)
		}
		if _, err := roce.NewQP(1, e.config(o)); err != nil {
			t.Errorf("after a NewQP with wrong %s: %v", name, err)
		}
	}
}

// TestHostileSharedCreateArguments: the same for what several queue pairs
// share.
func TestHostileSharedCreateArguments(t *testing.T) {
	d := new(mem.Domain)
	srq := func() *roce.SRQ {
		s, err := roce.NewSRQ(1, roce.SRQConfig{Domain: d, MaxWR: 1, MaxSGE: 1})
		must(t, err)
		return s
	}
	cq, err := roce.NewCQ(1, nil)
	must(t, err)
	x := roce.NewXRCD()
	s := srq()
	if err := x.Add(s, nil); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("an SRQ in an XRC domain without a CQ: %v", err)
	}
	must(t, x.Add(s, cq))
	if err := x.Add(srq(), cq); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("two SRQs of one number: %v", err)
	}
	if err := roce.NewXRCD().Add(s, cq); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("one SRQ in two domains: %v", err)
	}
	for _, typ := range []roce.QPType{roce.TypeRC, roce.TypeUD, roce.TypeXRCSend} {
		e := newEndpoint(t, qpnA, options{}.filled())
		c := e.config(options{}.filled())
		c.Type, c.SRQ, c.MaxRecvWR = typ, s, 0
		if _, err := roce.NewQP(1, c); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("%s on an SRQ for XRC: %v", typ, err)
		}
	}
	for name, path := range map[string]wire.Path{
		"none":   {},
		"native": {Framing: wire.FramingNative},
		"mixed":  {Framing: wire.FramingV2IPv6, Src: wire.GIDFromIPv4([4]byte{1})},
		"label":  {Framing: wire.FramingV1, FlowLabel: 1 << 20},
		"broadcast": {
			Framing: wire.FramingV2IPv4, DstMAC: [6]byte{255, 255, 255, 255, 255, 255},
			Src: wire.GIDFromIPv4([4]byte{192, 0, 2, 1}),
			Dst: wire.GIDFromIPv4([4]byte{192, 0, 2, 255}),
		},
	} {
		if _, err := roce.NewAH(d, path); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("an address handle of path %s: %v", name, err)
		}
	}
	_, err = roce.NewAH(nil, pathTo(qpnA, wire.FramingV2IPv4))
	if !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("an address handle of no domain: %v", err)
	}
}

// TestHostileRegistrationFails: a registration that fails, for its arguments or
// because all keys are in use, leaves no key behind.
func TestHostileRegistrationFails(t *testing.T) {
	k, d := mem.NewKeys(rand.NewPCG(1, 1)), new(mem.Domain)
	for i, f := range []func() (*mem.Region, error){
		func() (*mem.Region, error) { return k.Register(nil, make([]byte, 8), 0) },
		func() (*mem.Region, error) { return k.Register(d, make([]byte, 8), mem.RemoteWrite) },
		func() (*mem.Region, error) { return k.Register(d, make([]byte, 8), mem.OnDemand) },
		func() (*mem.Region, error) { return k.Register(d, make([]byte, 8), mem.HugeTLB) },
		func() (*mem.Region, error) { return k.Register(d, make([]byte, 8), 1<<15) },
		func() (*mem.Region, error) { return k.Register(d, make([]byte, 8), mem.FlushPersistent) },
		func() (*mem.Region, error) { return k.RegisterAt(d, make([]byte, 8), 1<<64-7, 0) },
	} {
		if r, err := f(); r != nil || err == nil || k.Len() != 0 {
			t.Errorf("registration %d: %v, %v, %d keys", i, r, err, k.Len())
		}
	}
	table := handle.New[int](1, 4, rand.NewPCG(1, 1))
	for range 4 {
		_, err := table.Insert(func(uint32) *int { return new(int) })
		must(t, err)
	}
	for range 3 {
		_, err := table.Insert(func(uint32) *int { t.Error("built"); return new(int) })
		if !errors.Is(err, handle.ErrFull) || table.Len() != 4 {
			t.Errorf("a fifth of four: %v, %d", err, table.Len())
		}
	}
}

// TestHostileModifyWithoutAttribute: each move of the state graph with each of
// its attributes missing: nothing changes, and the whole move works afterwards.
func TestHostileModifyWithoutAttribute(t *testing.T) {
	for _, k := range kinds {
		s := bareStand(t, k)
		a := s.attr()
		for to := roce.StateInit; to <= roce.StateRTS; to++ {
			a.State = to
			mask := moveMask(k, to)
			for bit := roce.AttrMask(2); bit <= roce.AttrDestQPN; bit <<= 1 {
				if mask&bit == 0 {
					continue
				}
				s.frozen(fmt.Sprintf("%s to %s without %s", k.name, to, bit), func() {
					if s.modify(&a, mask&^bit) == nil {
						t.Errorf("%s to %s without %s", k.name, to, bit)
					}
				})
			}
			must(t, s.modify(&a, mask))
		}
	}
}
