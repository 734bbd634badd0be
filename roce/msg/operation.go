package msg

import (
	"xroce/roce/clock"
	"xroce/roce/internal/list"
	"xroce/roce/msg/match"
)

// A Level is how far a message has to be for its sender to be told that it is complete.
type Level uint8

// The levels. Each includes those before it.
const (
	Buffered    Level = iota // its memory may be used again
	Transmitted              // the peer's adapter has it
	Delivered                // it was taken out of the peer's slot, or is in its place
	Matched                  // a receive was there for it: a synchronous send
)

// A Send is a message to a peer. The caller sets the exported fields and leaves it alone
// until Endpoint.NextSent returns it; then it may be used again.
type Send struct {
	Pieces   [][]byte // the message, in order; not to be changed meanwhile
	Region   Region   // the message, in the place of Pieces
	Tag      uint64
	Protocol Protocol // Auto for that of the configuration
	Level    Level    // when it is complete
	Fence    bool     // it does not leave before all that was posted before is at the peer
	Active   bool     // for the handler of the peer with the number that Handler is
	Handler  uint16
	User     any // the caller's

	// Results:
	Err    error // nil, or why it was not sent, or *StatusError: what the peer says
	Choice Choice
	Sent   int // bytes that the peer took, fewer than there were when it had no room

	conn    *Conn
	links   list.Link[Send]
	state   sendState
	length  int
	longest int
	posted  clock.Time
	order   uint64 // among all that were posted
	at      uint64 // in a slot: frames of the lane up to its own

	mark   bool      // it is no message, but of Flush
	marked [2]uint64 // frames of each lane up to it

	// Of one that is announced:
	id        uint32
	request   Request
	shown     Memory // with our key for it
	hasKey    bool
	remote    Memory     // where the peer wants it
	begin     int        // of what the peer has asked for last, as a place in the message
	window    int        // the end of that
	off       int        // what was sent
	again     []span     // of it, what was lost with a rail
	local     *localRing // where its copy is
	localSlot int
	flying    int        // WRITEs that are not complete
	crowded   bool       // no slot was free for long
	way       uint8      // of EnlargeAuto, plus one
	left      clock.Time // when it was looked at last before it left
	answered  bool       // ATS came
	cancelled bool       // the application wants it back
	status    Status

	loaded   []byte // of a Region that is not steady, what was copied of it
	loadedAt int    // from that place in the message on
}

// Length is the length of the message in bytes, once it was posted.
func (s *Send) Length() int { return s.length }

// IsFlush reports whether it is no message, but was posted by Flush.
func (s *Send) IsFlush() bool { return s.mark }

// A sendState is where a message stands.
type sendState uint8

const (
	sendIdle      sendState = iota
	sendPending             // waits for its turn
	sendLoading             // waits for its bytes
	sendInSlot              // in a frame
	sendExposing            // waits for its key
	sendExposed             // has it, or does without
	sendAnnounced           // RTS is out
	sendWriting             // WRITEs are going
	sendFragments           // fragments are going
	sendEnding              // the peer has it; a WRITE is not complete
	sendHiding              // its key is being taken out of use
)

// measure notes how long the message and the longest of its pieces are.
func (s *Send) measure() {
	s.length, s.longest = 0, 0
	if s.Region != nil {
		s.length = s.Region.Len()
		s.longest = s.length
		return
	}
	for _, p := range s.Pieces {
		s.length += len(p)
		s.longest = max(s.longest, len(p))
	}
}

// A Receive asks for a message. The caller sets the exported fields and leaves it alone
// until Endpoint.NextReceived returns it; then it may be used again.
type Receive struct {
	Pieces [][]byte // where the message goes
	Region Region   // likewise, in the place of Pieces
	Tag    uint64
	Mask   uint64 // the bits of the tag that count
	From   *Conn  // nil for any peer
	User   any    // the caller's

	// Results:
	Err     error
	Length  int // bytes in Pieces
	Whole   int // bytes that the message had: more when it was cut off
	SentTag uint64
	Source  *Conn // set when the message has begun to come
	// Protocol is how it came: Provisioned in a large slot, also when it is a short one that had
	// room there, and was sent as Eager.
	Protocol  Protocol
	Truncated bool

	node  match.Receive[Receive, arrival]
	links list.Link[Receive]
	size  int
	taken bool // it has a message, which is not here yet

	request Request
	kept    []byte // of a message, what is being stored at a Region that is not steady
}

// busy reports whether it is under way.
func (r *Receive) busy() bool { return r.node.Queued() || r.links.In() || r.taken }

// reset makes it ready for a message.
func (r *Receive) reset() {
	r.node.Init(r)
	r.Err, r.Length, r.Whole, r.Truncated, r.Source = nil, 0, 0, false, nil
	r.size, r.kept = 0, r.kept[:0]
	if r.Region != nil {
		r.size = r.Region.Len()
		return
	}
	for _, p := range r.Pieces {
		r.size += len(p)
	}
}

// scatter copies data to a place in the pieces and returns how much had room.
func scatter(pieces [][]byte, off int, data []byte) int {
	done := 0
	for _, p := range pieces {
		if off >= len(p) {
			off -= len(p)
			continue
		}
		n := copy(p[off:], data[done:])
		off = 0
		if done += n; done == len(data) {
			break
		}
	}
	return done
}

// gather copies from a place in the pieces and returns how much there was.
func gather(dst []byte, pieces [][]byte, off int) int {
	done := 0
	for _, p := range pieces {
		if off >= len(p) {
			off -= len(p)
			continue
		}
		n := copy(dst[done:], p[off:])
		off = 0
		if done += n; done == len(dst) {
			break
		}
	}
	return done
}
