package cm_test

import (
	"slices"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// FuzzMachine drives a machine with bytes: they choose messages of a peer that
// knows all IDs and changes any byte, calls of the program, and time. Nothing may
// panic, what is held stays bounded, events come in order, and when the program
// hangs up and time passes nothing is left.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{0x00, 0x20, 0x30, 0x81, 0x83, 0x40, 0x50})
	f.Add([]byte{0x80, 0x00, 0x10, 0x84, 0x00, 0x85, 0x00, 0x60, 0xff, 0x86})
	f.Add([]byte{0x87, 0x00, 0x01, 0x88, 0x00, 0x02, 0x89, 0x00, 0x03, 0x8a, 0x00, 0x04})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 4096 {
			return
		}
		z := &fuzzed{rig: newRig(t, cm.Config{
			MaxHalfOpen: 4, MaxConnections: 16, MaxOutbox: 8,
		}), last: map[cm.ID]cm.EventType{}, script: script}
		z.listen()
		_, err := z.m.Listen(cm.Listen{Service: datagrams, Datagram: true, Backlog: 3})
		must(t, err)
		for len(z.script) > 0 {
			z.step(z.next())
			z.drain()
		}
		z.finish()
	})
}

type fuzzed struct {
	*rig
	script []byte
	ids    []cm.ID // all that were seen
	asked  []cm.ID // SIDR requests
	last   map[cm.ID]cm.EventType
}

// next takes a byte of the script, 0 when it is over.
func (z *fuzzed) next() byte {
	if len(z.script) == 0 {
		return 0
	}
	b := z.script[0]
	z.script = z.script[1:]
	return b
}

// id chooses one of the IDs that were seen.
func (z *fuzzed) id() cm.ID {
	if n := len(z.ids); n > 0 {
		return z.ids[int(z.next())%n]
	}
	return cm.ID(z.next())
}

func (z *fuzzed) step(op byte) {
	private := make([]byte, op&3)
	switch op >> 4 {
	case 0:
		id, err := z.m.Connect(z.now, cm.Connect{
			Path: z.path, Service: service, QPN: uint32(z.next()), PathMTU: wire.MTU256,
			AckTimeout: z.next() & 31, Private: private,
		})
		if err == nil {
			z.ids = append(z.ids, id)
		}
	case 1:
		_ = z.m.Accept(z.now, z.id(), cm.Accept{QPN: uint32(z.next()), Private: private})
	case 2:
		_ = z.m.Establish(z.id(), private)
	case 3:
		_ = z.m.Disconnect(z.now, z.id(), private)
	case 4:
		_ = z.m.Reject(z.now, z.id(), cm.ReasonConsumer, nil, private)
	case 5:
		_ = z.m.CommEst(z.id())
	case 6:
		if id, err := z.m.Lookup(z.now, cm.Lookup{Path: z.path, Service: datagrams}); err == nil {
			z.ids = append(z.ids, id)
		}
	case 7:
		z.pass(clock.Time(z.next()) * 100 * clock.Millisecond)
	default:
		z.message(op)
	}
}

