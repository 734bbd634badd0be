package roce_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// rider is a script whose payload rides, with a region of its own to lose.
func rider(t *testing.T) (s *script, r *mem.Region, list []roce.SGE) {
	t.Helper()
	s = newScript(t, options{InlineRecv: roce.MaxInlineRecv, Rights: atomicRights})
	r, err := s.keys.RegisterAt(s.domain, make([]byte, 64), 1<<40, atomicRights)
	must(t, err)
	return s, r, []roce.SGE{{Addr: 1 << 40, Length: 64, LKey: r.LKey()}}
}

// TestInlineRecvPlacedByPoll: the payload is not in memory before the completion is
// polled, and is there then: this is how it is known that it rides at all.
func TestInlineRecvPlacedByPoll(t *testing.T) {
	for n, inlined := range map[int]bool{0: false, 1: true, 64: true, 65: false} {
		s, r, list := rider(t)
		list[0].Length = 64
		if n > 64 {
			list = s.sge(0, n)
		}
		payload := bytes.Repeat([]byte{7}, n)
		must(t, s.qp.PostRecv(&roce.RecvWR{SGList: list}))
		s.Recv(request(wire.RCSendOnly, s.it(0), payload))
		memory := r.Bytes()
		if n > 64 {
			memory = s.buf
		}
		if early := n > 0 && bytes.Equal(memory[:n], payload); early == inlined && n > 0 {
			t.Errorf("%d bytes: in memory before the poll: %t", n, early)
		}
		s.ExpectRecvCQE(roce.Completion{Opcode: roce.WCRecv, ByteLen: uint32(n)})
		if !bytes.Equal(memory[:n], payload) {
			t.Errorf("%d bytes: not in memory after the poll", n)
		}
	}
	// The same for the requester: a READ and an atomic, but none without completion.
	for _, op := range []roce.Opcode{roce.OpRead, roce.OpFetchAdd} {
		for _, signaled := range []bool{true, false} {
			s := newScript(t, options{InlineRecv: 8, Unsignaled: true})
			wr := roce.SendWR{Opcode: op, SGList: s.sge(0, 8)}
			response := response(wire.RCReadRespOnly, s.us(0), bytes.Repeat([]byte{1}, 8))
			if op == roce.OpFetchAdd {
				response = atomicAck(s.us(0), 0x0101010101010101)
			}
			if signaled {
				wr.Flags = roce.SendSignaled
			}
			s.Post(wr)
			s.Expect()
			s.Recv(response)
			if there := s.buf[7] == 1; there == signaled {
				t.Errorf("%s, signaled %t: in memory before the poll: %t", op, signaled, there)
			}
			if drain(t, s.send); s.buf[7] != 1 {
				t.Errorf("%s, signaled %t: not in memory", op, signaled)
			}
		}
	}
}

// TestInlineRecvOff: without inline receive, and with more than a completion can
// take.
func TestInlineRecvOff(t *testing.T) {
	s := newScript(t, options{})
	s.PostRecv(1, 0, 8)
	s.Recv(request(wire.RCSendOnly, s.it(0), []byte{1, 2, 3}))
	if !bytes.Equal(s.buf[:3], []byte{1, 2, 3}) {
		t.Error("not in memory at once")
	}
	c := s.config(s.o)
	for _, n := range []int{-1, roce.MaxInlineRecv + 1} {
		c.MaxInlineRecv = n
		_, err := roce.NewQP(9, c)
		wantErr(t, err, roce.ErrInvalid, fmt.Sprint(n), "0..64")
	}
}

// TestInlineRecvChecksKeysAtArrival: keys are checked when the packet comes.
func TestInlineRecvChecksKeysAtArrival(t *testing.T) {
	s, _, list := rider(t)
	list[0].LKey ^= 1
	must(t, s.qp.PostRecv(&roce.RecvWR{WRID: 1, SGList: list}))
	s.Recv(request(wire.RCSendOnly, s.it(0), []byte{1}))
	s.ExpectAck(s.it(0), wire.NAKRemoteOperationalError, 0)
	s.ExpectRecvCQE(failed(1, roce.StatusLocProtErr))
	s.ExpectState(roce.StateErr)
}

