package cm_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// TestCapturedConversations plays either host of every captured conversation: the
// machine must send the same MADs, byte for byte. It is given what is a host's own
// to choose: communication IDs and the upper half of transaction IDs, GUID, QP
// numbers, PSNs, ports, private data, ACK delay, and what the program asked for
// with rdma_connect and rdma_accept. All else, and when to send what, is its own.
func TestCapturedConversations(t *testing.T) {
	for _, name := range captureNames(t) {
		// A name with ".B" is what host B saw of a conversation with losses.
		whole, second := strings.CutSuffix(name, ".B")
		first := capture(t, whole)[0].path
		list := capture(t, name)
		if !second {
			t.Run(name+" A", func(t *testing.T) { newReplay(t, list, first.Local).run() })
		}
		if second || !slices.Contains(captureNames(t), name+".B") {
			t.Run(whole+" B", func(t *testing.T) { newReplay(t, list, first.Remote).run() })
		}
	}
}

// A replay is a machine in the place of one host of a capture.
type replay struct {
	*testing.T
	list []datagram
	us   wire.GID
	m    *cm.Machine
	now  clock.Time
	ids  []uint64 // those that this host drew
	conn cm.ID    // what the last event was about
}

func newReplay(t *testing.T, list []datagram, us wire.GID) *replay {
	t.Helper()
	r := &replay{T: t, list: list, us: us}
	c := cm.Config{Rand: r, AckDelay: 15, PacketLifeTime: 16}
	for _, d := range list {
		h, err := cm.ParseHeader(d.mad)
		must(t, err)
		c.Agent = uint32(h.TID >> 32)
		if d.path.Local != us {
			continue
		}
		var id uint32
		switch h.Attribute {
		case cm.AttributeREQ:
			q, _ := cm.ParseREQ(d.mad)
			id, c.CAGUID = q.LocalCommID, q.LocalCAGUID
		case cm.AttributeREP:
			q, _ := cm.ParseREP(d.mad)
			id, c.CAGUID = q.LocalCommID, q.LocalCAGUID
		case cm.AttributeREJ:
			q, _ := cm.ParseREJ(d.mad)
			id = q.LocalCommID
		case cm.AttributeMRA:
			q, _ := cm.ParseMRA(d.mad)
			id = q.LocalCommID
		case cm.AttributeSIDRREQ:
			q, _ := cm.ParseSIDRREQ(d.mad)
			id = q.RequestID
		}
		if n := len(r.ids); id != 0 && (n == 0 || r.ids[n-1] != uint64(id)) {
			r.ids = append(r.ids, uint64(id))
		}
	}
	m, err := cm.New(c)
	must(t, err)
	r.m = m
	r.listen()
	return r
}

// Uint64 draws what the host drew.
func (r *replay) Uint64() uint64 {
	if len(r.ids) == 0 {
		return 1 // an ID that is in no message
	}
	id := r.ids[0]
	r.ids = r.ids[1:]
	return id
}

// listen listens as the host did: to all that it did not answer with "nobody
// listens".
func (r *replay) listen() {
	deaf := map[cm.ServiceID]bool{}
	asked := map[cm.ServiceID]bool{} // and whether for datagrams
	var last cm.ServiceID
	for _, d := range r.list {
		h, _ := cm.ParseHeader(d.mad)
		switch h.Attribute {
		case cm.AttributeREQ:
			q, _ := cm.ParseREQ(d.mad)
			last = q.ServiceID
			asked[last] = false
		case cm.AttributeSIDRREQ:
			q, _ := cm.ParseSIDRREQ(d.mad)
			asked[q.ServiceID] = true
		case cm.AttributeREJ:
			q, _ := cm.ParseREJ(d.mad)
			deaf[last] = q.Reason == cm.ReasonInvalidServiceID
		case cm.AttributeSIDRREP:
			q, _ := cm.ParseSIDRREP(d.mad)
			deaf[q.ServiceID] = q.Status == cm.SIDRUnsupported
		}
	}
	for s, datagram := range asked {
		if !deaf[s] {
			_, err := r.m.Listen(cm.Listen{Service: s, Datagram: datagram})
			must(r.T, err)
		}
	}
}