// message gives the machine a message of the peer.
func (z *fuzzed) message(op byte) {
	var m putter
	theirs := uint32(theirID) + uint32(z.next()&3)
	ours := uint32(z.id())
	switch cm.AttributeREQ + cm.Attribute(op&0xf) {
	case cm.AttributeREQ:
		req := z.req()
		req.LocalCommID, req.LocalQPN = theirs, theirQPN+uint32(z.next()&7)
		m = req
	case cm.AttributeMRA:
		m = &cm.MRA{LocalCommID: theirs, RemoteCommID: ours, Subject: cm.Subject(z.next() & 3)}
	case cm.AttributeREJ:
		m = &cm.REJ{
			LocalCommID: theirs, RemoteCommID: ours, Reason: cm.Reason(z.next()),
			InfoLen: 8, Info: [cm.InfoREJ]byte{7: theirGUID},
		}
	case cm.AttributeREP:
		m = &cm.REP{
			LocalCommID: theirs, RemoteCommID: ours, LocalQPN: theirQPN + uint32(z.next()&7),
			LocalCAGUID: theirGUID,
		}
	case cm.AttributeRTU:
		m = &cm.RTU{LocalCommID: theirs, RemoteCommID: ours}
	case cm.AttributeDREQ:
		m = &cm.DREQ{LocalCommID: theirs, RemoteCommID: ours, RemoteQPN: uint32(z.next())}
	case cm.AttributeDREP:
		m = &cm.DREP{LocalCommID: theirs, RemoteCommID: ours}
	case cm.AttributeSIDRREQ:
		req := sidrREQ()
		req.RequestID = theirs
		m = req
	case cm.AttributeSIDRREP:
		m = &cm.SIDRREP{RequestID: ours, QPN: uint32(z.next())}
	case cm.AttributeLAP:
		m = &cm.LAP{LocalCommID: theirs, RemoteCommID: ours, RemoteQPN: uint32(z.next())}
	default:
		for _, id := range z.asked {
			_ = z.m.RespondSIDR(z.now, id, cm.SIDRResponse{QPN: uint32(z.next())})
		}
		return
	}
	mad := make([]byte, cm.MADLen)
	m.Put(mad, theirTID)
	if op&0x40 != 0 { // change a byte
		mad[z.next()] ^= z.next()
	}
	from := z.path
	if op&0x30 == 0x30 { // from elsewhere
		from.Remote[15] ^= 1
	}
	z.m.HandleMAD(z.now, from, mad)
}

// drain takes what the machine has to send and to tell, and checks it.
func (z *fuzzed) drain() {
	z.T.Helper()
	for e, ok := z.m.NextEvent(); ok; e, ok = z.m.NextEvent() {
		before, known := z.last[e.ID]
		switch {
		case known && (before == cm.EventTimewaitExit || before == cm.EventSIDRResponse):
			z.T.Fatalf("%s of 0x%x after %s", e.Type, e.ID, before)
		case known && e.Type == cm.EventConnectRequest:
			z.T.Fatalf("a request 0x%x after %s", e.ID, before)
		}
		if !slices.Contains(z.ids, e.ID) {
			z.ids = append(z.ids, e.ID)
		}
		if e.Type == cm.EventSIDRRequest {
			z.asked = append(z.asked, e.ID)
		}
		z.last[e.ID] = e.Type
	}
	mad := make([]byte, cm.MADLen)
	for to, ok := z.m.NextMAD(mad); ok; to, ok = z.m.NextMAD(mad) {
		h, err := cm.ParseHeader(mad)
		must(z.T, err)
		if h != cm.MessageHeader(h.Attribute, h.TID) || codecFor(h.Attribute) == nil ||
			to.Local != z.path.Local {
			z.T.Fatalf("sends %s from %s", h, to.Local)
		}
	}
	usage := z.m.Usage()
	if usage.HalfOpen > 4 || usage.Connections > 16 || usage.Lookups > 16+4 {
		z.T.Fatalf("holds %+v", usage)
	}
}

// finish hangs up, and lets time pass.
func (z *fuzzed) finish() {
	z.T.Helper()
	for _, id := range z.ids {
		_ = z.m.Disconnect(z.now, id, nil)
	}
	for range 100 {
		z.pass(60 * clock.Second)
		z.drain()
	}
	z.gone()
	for id, last := range z.last {
		switch last {
		case cm.EventTimewaitExit, cm.EventSIDRResponse:
		case cm.EventUnreachable, cm.EventSIDRRequest: // of lookups
			if err := z.m.CancelLookup(id); err == nil {
				z.T.Fatalf("lookup 0x%x is still there", id)
			}
		default:
			z.T.Fatalf("the last of 0x%x is %s", id, last)
		}
	}
}
