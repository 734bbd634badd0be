package cm_test

import (
	"testing"

	"xroce/roce/cm"
)

// TestDroppedAfterPatience drops a request whose peer was asked for patience: it would
// not ask again for a minute, so it is told.
func TestDroppedAfterPatience(t *testing.T) {
	r := newRig(t, cm.Config{MaxHalfOpen: 1})
	r.listen()
	id := r.requested()
	r.give(r.req())
	r.want(theirTID, &cm.MRA{
		LocalCommID: uint32(id), RemoteCommID: theirID, ServiceTimeout: 24,
	})
	req := r.req()
	req.LocalCommID++
	req.LocalQPN++
	r.give(req)
	r.want(theirTID, ourREJ(id, theirID, cm.SubjectREQ, cm.ReasonNoResources))
	r.event(cm.EventUnreachable)
	r.event(cm.EventTimewaitExit)
	r.event(cm.EventConnectRequest)
}