// TestInlineRecvKeyGone: what is done to a key before the poll has the payload
// stored first. A key that went while the payload was on its way ends the
// completion.
func TestInlineRecvKeyGone(t *testing.T) {
	for name, change := range map[string]func(s *script, r *mem.Region) error{
		"deregister": func(s *script, r *mem.Region) error { return s.keys.Deregister(r) },
		"invalidate": func(s *script, r *mem.Region) error {
			if f := s.keys.Invalidate(s.domain.Local(), r.LKey()); f != mem.OK {
				return fmt.Errorf("fault %d", f)
			}
			return nil
		},
		"re-register": func(s *script, r *mem.Region) error {
			m := mem.Memory{Bytes: make([]byte, 64), Addr: 1 << 40}
			return s.keys.Reregister(r, mem.ChangeTranslation, m, nil, 0)
		},
		"reset":      func(s *script, _ *mem.Region) error { s.move(roce.StateReset); return nil },
		"everything": func(s *script, _ *mem.Region) error { s.keys.WriteBack(); return nil },
	} {
		s, r, list := rider(t)
		b := r.Bytes()
		must(t, s.qp.PostRecv(&roce.RecvWR{WRID: 1, SGList: list}))
		s.Recv(request(wire.RCSendOnly, s.it(0), []byte{1, 2}))
		if err := change(s, r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if b[0] != 1 || b[1] != 2 {
			t.Errorf("%s: the payload is lost", name)
		}
		if name == "reset" {
			s.ExpectNoCQE()
			continue
		}
		s.ExpectRecvCQE(roce.Completion{WRID: 1, Opcode: roce.WCRecv, ByteLen: 2})
	}
}

// TestInlineRecvOverrun: a completion that finds no room loses no payload, and
// neither does one in a CQ that is made larger or smaller, or with more payload
// than it keeps.
func TestInlineRecvOverrun(t *testing.T) {
	const many = 300 // more than a CQ keeps payloads of
	s := newScript(t, options{InlineRecv: 64, Depth: 512, CQDepth: 512})
	for i := range many {
		s.PostRecv(uint64(i), 2*i, 2)
		s.Recv(request(wire.RCSendOnly, s.it(uint32(i)), []byte{byte(i), 1}))
	}
	for _, depth := range []int{1 << 12, many} {
		must(t, s.recv.Resize(depth))
	}
	want := make([]byte, 2*many)
	for i, wc := range drain(t, s.recv) {
		if wc.WRID != uint64(i) || wc.Status != roce.StatusSuccess || wc.Flags != 0 {
			t.Fatalf("%d: %+v", i, wc)
		}
		want[2*i], want[2*i+1] = byte(i), 1
	}
	if !bytes.Equal(s.buf[:2*many], want) {
		t.Error("memory differs")
	}
	s = newScript(t, options{InlineRecv: 64, CQDepth: 2})
	for i := range 3 {
		s.PostRecv(uint64(i), i, 1)
		s.Recv(request(wire.RCSendOnly, s.it(uint32(i)), []byte{byte(1 + i)}))
	}
	var wcs [4]roce.Completion
	if n, err := s.recv.Poll(wcs[:]); n != 2 || err != nil {
		t.Fatalf("%d completions, %v", n, err)
	}
	if !slices.Equal(s.buf[:3], []byte{1, 2, 3}) {
		t.Errorf("memory is % x", s.buf[:3])
	}
	s.ExpectState(roce.StateErr)
}

// TestInlineRecvFlushKeepsPayload: completions of a QP that went to ERR keep
// theirs.
func TestInlineRecvFlushKeepsPayload(t *testing.T) {
	s := newScript(t, options{InlineRecv: 64})
	s.PostRecv(1, 0, 8)
	s.PostRecv(2, 8, 8)
	s.Recv(request(wire.RCSendOnly, s.it(0), []byte{9}))
	s.move(roce.StateErr)
	s.ExpectRecvCQE(roce.Completion{WRID: 1, Opcode: roce.WCRecv, ByteLen: 1},
		failed(2, roce.StatusWRFlushErr))
	if s.buf[0] != 9 {
		t.Error("the payload is lost")
	}
}

// TestInlineRecvODPWrittenAtOnce: memory whose pages may go is not waited for.
func TestInlineRecvODPWrittenAtOnce(t *testing.T) {
	s := newScript(t, options{InlineRecv: 64})
	pages := &allPresent{b: make([]byte, 64)}
	r, err := s.keys.RegisterMemory(s.domain, mem.Memory{Pager: pages, Length: 64},
		mem.OnDemand|mem.LocalWrite)
	must(t, err)
	must(t, s.qp.PostRecv(&roce.RecvWR{
		SGList: []roce.SGE{{Length: 64, LKey: r.LKey()}},
	}))
	s.Recv(request(wire.RCSendOnly, s.it(0), []byte{5}))
	if pages.b[0] != 5 {
		t.Error("it waits for the poll")
	}
	s.Expect(roctest.Opcode(wire.RCAck))
}

// allPresent is a pager that has everything.
type allPresent struct{ b []byte }

func (p *allPresent) Present(uint64, uint64, bool) mem.Fault { return mem.OK }
func (p *allPresent) Load(addr uint64, dst []byte) mem.Fault {
	copy(dst, p.b[addr:])
	return mem.OK
}

func (p *allPresent) Store(addr uint64, src []byte) mem.Fault {
	copy(p.b[addr:], src)
	return mem.OK
}

func (p *allPresent) Word(uint64, mem.WordOp, uint64, uint64) (uint64, mem.Fault) {
	return 0, mem.FaultUnmapped
}

// TestInlineRecvFenceStoresPayload: a fence has inline payload stored, time and
// again, and nobody remembers for each that there was some.
func TestInlineRecvFenceStoresPayload(t *testing.T) {
	l := newLoad(t, roce.OpFetchAdd, 8, options{InlineRecv: 64, Rights: atomicRights})
	for i := range l.sends {
		l.sends[i].Flags = roce.SendFence
	}
	l.batch(32) // what is allocated once
	if n := testing.AllocsPerRun(1, func() {
		for range 200 {
			l.batch(32)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestInlineRecvLaterMessages: what later messages of the QP do to the same memory is
// not undone by a payload that rode until its completion was polled.
func TestInlineRecvLaterMessages(t *testing.T) {
	long := bytes.Repeat([]byte{2}, 100)
	for name, tt := range map[string]struct {
		later func(s *script, r *mem.Region, list []roce.SGE)
		want  byte
	}{
		"longer SEND": {func(s *script, _ *mem.Region, list []roce.SGE) {
			must(t, s.qp.PostRecv(&roce.RecvWR{SGList: list}))
			s.Recv(request(wire.RCSendOnly, s.it(1), long))
		}, 2},
		"SEND to many pieces": {func(s *script, r *mem.Region, _ []roce.SGE) {
			must(t, s.qp.PostRecv(&roce.RecvWR{SGList: gapList(r, 0, []int{1, 1, 1, 1, 1})}))
			s.Recv(request(wire.RCSendOnly, s.it(1), long[:5]))
		}, 2},
		"WRITE": {func(s *script, r *mem.Region, _ []roce.SGE) {
			p := request(wire.RCWriteOnly, s.it(1), long)
			p.RETH = wire.RETH{VA: r.Addr(), RKey: r.RKey(), DMALen: 100}
			s.Recv(p)
		}, 2},
		"ATOMIC WRITE": {func(s *script, r *mem.Region, _ []roce.SGE) {
			p := request(wire.RCAtomicWrite, s.it(1), long[:8])
			p.RETH = wire.RETH{VA: r.Addr(), RKey: r.RKey(), DMALen: 8}
			s.Recv(p)
		}, 2},
		"FETCH_ADD": {func(s *script, r *mem.Region, _ []roce.SGE) {
			p := request(wire.RCFetchAdd, s.it(1), nil)
			p.Atomic = wire.AtomicETH{VA: r.Addr(), RKey: r.RKey(), SwapAdd: 0x0101010101010101}
			s.Recv(p)
		}, 2},
		"READ": {func(s *script, r *mem.Region, _ []roce.SGE) {
			p := request(wire.RCReadRequest, s.it(1), nil)
			p.RETH = wire.RETH{VA: r.Addr(), RKey: r.RKey(), DMALen: 8}
			s.Recv(p)
			s.Expect(roctest.Opcode(wire.RCAck))
			s.Expect(roctest.Payload(bytes.Repeat([]byte{1}, 8)))
		}, 1},
	} {
		s := newScript(t, options{InlineRecv: 64, Rights: atomicRights, SGE: 8})
		r, err := s.keys.RegisterAt(s.domain, make([]byte, 128), 1<<41, atomicRights)
		must(t, err)
		list := []roce.SGE{{Addr: 1 << 41, Length: 128, LKey: r.LKey()}}
		must(t, s.qp.PostRecv(&roce.RecvWR{SGList: list}))
		s.Recv(request(wire.RCSendOnly, s.it(0), bytes.Repeat([]byte{1}, 8)))
		if r.Bytes()[0] != 0 {
			t.Errorf("%s: the payload does not ride", name)
		}
		tt.later(s, r, list)
		for _, wc := range drain(t, s.recv) {
			if wc.Status != roce.StatusSuccess {
				t.Errorf("%s: %+v", name, wc)
			}
		}
		if got := r.Bytes()[0]; got != tt.want {
			t.Errorf("%s: memory holds %d, want %d", name, got, tt.want)
		}
	}
	// A CQ that keeps no more payloads, and one that is full, do not change the order.
	for _, o := range []options{
		{InlineRecv: 64, Depth: 512, CQDepth: 512}, {InlineRecv: 64, Depth: 512, CQDepth: 2},
	} {
		s := newScript(t, o)
		for i := range min(257, o.CQDepth+1) {
			s.PostRecv(0, 0, 1)
			s.Recv(request(wire.RCSendOnly, s.it(uint32(i)), []byte{byte(i + 1)}))
		}
		want := byte(min(257, o.CQDepth+1) & 0xff)
		var wcs [512]roce.Completion
		if _, err := s.recv.Poll(wcs[:]); err != nil {
			t.Error(err)
		}
		if s.buf[0] != want {
			t.Errorf("CQ of %d: memory holds %d, want %d", o.CQDepth, s.buf[0], want)
		}
	}
	// The answers to a requester come in order as well.
	s := newScript(t, options{InlineRecv: 64})
	s.Read(1, 8)
	s.Read(2, 100)
	s.Expect()
	s.Expect()
	s.Recv(response(wire.RCReadRespOnly, s.us(0), bytes.Repeat([]byte{1}, 8)),
		response(wire.RCReadRespOnly, s.us(1), long))
	if drain(t, s.send); s.buf[0] != 2 {
		t.Errorf("two READs: memory holds %d, want 2", s.buf[0])
	}
}
