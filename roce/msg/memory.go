package msg

import "xroce/roce/clock"

// Memory is bytes that a device knows: what it is to the machine, and how work requests
// name it.
type Memory struct {
	Bytes []byte // of Allocate; nil for what was exposed
	Addr  uint64
	LKey  uint32
	RKey  uint32
	Owner any // the owner's name for it, which the machine hands back
}

// A RequestKind is what a machine wants of memory.
type RequestKind uint8

// The kinds of request.
const (
	// Allocate is for Size bytes that are registered, and that this peer alone may WRITE
	// to when Remote is set, or READ when ToRead is: its key must be one that was not drawn
	// before.
	Allocate RequestKind = iota
	// Expose gives a key to the pieces of a message, which are the application's, and lets
	// this peer READ (ToRead) or WRITE them (Remote); else they are for our own requests.
	Expose
	// Release takes the key of Memory out of use, and frees what Allocate made. When it is
	// answered no packet touches the memory any more.
	Release
)

// A Request is what a machine wants of memory. The owner takes it by Endpoint.NextRequest and
// answers once, by Endpoint.Answer, at any time: registering may take long, and no connection
// waits for that of another one. What Release asks for cannot fail.
type Request struct {
	Kind   RequestKind
	Conn   *Conn
	Size   int
	Remote bool
	ToRead bool
	Pieces [][]byte
	Given  Memory // of Release

	asker asker
	links link[*Request]
	asked bool // and not answered
}

// An asker is who in the machine is told the answer to a request.
type asker interface {
	answer(now clock.Time, r *Request, m Memory, err error)
}

// busy reports whether it was made and not answered.
func (r *Request) busy() bool { return r.asked || r.links.in }

func (r *Request) chain() *link[*Request] { return &r.links }
