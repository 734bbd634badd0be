package dissect

import (
	"net/netip"
	"testing"

	"xroce/roce/cm"
	"xroce/roce/msg"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// Two hosts and a queue pair of each.
const (
	qpnA, qpnB = 0x111111, 0x222222
	firstPSN   = wire.PSN(0xffffff) // of both: the next one is 0
)

// A rig gives a decoder packets that two hosts send each other.
type rig struct {
	t     testing.TB
	d     Decoder
	m     Message
	paths [2]wire.Template // of each host, to the other
	psn   [2]wire.PSN
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, psn: [2]wire.PSN{firstPSN, firstPSN}}
	for host := range r.paths {
		err := r.paths[host].Init(wire.Path{
			Framing: wire.FramingV2IPv4, HopLimit: 64, SrcPort: 0xc000,
			Src: gid(host), Dst: gid(1 - host),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// gid is the address of a host.
func gid(host int) wire.GID {
	return wire.GIDFromAddr(netip.AddrFrom4([4]byte{192, 0, 2, byte(host + 1)}))
}

// give hands a packet of a host to the decoder and returns what that says, "" for nothing.
func (r *rig) give(host int, p roctest.Packet) string {
	r.t.Helper()
	var decoded wire.Packet
	if reason := decoded.Decode(p.Frame(&r.paths[host]), nil); reason != wire.OK {
		r.t.Fatalf("%s: %s", p.Opcode, reason)
	}
	if !r.d.Decode(&decoded, &r.m) {
		return ""
	}
	if r.m.Src != gid(host) || r.m.Dst != gid(1-host) || r.m.DestQP != p.DestQP {
		r.t.Errorf("from %s to %s, QP 0x%06x", r.m.Src, r.m.Dst, r.m.DestQP)
	}
	return r.m.String()
}

// next sends the next packet of a host's requests to the other's queue pair.
func (r *rig) next(host int, p roctest.Packet) string {
	r.t.Helper()
	p.PSN, p.DestQP = r.psn[host], [2]uint32{qpnB, qpnA}[host]
	r.psn[host] = r.psn[host].Add(1)
	return r.give(host, p)
}

// say sends a control message.
func (r *rig) say(host int, c msg.Control) string {
	r.t.Helper()
	return r.next(host, roctest.Packet{
		Opcode: wire.RCSendOnly, Payload: c.Put(make([]byte, c.Size())),
	})
}

// manage sends a message of the connection manager.
func (r *rig) manage(host int, mad []byte) string {
	r.t.Helper()
	return r.give(host, roctest.Packet{
		Opcode: wire.UDSendOnly, DestQP: 1, Payload: mad,
	})
}

// The hello of both hosts.
var hello = msg.Hello{
	Version: msg.Version, MinVersion: msg.MinVersion, Service: msg.ServiceEndpoint,
	Payload: 1024, Slots: 32, Rendezvous: 64, Session: msg.Token{1, 2, 3}, Receives: 100,
}

// req is the REQ of host 0, with a hello behind the addresses of rdma_cm.
func req() []byte {
	r := cm.REQ{LocalCommID: 5, LocalQPN: qpnA, StartingPSN: firstPSN}
	hello.Put(r.Private[cm.IPHeaderLen:])
	b := make([]byte, cm.MADLen)
	r.Put(b, 1)
	return b
}

// rep is the REP of host 1.
func rep() []byte {
	r := cm.REP{LocalCommID: 6, RemoteCommID: 5, LocalQPN: qpnB, StartingPSN: firstPSN}
	hello.Put(r.Private[:])
	b := make([]byte, cm.MADLen)
	r.Put(b, 1)
	return b
}

// connect has both hosts say hello.
func (r *rig) connect() *rig {
	r.manage(0, req())
	r.manage(1, rep())
	return r
}

// frameOf makes a frame of records with so many bytes each.
func frameOf(t testing.TB, payloads ...int) []byte {
	t.Helper()
	size := uint64(msg.FrameHeaderLen)
	for _, n := range payloads {
		size += msg.SlotLen(uint32(n))
	}
	var w msg.FrameWriter
	w.Reset(make([]byte, size))
	for i, n := range payloads {
		h := msg.RecordHeader{Type: msg.RecordEager, Len: uint32(n), Tag: uint64(i)}
		if _, ok := w.Append(&h); !ok {
			t.Fatal("no room in the frame")
		}
	}
	return w.Finish(&msg.FrameHeader{Epoch: 7, Sequence: 3})
}

// pieces cuts a message into payloads of packets.
func pieces(b []byte, mtu int) (list [][]byte) {
	for ; len(b) > mtu; b = b[mtu:] {
		list = append(list, b[:mtu])
	}
	return append(list, b)
}
