package engine_test

import (
	"bytes"
	"errors"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
)

// newSRQ makes an SRQ with n receives of 8 KiB of a seat's region, which are
// numbered from 0.
func newSRQ(t *testing.T, s *seat, n int, init engine.SRQInit) *engine.SRQ {
	t.Helper()
	srq, err := s.dev.CreateSRQ(s.pd, init)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		postShared(t, srq, s, i)
	}
	return srq
}

func postShared(t *testing.T, srq *engine.SRQ, s *seat, i int) {
	t.Helper()
	err := srq.PostRecv(&roce.RecvWR{WRID: uint64(i), SGList: []roce.SGE{s.mr.SGE(i<<13, 1<<13)}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSharedReceives has QPs of types RC, UC and UD take from one SRQ in the
// order of their messages, and the limit tell once.
func TestSharedReceives(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		hub := seatOn(t, w.devs[1], engine.QPInit{})
		srq := newSRQ(t, hub, 12, engine.SRQInit{MaxWR: 16, MaxSGE: 1})
		init := func(typ roce.QPType) engine.QPInit {
			return engine.QPInit{Type: typ, SRQ: srq, SendCQ: hub.cq, RecvCQ: hub.cq}
		}
		var senders [3]*seat
		var qpns [3]uint32
		for i, typ := range []roce.QPType{roce.TypeRC, roce.TypeUC, roce.TypeUD} {
			senders[i] = seatOn(t, w.devs[0], engine.QPInit{Type: typ})
			qp, err := w.devs[1].CreateQP(hub.pd, init(typ))
			if err != nil {
				t.Fatal(err)
			}
			here := &seat{dev: w.devs[1], qp: qp}
			if qpns[i] = qp.QPN(); typ != roce.TypeUD {
				join(t, senders[i], here, engine.ConnectOptions{})
				continue
			}
			for _, q := range []*engine.QP{senders[i].qp, qp} {
				if err := q.Start(qkey); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := srq.Modify(roce.SRQAttr{Limit: 4}, roce.SRQAttrLimit); err != nil {
			t.Fatal(err)
		}
		ah := senders[2].handle(t, w.devs[1].GIDs()[gidIPv4], gidIPv4)
		for i := range 9 {
			from, front := senders[i%3], 0
			from.mr.Bytes()[0] = byte(100 + i)
			wr := roce.SendWR{Opcode: roce.OpSend, SGList: []roce.SGE{from.mr.SGE(0, 4000)}}
			if i%3 == 2 {
				wr, front = from.datagram(ah, qpns[2], 4000), grhLen
			}
			wr.Flags = roce.SendSignaled
			from.send(t, wr)
			w.succeed(from.cq, 1)
			wc := w.succeed(hub.cq, 1)[0]
			if wc.WRID != uint64(i) || wc.QPN != qpns[i%3] ||
				hub.mr.Bytes()[i<<13+front] != byte(100+i) {
				t.Errorf("message %d: %+v", i, wc)
			}
		}
		// 3 are left: fewer than 4.
		want := engine.AsyncEvent{Type: roce.EventSRQLimitReached, SRQ: srq}
		if e := w.event(w.devs[1]); e != want {
			t.Errorf("event %+v", e)
		}
		attr, posted := srq.Query()
		if attr.Limit != 0 || attr.MaxWR != 16 || posted != 3 {
			t.Errorf("%+v with %d posted", attr, posted)
		}
		if e, ok := w.devs[1].PollEvent(); ok {
			t.Errorf("one more event: %s", e.Type)
		}
	})
}

// TestSharedReceivesRunOut has an RC sender wait for a receive that is posted
// later, and a UD sender not.
func TestSharedReceivesRunOut(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	hub := seatOn(t, w.devs[1], engine.QPInit{})
	srq := newSRQ(t, hub, 0, engine.SRQInit{})
	a := seatOn(t, w.devs[0], engine.QPInit{})
	b := seatIn(t, hub.pd, w.devs[1], engine.QPInit{SRQ: srq})
	join(t, a, b, engine.ConnectOptions{})
	if err := b.qp.PostRecv(&roce.RecvWR{}); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("PostRecv of a QP with an SRQ: %v", err)
	}
	a.send(t, writeTo(a, b, roce.OpSend, 100))
	w.run(func() bool { return counterOf(t, w.devs[0], "rcvd_rnr_err") > 0 })
	postShared(t, srq, hub, 3)
	w.succeed(a.cq, 1)
	if wc := w.succeed(b.cq, 1)[0]; wc.WRID != 3 {
		t.Errorf("%+v", wc)
	}
}

// TestSharedReceiveQueueResized grows and shrinks under traffic and loses nothing.
func TestSharedReceiveQueueResized(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{Delay: roce.Microsecond}, engine.Options{})
	hub := seatOn(t, w.devs[1], engine.QPInit{})
	srq := newSRQ(t, hub, 4, engine.SRQInit{MaxWR: 4})
	a := seatOn(t, w.devs[0], engine.QPInit{})
	b := seatIn(t, hub.pd, w.devs[1], engine.QPInit{SRQ: srq})
	join(t, a, b, engine.ConnectOptions{})
	posted := 4
	for round, depth := range []int{8, 16, 5, 4, 12} {
		a.send(t, writeTo(a, b, roce.OpSend, 10))
		if err := srq.Modify(roce.SRQAttr{MaxWR: depth}, roce.SRQAttrMaxWR); err != nil {
			t.Fatal(err)
		}
		w.succeed(a.cq, 1)
		if wc := w.succeed(b.cq, 1)[0]; wc.WRID != uint64(round) {
			t.Errorf("round %d took receive %d", round, wc.WRID)
		}
		postShared(t, srq, hub, posted)
		posted++
	}
	err := srq.Modify(roce.SRQAttr{MaxWR: 3}, roce.SRQAttrMaxWR)
	if !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("less room than receives: %v", err)
	}
}

