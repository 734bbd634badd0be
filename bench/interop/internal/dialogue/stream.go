package dialogue

import (
	"fmt"

	"xroce/bench/softroce"
)

// A step is a packet of a dialogue.
type step struct {
	// key says which packet it is: of data the opcode and the PSN from the first
	// on, of the connection manager the message, and of those that end a connection
	// which one of several.
	key string
	// fields are what is compared of it, by name. What is random in each run is in
	// a form that is not; see rules.
	fields map[string]string
}

// A content is what a stream consists of.
type content int

// The kinds, in the order in which differences are told.
const (
	messages content = iota // of the connection manager
	requests
	answers // responses and acknowledgements
)

// A stream is which packets of a dialogue belong together: within one their order
// is fixed, between two of them it depends on time.
type stream struct {
	from softroce.End
	kind content
	conn int // which connection of the dialogue, from 1 on; 0 of messages
}

// String names a stream.
func (s stream) String() string {
	return [...]string{"messages", "requests", "answers"}[s.kind] + ofConnection(s.conn)
}

// ofConnection names a connection when it is not the first one.
func ofConnection(conn int) string {
	if conn <= 1 {
		return ""
	}
	return fmt.Sprintf(" of connection %d", conn)
}

// other is the end that a packet goes to.
func other(e softroce.End) softroce.End { return softroce.B - e }
