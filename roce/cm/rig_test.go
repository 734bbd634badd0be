package cm_test

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xroce/roce/clock"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// What the scripts of this package talk about. "us" is the machine under test,
// "them" is the test.
const (
	ourGUID   = 0x0a
	theirGUID = 0x0b
	ourQPN    = 0x100
	ourPSN    = wire.PSN(0x111111)
	theirID   = 0xbbbbbbbb
	theirQPN  = 0x200
	theirPSN  = wire.PSN(0x222222)
	port      = 4791
	theirPort = 40000
	theirTID  = 0x0000000277777777

	// The timers that follow from the defaults.
	reqTime  = 2*256*clock.Millisecond + 4096*clock.Millisecond
	repTime  = 4096 * clock.Millisecond
	timewait = 513 * clock.Millisecond
)

var (
	ourAddr   = netip.MustParseAddr("192.0.2.1")
	theirAddr = netip.MustParseAddr("192.0.2.2")
	service   = cm.ServiceIDOf(cm.PortSpaceTCP, port)
	datagrams = cm.ServiceIDOf(cm.PortSpaceUDP, port)
)

// counting is a source of numbers 1, 2, 3.
type counting struct{ n uint64 }

func (c *counting) Uint64() uint64 { c.n++; return c.n }

// A rig is a machine in a script.
type rig struct {
	*testing.T
	m    *cm.Machine
	now  clock.Time
	path cm.Path // from us to them
}

func newRig(t *testing.T, c cm.Config) *rig {
	t.Helper()
	if c.Rand == nil {
		c.Rand = &counting{}
	}
	c.CAGUID = ourGUID
	m, err := cm.New(c)
	must(t, err)
	return &rig{T: t, m: m, path: cm.Path{
		Local: wire.GIDFromAddr(ourAddr), Remote: wire.GIDFromAddr(theirAddr), HopLimit: 64,
	}}
}

// give hands a message of theirs to the machine.
func (r *rig) give(m putter) { r.T.Helper(); r.giveTID(theirTID, m) }

func (r *rig) giveTID(tid uint64, m putter) {
	r.T.Helper()
	mad := make([]byte, cm.MADLen)
	m.Put(mad, tid)
	r.m.HandleMAD(r.now, cm.Path{
		Local: r.path.Local, Remote: r.path.Remote, HopLimit: 9, Via: r.path.Via,
	}, mad)
}

// want takes the next MAD of the machine: it must be this one.
func (r *rig) want(tid uint64, m putter) {
	r.T.Helper()
	want, got := make([]byte, cm.MADLen), make([]byte, cm.MADLen)
	m.Put(want, tid)
	to, ok := r.m.NextMAD(got)
	if !ok {
		r.T.Fatalf("nothing is sent, want %T", m)
	}
	if to != r.path {
		r.T.Errorf("sent to %+v, want %+v", to, r.path)
	}
	if !bytes.Equal(got, want) {
		h, _ := cm.ParseHeader(got)
		sent, _ := codecFor(h.Attribute).parse(got)
		r.T.Fatalf("TID %x, want %x, %s", h.TID, tid, cmp.Diff(m, sent))
	}
}

// silent tests that nothing is sent and nothing happened.
func (r *rig) silent() {
	r.T.Helper()
	mad := make([]byte, cm.MADLen)
	if _, ok := r.m.NextMAD(mad); ok {
		h, _ := cm.ParseHeader(mad)
		r.T.Fatalf("%s is sent", h.Attribute)
	}
	if e, ok := r.m.NextEvent(); ok {
		r.T.Fatalf("%s happened: %+v", e.Type, e)
	}
}

// event takes the next event: it must be of this type.
func (r *rig) event(want cm.EventType) cm.Event {
	r.T.Helper()
	e, ok := r.m.NextEvent()
	if !ok || e.Type != want {
		r.T.Fatalf("event %v %s, want %s", ok, e.Type, want)
	}
	return e
}

