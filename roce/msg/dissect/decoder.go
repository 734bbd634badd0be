package dissect

import (
	"xroce/roce/wire"
)

// Bounds of what a Decoder keeps.
const (
	maxFlows = 1 << 12   // directions of connections
	maxKeys  = 1 << 12   // keys of rendezvous
	maxFrame = 256 << 10 // bytes of a message that comes in several packets
	maxHeld  = 16 << 20  // bytes of such messages together
)

// A Decoder remembers what it takes to read the next packet of a capture. The zero value is ready
// for the first.
type Decoder struct {
	flows table[place, *flow]
	// recent are flows of late, by the low bits of the queue pair: most packets find theirs here.
	recent [recentFlows]recentFlow
	keys   table[key, uint32] // the operation whose memory a key names
	held   int                // bytes of messages that have not come whole
}

// recentFlows is how many flows are found without a look into the table, a power of two.
const recentFlows = 16

// A recentFlow is one of the table, nil for none.
type recentFlow struct {
	at   place
	flow *flow
}

// A place is a queue pair of a host.
type place struct {
	host wire.GID
	qpn  uint32
}

// A key is one of a host.
type key struct {
	host wire.GID
	rkey uint32
}

// Decode looks at the next packet and reports whether it ends something that is said in messages,
// which it then writes to m. Both are borrowed for the call: m keeps nothing of the packet, and
// the memory of its list is used again.
func (d *Decoder) Decode(p *wire.Packet, m *Message) bool {
	if m.Kind != 0 { // of most packets nothing more than what follows was ever set
		*m = Message{Records: m.Records[:0]}
	}
	m.Src, m.Dst, m.DestQP = p.Src, p.Dst, p.BTH.DestQP
	m.Perhaps, m.Again, m.Len = false, false, 0
	switch op := p.BTH.Opcode; {
	case op == wire.UDSendOnly && p.BTH.DestQP == managerQP:
		return d.manage(p, m)
	case op.Spec().Known && op.Spec().Service == wire.ServiceRC:
		return d.transport(p, m)
	}
	return false
}

// flowTo returns the flow to a queue pair, which may be new.
func (d *Decoder) flowTo(at place) *flow {
	r := &d.recent[at.qpn%recentFlows]
	if r.flow != nil && r.at == at {
		return r.flow
	}
	f, ok := d.flows.get(at)
	if !ok {
		f = &flow{}
		if old, full := d.flows.put(at, f, maxFlows); full {
			d.drop(&old.request)
			d.drop(&old.response)
			d.recent = [recentFlows]recentFlow{} // it may be there
		}
	}
	*r = recentFlow{at, f}
	return f
}

// whole returns the payload of a packet in one piece.
func whole(p *wire.Packet) []byte {
	if len(p.PayloadTail) == 0 {
		return p.Payload
	}
	b := make([]byte, p.PayloadLen())
	p.CopyPayload(b)
	return b
}

// A table forgets the oldest entry when it is full.
type table[K comparable, V any] struct {
	m     map[K]V
	order []K // from the oldest
}

// get returns the value of a key.
func (t *table[K, V]) get(k K) (v V, ok bool) {
	v, ok = t.m[k]
	return v, ok
}

// put sets the value of a key. When there are so many already it forgets one, and returns that.
func (t *table[K, V]) put(k K, v V, most int) (old V, full bool) {
	if t.m == nil {
		t.m = map[K]V{}
	}
	if _, ok := t.m[k]; !ok {
		if full = len(t.order) == most; full {
			old = t.m[t.order[0]]
			delete(t.m, t.order[0])
			t.order = t.order[1:]
		}
		t.order = append(t.order, k)
	}
	t.m[k] = v
	return old, full
}