// TestLastWQEReached comes when a QP with an SRQ goes to ERR, and what is posted
// stays for the others.
func TestLastWQEReached(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	hub := seatOn(t, w.devs[1], engine.QPInit{})
	srq := newSRQ(t, hub, 3, engine.SRQInit{})
	a := seatOn(t, w.devs[0], engine.QPInit{})
	b := seatIn(t, hub.pd, w.devs[1], engine.QPInit{SRQ: srq})
	join(t, a, b, engine.ConnectOptions{})
	if err := b.qp.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState); err != nil {
		t.Fatal(err)
	}
	want := engine.AsyncEvent{Type: roce.EventQPLastWQEReached, QP: b.qp}
	if e := w.event(w.devs[1]); e != want {
		t.Errorf("event %+v", e)
	}
	if _, posted := srq.Query(); posted != 3 {
		t.Errorf("%d receives are left of 3", posted)
	}
}

// An xrcPair is the two ends of an XRC: an XRC_SEND, and an XRC_RECV whose domain
// has two SRQs.
type xrcPair struct {
	domain *engine.XRCD
	a, b   *seat
	srqs   [2]*engine.SRQ
	cqs    [2]*engine.CQ
}

func newXRCPair(t *testing.T, w *world) *xrcPair {
	t.Helper()
	x := &xrcPair{domain: w.devs[1].OpenXRCD()}
	x.a = seatOn(t, w.devs[0], engine.QPInit{Type: roce.TypeXRCSend})
	x.b = seatOn(t, w.devs[1], engine.QPInit{Type: roce.TypeXRCRecv, XRCD: x.domain})
	for i := range x.srqs {
		var err error
		if x.cqs[i], err = w.devs[1].CreateCQ(64); err != nil {
			t.Fatal(err)
		}
		x.srqs[i] = newSRQ(t, x.b, 0, engine.SRQInit{XRCD: x.domain, CQ: x.cqs[i]})
		for r := range 3 {
			postShared(t, x.srqs[i], x.b, 3*i+r)
		}
	}
	join(t, x.a, x.b, engine.ConnectOptions{})
	return x
}

