package cm_test

import (
	"errors"
	"net/netip"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/cm"
)

// lookup asks for a datagram service of theirs and returns the SIDR_REQ.
func (r *rig) lookup() (cm.ID, *cm.SIDRREQ) {
	r.T.Helper()
	id, err := r.m.Lookup(r.now, cm.Lookup{
		Path: r.path, Service: datagrams, SrcPort: 7, Private: []byte("hello"),
	})
	must(r.T, err)
	req := &cm.SIDRREQ{RequestID: uint32(id), PKey: 0xffff, ServiceID: datagrams}
	cm.IPHeader{Src: netip.AddrPortFrom(ourAddr, 7), Dst: theirAddr}.Put(req.Private[:])
	copy(req.Private[cm.IPHeaderLen:], "hello")
	r.want(tidOf(id), req)
	return id, req
}

// sidrREQ is a question of theirs.
func sidrREQ() *cm.SIDRREQ {
	req := &cm.SIDRREQ{RequestID: 0x77, PKey: 0xffff, ServiceID: datagrams}
	cm.IPHeader{Src: netip.AddrPortFrom(theirAddr, theirPort), Dst: ourAddr}.Put(req.Private[:])
	copy(req.Private[cm.IPHeaderLen:], "hello")
	return req
}

// TestLookup asks for a datagram service.
func TestLookup(t *testing.T) {
	t.Run("answered", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		id, req := r.lookup()
		r.pass(repTime)
		r.want(tidOf(id), req)
		answer := &cm.SIDRREP{
			RequestID: uint32(id), QPN: theirQPN, QKey: cm.QKeyUDP, ServiceID: datagrams,
			InfoLen: 200,
		}
		copy(answer.Private[:], "here")
		r.path.Remote[15]++
		r.give(answer) // from elsewhere
		r.silent()
		r.counted(cm.DropWrongSource, 1)
		r.path.Remote[15]--
		r.give(answer)
		e := r.event(cm.EventSIDRResponse)
		if e.ID != id || e.Status != cm.SIDRSuccess || e.QPN != theirQPN ||
			e.QKey != cm.QKeyUDP || string(e.Private[:5]) != "here\x00" ||
			len(e.Private) != cm.PrivateSIDRREP || len(e.Info) != cm.InfoSIDRREP {
			t.Errorf("event %+v", e)
		}
		r.gone()
		r.give(answer)
		r.gone()
	})
	t.Run("refused", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		id, _ := r.lookup()
		r.give(&cm.SIDRREP{RequestID: uint32(id), Status: cm.SIDRUnsupported})
		if e := r.event(cm.EventSIDRResponse); e.Status != cm.SIDRUnsupported {
			t.Errorf("event %+v", e)
		}
		r.gone()
	})
	t.Run("never answered", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		id, req := r.lookup()
		for range 15 {
			r.pass(repTime)
			r.want(tidOf(id), req)
		}
		r.pass(repTime)
		r.event(cm.EventUnreachable)
		r.gone()
	})
	t.Run("cancelled", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		id, _ := r.lookup()
		must(t, r.m.CancelLookup(id))
		r.gone()
	})
}

// asked makes a SIDR request that waits for its answer, of two that may wait.
func asked(t *testing.T) (*rig, cm.ID) {
	t.Helper()
	r := newRig(t, cm.Config{MaxHalfOpen: 2})
	_, err := r.m.Listen(cm.Listen{Service: datagrams, Datagram: true})
	must(t, err)
	r.give(sidrREQ())
	e := r.event(cm.EventSIDRRequest)
	if e.IP.Src.Addr() != theirAddr || len(e.Private) != 180 ||
		string(e.Private[:6]) != "hello\x00" {
		t.Errorf("event %+v", e)
	}
	r.give(sidrREQ()) // again
	r.silent()
	r.give(&cm.SIDRREP{RequestID: uint32(e.ID)}) // this is no question of ours
	r.silent()
	return r, e.ID
}

// TestRespondSIDR answers SIDR requests of peers.
func TestRespondSIDR(t *testing.T) {
	t.Run("yes", func(t *testing.T) {
		r, id := asked(t)
		err := r.m.RespondSIDR(r.now, id, cm.SIDRResponse{QPN: 1 << 24})
		if !errors.Is(err, cm.ErrInvalid) {
			t.Error(err)
		}
		must(t, r.m.RespondSIDR(r.now, id, cm.SIDRResponse{
			QPN: ourQPN, QKey: cm.QKeyUDP, Private: []byte("here"),
		}))
		want := &cm.SIDRREP{
			RequestID: 0x77, QPN: ourQPN, QKey: cm.QKeyUDP, ServiceID: datagrams,
		}
		copy(want.Private[:], "here")
		r.want(theirTID, want)
		r.give(sidrREQ()) // the answer was lost
		r.want(theirTID, want)
		r.silent()
		err = r.m.RespondSIDR(r.now, id, cm.SIDRResponse{QPN: ourQPN})
		if !errors.Is(err, cm.ErrUnknown) || !errors.Is(r.m.CancelLookup(id), cm.ErrUnknown) {
			t.Error(err)
		}
		r.forgets()
		r.give(sidrREQ())
		r.event(cm.EventSIDRRequest)
	})
	t.Run("no", func(t *testing.T) {
		r, id := asked(t)
		must(t, r.m.RespondSIDR(r.now, id, cm.SIDRResponse{
			Status: cm.SIDRReject, QPN: ourQPN, QKey: 1,
		}))
		r.want(theirTID, &cm.SIDRREP{
			RequestID: 0x77, Status: cm.SIDRReject, ServiceID: datagrams,
		})
		r.forgets()
	})
	t.Run("never", func(t *testing.T) {
		r, id := asked(t)
		r.pass(180 * clock.Second)
		if e := r.event(cm.EventUnreachable); e.ID != id || e.Reason != cm.ReasonTimeout {
			t.Errorf("event %+v", e)
		}
		r.gone()
	})
	t.Run("too many", func(t *testing.T) {
		r, id := asked(t)
		req := sidrREQ()
		for range 2 {
			req.RequestID++
			r.give(req)
		}
		r.event(cm.EventSIDRRequest)
		if e := r.event(cm.EventUnreachable); e.ID != id || e.Reason != cm.ReasonNoResources {
			t.Errorf("event %+v", e)
		}
		r.event(cm.EventSIDRRequest)
		r.counted(cm.HalfOpenDropped, 1)
	})
}

