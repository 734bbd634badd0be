package cm_test

import (
	"errors"
	"testing"

	"xroce/roce/cm"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

const both = verbs.ExtSelectiveRepeat | verbs.ExtReorderWindow

// TestOfferExtensions offers extensions: the REP of one of our own says which are used, that
// of anybody else none, and one that wants more than was offered is refused.
func TestOfferExtensions(t *testing.T) {
	for _, tt := range []struct {
		vendor, options uint32
		want            verbs.Extensions
		refused         bool
	}{
		{0, 0, 0, false},
		{0x15b3, 1, 0, false},
		{cm.VendorID, 0, 0, false},
		{cm.VendorID, 1, verbs.ExtSelectiveRepeat, false},
		{cm.VendorID, 0xffff0001, verbs.ExtSelectiveRepeat, false}, // of later versions
		{cm.VendorID, 2, 0, true},
		{cm.VendorID, 3, 0, true},
	} {
		r := newRig(t, cm.Config{})
		id, err := r.m.Connect(r.now, cm.Connect{
			Path: r.path, Service: service, SrcPort: 7, QPN: ourQPN, PSN: ourPSN,
			PathMTU: wire.MTU1024, Extensions: verbs.ExtSelectiveRepeat,
		})
		must(t, err)
		mad := make([]byte, cm.MADLen)
		r.m.NextMAD(mad)
		q, err := cm.ParseREQ(mad)
		must(t, err)
		if q.VendorID != cm.VendorID || q.Options != 1 {
			t.Errorf("vendor %x, options %x", q.VendorID, q.Options)
		}
		answer := rep(id)
		answer.VendorID, answer.Options = tt.vendor, tt.options
		r.give(answer)
		if tt.refused {
			if e := r.event(cm.EventRejected); e.Reason != cm.ReasonVendorOption {
				t.Errorf("%+v: %s", tt, e.Reason)
			}
			continue
		}
		if p := r.event(cm.EventConnectResponse).Params; p.Extensions != tt.want {
			t.Errorf("%+v: %s", tt, p.Extensions)
		}
	}
}

// TestTakeExtensions is offered extensions: the REP says which of them are used.
func TestTakeExtensions(t *testing.T) {
	for _, tt := range []struct {
		vendor, options uint32
		offered         verbs.Extensions
	}{
		{0, 3, 0},
		{0x15b3, 3, 0},
		{cm.VendorID, 0, 0},
		{cm.VendorID, 3, both},
		{cm.VendorID, 0xfffffff2, verbs.ExtReorderWindow},
	} {
		r := newRig(t, cm.Config{})
		r.listen()
		req := r.req()
		req.VendorID, req.Options = tt.vendor, tt.options
		r.give(req)
		e := r.event(cm.EventConnectRequest)
		if e.Params.Extensions != tt.offered {
			t.Errorf("%+v: %s are offered", tt, e.Params.Extensions)
		}
		a := cm.Accept{QPN: ourQPN, PSN: ourPSN, Extensions: both}
		if tt.offered != both {
			if err := r.m.Accept(r.now, e.ID, a); !errors.Is(err, cm.ErrInvalid) {
				t.Errorf("%+v: extensions that nobody offered: %v", tt, err)
			}
		}
		a.Extensions = tt.offered
		must(t, r.m.Accept(r.now, e.ID, a))
		want := &cm.REP{
			LocalCommID: uint32(e.ID), RemoteCommID: theirID, LocalQPN: ourQPN,
			StartingPSN: ourPSN, LocalCAGUID: ourGUID,
		}
		if tt.offered != 0 {
			want.VendorID, want.Options = cm.VendorID, uint32(tt.offered)
		}
		r.want(theirTID, want)
	}
}