func (r *replay) run() {
	r.T.Helper()
	mad := make([]byte, cm.MADLen)
	for i, d := range r.list {
		if d.path.Remote == r.us {
			from := d.path
			from.Local, from.Remote = from.Remote, from.Local
			r.m.HandleMAD(r.now, from, d.mad)
			continue
		}
		h, _ := cm.ParseHeader(d.mad)
		to, ok := r.m.NextMAD(mad)
		if !ok {
			r.act(h, d)
			to, ok = r.m.NextMAD(mad)
		}
		if !ok {
			r.T.Fatalf("MAD %d: %s was sent, we send nothing", i, h.Attribute)
		}
		if to.Remote != d.path.Remote || to.Local != d.path.Local {
			r.T.Errorf("MAD %d: to %+v, want %+v", i, to, d.path)
		}
		if !bytes.Equal(mad, d.mad) {
			r.T.Fatalf("MAD %d, %s:\n%x, want\n%x", i, h.Attribute, mad, d.mad)
		}
	}
	if to, ok := r.m.NextMAD(mad); ok {
		h, _ := cm.ParseHeader(mad)
		r.T.Errorf("we send %s to %s and more", h.Attribute, to.Remote)
	}
}

// act does what makes the machine send a message that it does not send by itself:
// the program's call, if there is one to make, else time passes.
func (r *replay) act(h cm.Header, d datagram) {
	r.T.Helper()
	for e, ok := r.m.NextEvent(); ok; e, ok = r.m.NextEvent() {
		if e.Type != cm.EventTimewaitExit {
			r.conn = e.ID
		}
	}
	state := r.m.State(r.conn)
	switch h.Attribute {
	case cm.AttributeREQ:
		if r.conn == 0 || state == cm.StateGone {
			r.connect(d)
			return
		}
	case cm.AttributeREP:
		if state == cm.StateREQRcvd || state == cm.StateMRAREQSent {
			r.accept(d)
			return
		}
	case cm.AttributeREJ:
		q, _ := cm.ParseREJ(d.mad)
		must(r.T, r.m.Reject(r.now, r.conn, q.Reason, nil, q.Private[:]))
		return
	case cm.AttributeRTU:
		must(r.T, r.m.Establish(r.conn, nil))
		return
	case cm.AttributeDREQ:
		if state == cm.StateEstablished {
			must(r.T, r.m.Disconnect(r.now, r.conn, nil))
			return
		}
	case cm.AttributeSIDRREQ:
		q, _ := cm.ParseSIDRREQ(d.mad)
		header, err := cm.ParseIPHeader(q.Private[:])
		must(r.T, err)
		_, err = r.m.Lookup(r.now, cm.Lookup{
			Path: d.path, Service: q.ServiceID, SrcPort: header.Src.Port(),
			Private: q.Private[cm.IPHeaderLen:],
		})
		must(r.T, err)
		return
	case cm.AttributeSIDRREP:
		q, _ := cm.ParseSIDRREP(d.mad)
		must(r.T, r.m.RespondSIDR(r.now, r.conn, cm.SIDRResponse{
			Status: q.Status, QPN: q.QPN, QKey: q.QKey, Private: q.Private[:],
		}))
		return
	}
	at, ok := r.m.NextDeadline()
	if !ok {
		r.T.Fatalf("%s was sent again, we wait for nothing", h.Attribute)
	}
	r.now = at
	r.m.HandleDeadline(at)
}

func (r *replay) connect(d datagram) {
	r.T.Helper()
	q, _ := cm.ParseREQ(d.mad)
	header, err := cm.ParseIPHeader(q.Private[:])
	must(r.T, err)
	d.path.FlowLabel = 0 // that of Linux follows from the ports
	r.conn, err = r.m.Connect(r.now, cm.Connect{
		Path: d.path, Service: q.ServiceID, SrcPort: header.Src.Port(), QPN: q.LocalQPN,
		PSN: q.StartingPSN, PathMTU: q.PathMTU, ResponderRes: q.ResponderRes,
		InitiatorDepth: q.InitiatorDepth, RetryCount: q.RetryCount,
		RNRRetryCount: q.RNRRetryCount, FlowControl: q.FlowControl, SRQ: q.SRQ,
		Private: q.Private[cm.IPHeaderLen:],
	})
	must(r.T, err)
}

func (r *replay) accept(d datagram) {
	r.T.Helper()
	q, _ := cm.ParseREP(d.mad)
	must(r.T, r.m.Accept(r.now, r.conn, cm.Accept{
		QPN: q.LocalQPN, PSN: q.StartingPSN, ResponderRes: q.ResponderRes,
		InitiatorDepth: q.InitiatorDepth, RNRRetryCount: q.RNRRetryCount,
		FlowControl: q.FlowControl, SRQ: q.SRQ, Private: q.Private[:],
	}))
}