// pass lets time pass, and the machine do what is due on the way.
func (r *rig) pass(d clock.Time) {
	r.T.Helper()
	for end := r.now + d; ; {
		at, ok := r.m.NextDeadline()
		if !ok || at > end {
			r.now = end
			return
		}
		if at < r.now {
			r.T.Fatalf("a deadline at %d, it is %d", at, r.now)
		}
		r.now = at
		r.m.HandleDeadline(r.now)
	}
}

// ends lets the time-wait pass: it takes so long, and nothing is left.
func (r *rig) ends() {
	r.T.Helper()
	r.pass(timewait - 1)
	r.silent()
	r.pass(1)
	r.event(cm.EventTimewaitExit)
	r.gone()
}

// gone tests that the machine holds nothing.
func (r *rig) gone() {
	r.T.Helper()
	r.silent()
	usage := r.m.Usage()
	usage.Listeners = 0
	if at, armed := r.m.NextDeadline(); usage != (cm.Usage{}) || armed {
		r.T.Fatalf("still there: %+v, deadline %v %d", usage, armed, at)
	}
}

// counted tests how often something was counted.
func (r *rig) counted(id cm.CounterID, want uint64) {
	r.T.Helper()
	if got := r.m.Counters()[id]; got != want {
		r.T.Errorf("%s is %d, want %d", id, got, want)
	}
}

// connect begins a connection to them and returns its ID and the REQ.
func (r *rig) connect() (cm.ID, *cm.REQ) {
	r.T.Helper()
	id, err := r.m.Connect(r.now, cm.Connect{
		Path: r.path, Service: service, SrcPort: 7, QPN: ourQPN, PSN: ourPSN,
		PathMTU: wire.MTU1024, ResponderRes: 4, InitiatorDepth: 5, RetryCount: 6,
		RNRRetryCount: 7, Private: []byte("hello"),
	})
	must(r.T, err)
	req := &cm.REQ{
		LocalCommID: uint32(id), ServiceID: service, LocalCAGUID: ourGUID, LocalQPN: ourQPN,
		ResponderRes: 4, InitiatorDepth: 5, RemoteTimeout: 20, LocalTimeout: 20,
		StartingPSN: ourPSN, RetryCount: 6, RNRRetryCount: 7, PKey: 0xffff,
		PathMTU: wire.MTU1024, MaxCMRetries: 15,
		Primary: cm.PathFields{
			LocalLID: 0xffff, RemoteLID: 0xffff, LocalGID: r.path.Local,
			RemoteGID: r.path.Remote, FlowLabel: 7*31 + port, HopLimit: 64, LocalAckTimeout: 17,
		},
	}
	cm.IPHeader{Src: netip.AddrPortFrom(ourAddr, 7), Dst: theirAddr}.Put(req.Private[:])
	copy(req.Private[cm.IPHeaderLen:], "hello")
	// The path that the request goes is the one it is about.
	r.path.FlowLabel = req.Primary.FlowLabel
	r.want(tidOf(id), req)
	return id, req
}

// tidOf is the transaction ID of what a conversation of ours begins.
func tidOf(id cm.ID) uint64 {
	return 1<<32 | uint64(id>>24|id>>8&0xff00|id<<8&0xff0000|id<<24)
}

// rep is their answer to a REQ of ours.
func rep(id cm.ID) *cm.REP {
	return &cm.REP{
		LocalCommID: theirID, RemoteCommID: uint32(id), LocalQPN: theirQPN,
		StartingPSN: theirPSN, ResponderRes: 3, InitiatorDepth: 2, TargetAckDelay: 15,
		RNRRetryCount: 5, FlowControl: true, LocalCAGUID: theirGUID,
	}
}

// connected makes an established connection, in which we are the active end.
func (r *rig) connected() cm.ID {
	r.T.Helper()
	id, _ := r.connect()
	r.give(rep(id))
	r.event(cm.EventConnectResponse)
	must(r.T, r.m.Establish(id, nil))
	r.want(tidOf(id), &cm.RTU{LocalCommID: uint32(id), RemoteCommID: theirID})
	return id
}

// listen adds a listener for connections to any address.
func (r *rig) listen() cm.ListenerID {
	r.T.Helper()
	id, err := r.m.Listen(cm.Listen{Service: service})
	must(r.T, err)
	return id
}

