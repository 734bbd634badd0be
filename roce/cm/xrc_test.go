package cm_test

import (
	"testing"

	"xroce/roce/cm"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// xrcService is what the examples of librdmacm use for XRC (rdma_xserver).
var xrcService = cm.ServiceIDOf(cm.PortSpaceIB, port)

// TestConnectXRC is the end that sends: its REQ and the REP to it are those of Linux, which
// leaves out what only a responder, or a requester, has.
func TestConnectXRC(t *testing.T) {
	for _, bad := range []bool{false, true} {
		r := newRig(t, cm.Config{})
		id, err := r.m.Connect(r.now, cm.Connect{
			Path: r.path, Service: xrcService, SrcPort: 7, Transport: cm.TransportXRC,
			QPN: ourQPN, PSN: ourPSN, PathMTU: wire.MTU1024, ResponderRes: 4, InitiatorDepth: 5,
			RetryCount: 6, RNRRetryCount: 7, SRQ: true,
		})
		must(t, err)
		mad := make([]byte, cm.MADLen)
		r.m.NextMAD(mad)
		q, err := cm.ParseREQ(mad)
		must(t, err)
		if q.Transport != cm.TransportExtended || q.ExtendedTransport != cm.ExtendedXRC ||
			q.LocalQPN != ourQPN || q.InitiatorDepth != 5 || q.ServiceID != xrcService {
			t.Errorf("REQ %+v", q)
		}
		if q.ResponderRes != 0 || q.RetryCount != 0 || q.RNRRetryCount != 0 || q.SRQ {
			t.Errorf("a REQ of XRC_SEND says what it receives: %+v", q)
		}
		answer := rep(id)
		answer.LocalQPN, answer.LocalEECN, answer.SRQ = 0, theirQPN, true
		answer.InitiatorDepth = 0
		if bad {
			answer.LocalQPN, answer.LocalEECN = theirQPN, 0
		}
		r.give(answer)
		if bad {
			r.event(cm.EventRejected)
			continue
		}
		p := r.event(cm.EventConnectResponse).Params
		if p.DestQPN != theirQPN || p.MaxRdAtomic != 3 || p.RetryCnt != 6 || p.RNRRetry != 5 ||
			!p.SRQ {
			t.Errorf("%+v", p)
		}
		_, rtr := p.RTR(verbs.TypeXRCSend, wire.Path{})
		_, rts := p.RTS(verbs.TypeXRCSend)
		for state, m := range map[verbs.State]verbs.AttrMask{
			verbs.StateInit: rtr, verbs.StateRTR: rts,
		} {
			must(t, verbs.CheckTransition(verbs.TypeXRCSend, state, state+1, m))
		}
		must(t, r.m.Establish(id, nil))
		r.m.NextMAD(mad)
		must(t, r.m.Disconnect(r.now, id, nil))
		r.m.NextMAD(mad)
		if d, _ := cm.ParseDREQ(mad); d.RemoteQPN != theirQPN {
			t.Errorf("DREQ %+v", d)
		}
	}
}

// TestAcceptXRC is the end that receives.
func TestAcceptXRC(t *testing.T) {
	r := newRig(t, cm.Config{})
	_, err := r.m.Listen(cm.Listen{Service: xrcService, Transport: cm.TransportXRC})
	must(t, err)
	req := r.req()
	req.ServiceID, req.Transport, req.ExtendedTransport = xrcService, cm.TransportExtended, 2
	r.give(req) // some other extended transport
	r.want(theirTID, ourREJ(0, theirID, cm.SubjectREQ, cm.ReasonInvalidTransport))
	req.ExtendedTransport = cm.ExtendedXRC
	req.ResponderRes, req.RetryCount, req.RNRRetryCount = 0, 0, 0
	r.give(req)
	e := r.event(cm.EventConnectRequest)
	if e.Transport != cm.TransportXRC || e.Params.DestQPN != theirQPN ||
		e.Params.MaxDestRdAtomic != 5 || e.Params.MaxRdAtomic != 0 {
		t.Errorf("event %+v", e)
	}
	_, rtr := e.Params.RTR(verbs.TypeXRCRecv, wire.Path{})
	_, rts := e.Params.RTS(verbs.TypeXRCRecv)
	for state, m := range map[verbs.State]verbs.AttrMask{
		verbs.StateInit: rtr, verbs.StateRTR: rts,
	} {
		must(t, verbs.CheckTransition(verbs.TypeXRCRecv, state, state+1, m))
	}
	must(t, r.m.Accept(r.now, e.ID, cm.Accept{
		QPN: ourQPN, PSN: ourPSN, ResponderRes: 5, InitiatorDepth: 4, RNRRetryCount: 7,
		FlowControl: true,
	}))
	r.want(theirTID, &cm.REP{
		LocalCommID: uint32(e.ID), RemoteCommID: theirID, LocalEECN: ourQPN, StartingPSN: ourPSN,
		ResponderRes: 5, RNRRetryCount: 7, SRQ: true, LocalCAGUID: ourGUID,
	})
	r.give(rtu(e.ID))
	r.event(cm.EventEstablished)
	r.give(theirDREQ(e.ID))
	r.event(cm.EventDisconnected)
}