// TestRefusedSIDR asks what the machine itself refuses.
func TestRefusedSIDR(t *testing.T) {
	t.Run("nobody listens", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		r.listen()
		req := sidrREQ()
		for _, s := range []cm.ServiceID{datagrams, service} {
			req.ServiceID = s
			r.give(req)
			r.want(theirTID, &cm.SIDRREP{
				RequestID: 0x77, Status: cm.SIDRUnsupported, ServiceID: s,
			})
		}
		r.gone()
		r.counted(cm.NoListener, 2)
	})
	t.Run("of another partition", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		_, err := r.m.Listen(cm.Listen{Service: datagrams, Datagram: true})
		must(t, err)
		req := sidrREQ()
		req.PKey = 0x8001
		r.give(req)
		r.want(theirTID, &cm.SIDRREP{
			RequestID: 0x77, Status: cm.SIDRReject, ServiceID: datagrams,
		})
		r.gone()
		r.counted(cm.RequestsRefused, 1)
		req.PKey = 0x7fff // a limited member of ours
		r.give(req)
		r.event(cm.EventSIDRRequest)
	})
	t.Run("forged", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		_, err := r.m.Listen(cm.Listen{Service: datagrams, Datagram: true})
		must(t, err)
		req := sidrREQ()
		req.Private[19]++
		r.give(req)
		r.want(theirTID, &cm.SIDRREP{
			RequestID: 0x77, Status: cm.SIDRReject, ServiceID: datagrams,
		})
		r.gone()
		r.counted(cm.RequestsRefused, 1)
	})
}

// forgets lets the time pass in which a response is kept for a request that comes again.
func (r *rig) forgets() {
	r.T.Helper()
	r.pass(2*repTime - 1)
	if r.m.Usage().Lookups != 1 {
		r.T.Error("the response is forgotten early")
	}
	r.pass(1)
	r.gone()
}

// TestWrongSIDRREP takes responses that name no QP that datagrams can go to, and drops one
// about another service.
func TestWrongSIDRREP(t *testing.T) {
	for _, qpn := range []uint32{0, 1, 0xffffff} {
		r := newRig(t, cm.Config{})
		id, req := r.lookup()
		rep := &cm.SIDRREP{RequestID: uint32(id), ServiceID: req.ServiceID + 1, QPN: ourQPN}
		r.give(rep)
		r.silent()
		r.counted(cm.DropUnknown, 1)
		rep.ServiceID, rep.QPN = req.ServiceID, qpn
		r.give(rep)
		if e := r.event(cm.EventSIDRResponse); e.Status != cm.SIDRNoQP {
			t.Errorf("QPN %x: %s", qpn, e.Status)
		}
		r.gone()
	}
}

// TestRepeatedSIDR asks with a request ID again, for something else, and keeps few answers.
func TestRepeatedSIDR(t *testing.T) {
	t.Run("ID used anew", func(t *testing.T) {
		r, id := asked(t)
		r.giveTID(1, sidrREQ()) // before there was an answer
		if e := r.event(cm.EventUnreachable); e.ID != id {
			t.Errorf("%d makes room, want %d", e.ID, id)
		}
		id = r.event(cm.EventSIDRRequest).ID
		must(t, r.m.RespondSIDR(r.now, id, cm.SIDRResponse{Status: cm.SIDRReject}))
		r.want(1, &cm.SIDRREP{RequestID: 0x77, Status: cm.SIDRReject, ServiceID: datagrams})
		r.giveTID(2, sidrREQ()) // after it
		if e := r.event(cm.EventSIDRRequest); e.ID == id {
			t.Error("it is the same request")
		}
	})
	t.Run("many answered", func(t *testing.T) {
		r, id := asked(t)
		req := sidrREQ()
		for range 20 {
			must(t, r.m.RespondSIDR(r.now, id, cm.SIDRResponse{Status: cm.SIDRReject}))
			r.want(theirTID, &cm.SIDRREP{
				RequestID: req.RequestID, Status: cm.SIDRReject, ServiceID: datagrams,
			})
			req.RequestID++
			r.give(req)
			id = r.event(cm.EventSIDRRequest).ID
		}
		if held := r.m.Usage().Lookups; held > 3 {
			t.Errorf("%d requests are remembered", held)
		}
	})
}