// TestXRC has one XRC_SEND reach two SRQs of a domain, and memory by WRITE, READ
// and atomics.
func TestXRC(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		x := newXRCPair(t, w)
		for i := range 6 {
			size := []int{0, 5000, 8192}[i%3]
			for j := range size {
				x.a.mr.Bytes()[j] = byte(i + j)
			}
			wr := writeTo(x.a, x.b, roce.OpSendImm, size)
			wr.RemoteSRQN = x.srqs[i/3].SRQN()
			x.a.send(t, wr)
			w.succeed(x.a.cq, 1)
			wc := w.succeed(x.cqs[i/3], 1)[0]
			if wc.WRID != uint64(i) || wc.QPN != x.b.qp.QPN() || wc.Imm != wr.Imm ||
				int(wc.ByteLen) != size ||
				!bytes.Equal(x.b.mr.Bytes()[i<<13:][:size], x.a.mr.Bytes()[:size]) {
				t.Errorf("message %d: %+v", i, wc)
			}
		}
		for _, op := range []roce.Opcode{roce.OpWrite, roce.OpRead, roce.OpFetchAdd} {
			size := 9000
			if op == roce.OpFetchAdd {
				size = 8
			}
			wr := writeTo(x.a, x.b, op, size)
			wr.RemoteSRQN = x.srqs[0].SRQN()
			x.a.send(t, wr)
			w.succeed(x.a.cq, 1)
			if !bytes.Equal(x.b.mr.Bytes()[:size], x.a.mr.Bytes()[:size]) {
				t.Errorf("%s: data differs", op)
			}
		}
	})
}

// TestXRCRefuses a request for an SRQ that is not of the domain.
func TestXRCRefuses(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	x := newXRCPair(t, w)
	other := newSRQ(t, x.b, 1, engine.SRQInit{XRCD: w.devs[1].OpenXRCD(), CQ: x.cqs[0]})
	wr := writeTo(x.a, x.b, roce.OpSend, 10)
	wr.RemoteSRQN = other.SRQN()
	x.a.send(t, wr)
	if wc := w.take(x.a.cq, 1)[0]; wc.Status != roce.StatusRemInvReqErr {
		t.Errorf("%s", wc.Status)
	}
}

// TestXRCSharedQueueCloses in the middle of a message: the peer is refused, and
// nothing comes to the completion channel of the CQ that was closed with it.
func TestXRCSharedQueueCloses(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{Rate: 1_000_000_000}, engine.Options{})
	channel := newChannel(t, w.devs[1])
	domain := w.devs[1].OpenXRCD()
	a := seatOn(t, w.devs[0], engine.QPInit{Type: roce.TypeXRCSend})
	b := seatOn(t, w.devs[1], engine.QPInit{Type: roce.TypeXRCRecv, XRCD: domain})
	cq, err := w.devs[1].CreateCQ(8, engine.OnChannel(channel))
	if err != nil {
		t.Fatal(err)
	}
	srq, err := w.devs[1].CreateSRQ(b.pd, engine.SRQInit{XRCD: domain, CQ: cq})
	if err != nil {
		t.Fatal(err)
	}
	err = srq.PostRecv(&roce.RecvWR{SGList: []roce.SGE{b.mr.SGE(0, 1<<17)}})
	if err != nil {
		t.Fatal(err)
	}
	join(t, a, b, engine.ConnectOptions{})
	cq.Arm(false)
	wr := writeTo(a, b, roce.OpSend, 100_000)
	wr.RemoteSRQN = srq.SRQN()
	a.send(t, wr)
	w.run(func() bool { return counterOf(t, w.devs[1], "rcvd_pkts") == 3 })
	if err := errors.Join(srq.Close(), cq.Close(), channel.Close()); err != nil {
		t.Fatal(err)
	}
	if wc := w.take(a.cq, 1)[0]; wc.Status != roce.StatusRemInvReqErr {
		t.Errorf("the sender has %s", wc.Status)
	}
	if state := b.qp.State(); state != roce.StateErr {
		t.Errorf("the receiver is in %s", state)
	}
}