// req is a request of theirs.
func (r *rig) req() *cm.REQ {
	req := &cm.REQ{
		LocalCommID: theirID, ServiceID: service, LocalCAGUID: theirGUID, LocalQPN: theirQPN,
		ResponderRes: 4, InitiatorDepth: 5, RemoteTimeout: 20, LocalTimeout: 20,
		StartingPSN: theirPSN, RetryCount: 6, RNRRetryCount: 5, PKey: 0xffff,
		PathMTU: wire.MTU1024, MaxCMRetries: 15,
		Primary: cm.PathFields{
			LocalLID: 0xffff, RemoteLID: 0xffff, LocalGID: r.path.Remote,
			RemoteGID: r.path.Local, FlowLabel: 0x12345, TrafficClass: 0x68, SL: 0xd, HopLimit: 64,
			LocalAckTimeout: 17,
		},
	}
	cm.IPHeader{Src: netip.AddrPortFrom(theirAddr, theirPort), Dst: ourAddr}.Put(req.Private[:])
	copy(req.Private[cm.IPHeaderLen:], "hello")
	return req
}

// requested makes a request that waits for its answer.
func (r *rig) requested() cm.ID {
	r.T.Helper()
	r.give(r.req())
	return r.event(cm.EventConnectRequest).ID
}

// accept answers a request and returns the REP.
func (r *rig) accept(id cm.ID) *cm.REP {
	r.T.Helper()
	must(r.T, r.m.Accept(r.now, id, cm.Accept{
		QPN: ourQPN, PSN: ourPSN, ResponderRes: 5, InitiatorDepth: 4, RNRRetryCount: 7,
		Private: []byte("welcome"),
	}))
	rep := &cm.REP{
		LocalCommID: uint32(id), RemoteCommID: theirID, LocalQPN: ourQPN, StartingPSN: ourPSN,
		ResponderRes: 5, InitiatorDepth: 4, RNRRetryCount: 7, LocalCAGUID: ourGUID,
	}
	copy(rep.Private[:], "welcome")
	r.want(theirTID, rep)
	return rep
}

func rtu(id cm.ID) *cm.RTU {
	return &cm.RTU{LocalCommID: theirID, RemoteCommID: uint32(id)}
}

// accepted makes an established connection, in which we are the passive end.
func (r *rig) accepted() cm.ID {
	r.T.Helper()
	r.listen()
	id := r.requested()
	r.accept(id)
	r.give(rtu(id))
	r.event(cm.EventEstablished)
	return id
}

// The messages that end a connection, theirs and ours.
func theirDREQ(id cm.ID) *cm.DREQ {
	return &cm.DREQ{LocalCommID: theirID, RemoteCommID: uint32(id), RemoteQPN: ourQPN}
}

func theirDREP(id cm.ID) *cm.DREP {
	return &cm.DREP{LocalCommID: theirID, RemoteCommID: uint32(id)}
}

func theirREJ(id cm.ID, reason cm.Reason) *cm.REJ {
	return &cm.REJ{LocalCommID: theirID, RemoteCommID: uint32(id), Reason: reason}
}

func ourDREQ(id cm.ID) *cm.DREQ {
	return &cm.DREQ{LocalCommID: uint32(id), RemoteCommID: theirID, RemoteQPN: theirQPN}
}

func ourDREP(id cm.ID) *cm.DREP {
	return &cm.DREP{LocalCommID: uint32(id), RemoteCommID: theirID}
}

// ourREJ is a REJ of ours; theirs is 0 when we do not know it yet.
func ourREJ(id cm.ID, theirs uint32, s cm.Subject, reason cm.Reason, info ...byte) *cm.REJ {
	r := &cm.REJ{LocalCommID: uint32(id), RemoteCommID: theirs, Subject: s, Reason: reason}
	r.InfoLen = uint8(copy(r.Info[:], info))
	return r
}

// ourGUIDInfo is what a REJ for a timeout tells.
var ourGUIDInfo = []byte{0, 0, 0, 0, 0, 0, 0, ourGUID}
