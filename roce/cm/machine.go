package cm

import (
	"math/bits"

	"xroce/roce/internal/list"
	"xroce/roce/internal/timer"
	"xroce/roce/wire"
)

// A Machine holds the conversations of a host. It is not safe for concurrent use.
type Machine struct {
	config Config

	listeners    map[ListenerID]*listener
	services     map[ServiceID][]*listener
	masks        map[ServiceID]int // how many listeners have one that is not whole
	lastListener ListenerID

	conns map[ID]*conn
	// peers finds a connection by the name that the peer has for it, peerQPs by
	// the peer's queue pair: neither may be that of two. requests finds the one that a
	// request began.
	peers    map[peerKey]*conn
	peerQPs  map[peerKey]*conn
	requests map[requestKey]*conn
	halfOpen list.List[conn]      // requests of peers, the oldest first
	waiting  int                  // of these, those that wait for the application
	over     list.List[conn]      // those that have ended, the oldest first
	hosts    map[wire.GID]*source // how many of these, by host
	links    map[Via]*source      // the same, by station on the link

	queries      map[ID]*query      // SIDR, both ways
	sidrRequests map[sidrKey]*query // SIDR requests of peers
	sidrLinks    map[Via]*source    // of those that wait, by station on the link
	sidrWaiting  list.List[query]   // those that wait for the application, the oldest first
	sidrAnswered list.List[query]   // those that were answered, the oldest first

	timers timer.Set
	out    outbox
	events []Event
	taken  int // events at the front that were taken
	count  CounterSet
}

// peerKey names something of a peer: a communication ID or a queue pair. The address is part of
// it, so that no peer can name a connection of another; and so is the station, because who writes
// the address of another into a packet needs no more than to guess a number. It does not stop who
// writes the station's MAC address, too, which takes a place on the link, nor who is behind the
// same router as the peer.
type peerKey struct {
	via    Via
	gid    wire.GID
	guid   uint64
	number uint32
}

// requestKey names a request of a peer, whichever way it comes. The first PSN is random, so who
// did not see the request does not make another one that is taken for it.
type requestKey struct {
	gid     wire.GID
	guid    uint64
	id, qpn uint32
	psn     wire.PSN
}

// requestOf is the key of a request.
func requestOf(from *Path, r *REQ) requestKey {
	return requestKey{from.Remote, r.LocalCAGUID, r.LocalCommID, r.LocalQPN, r.StartingPSN}
}

// New makes a machine without conversations. It returns ErrInvalid when the
// configuration has no source of random numbers or a value out of range.
func New(c Config) (*Machine, error) {
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	return &Machine{
		config:       c,
		listeners:    map[ListenerID]*listener{},
		services:     map[ServiceID][]*listener{},
		masks:        map[ServiceID]int{},
		conns:        map[ID]*conn{},
		peers:        map[peerKey]*conn{},
		peerQPs:      map[peerKey]*conn{},
		requests:     map[requestKey]*conn{},
		hosts:        map[wire.GID]*source{},
		links:        map[Via]*source{},
		sidrLinks:    map[Via]*source{},
		queries:      map[ID]*query{},
		sidrRequests: map[sidrKey]*query{},
		out:          outbox{limit: c.MaxOutbox},
	}, nil
}

// SetMTU changes the largest path MTU that a peer may ask for, 0 for none at all. It
// is of the requests that come; connections stay as they are.
func (m *Machine) SetMTU(mtu wire.MTU) { m.config.MTU = mtu }

// Usage is how many objects a machine has.
type Usage struct {
	Connections int // all, with those in time-wait
	HalfOpen    int // of these, requests of peers that are not established
	Lookups     int // SIDR, both ways, with those that were answered lately
	Listeners   int
	MADs        int // that wait to be sent
	Events      int // that wait to be taken
}

// Usage returns how many objects the machine has.
func (m *Machine) Usage() Usage {
	return Usage{
		Connections: len(m.conns), HalfOpen: m.halfOpen.Len(), Lookups: len(m.queries),
		Listeners: len(m.listeners), MADs: m.out.n, Events: len(m.events) - m.taken,
	}
}

// State returns where a connection stands, StateGone when there is none.
func (m *Machine) State(id ID) State {
	if c := m.conns[id]; c != nil {
		return c.state
	}
	return StateGone
}

// draw returns an unpredictable ID that is not in use.
func (m *Machine) draw() ID {
	for {
		id := ID(m.config.Rand.Uint64())
		if id != 0 && m.conns[id] == nil && m.queries[id] == nil {
			return id
		}
	}
}

// tid is the transaction ID of what a conversation begins. As with Linux the
// lower half is the ID with its bytes reversed, so that a capture tells whose it
// is.
func (m *Machine) tid(id ID) uint64 {
	return uint64(m.config.Agent)<<32 | uint64(bits.ReverseBytes32(uint32(id)))
}

// defaultHopLimit is that of answers.
const defaultHopLimit = 64
