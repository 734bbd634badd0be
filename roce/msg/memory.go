package msg

import (
	"xroce/roce/clock"
	"xroce/roce/internal/list"
)

// Memory is bytes that a device knows: what it is to the machine, and how work requests
// name it.
type Memory struct {
	Bytes   []byte // of Allocate; nil for what was exposed
	Key            // by the first adapter
	Further [MaxFurtherRails]Key
	Owner   any // the owner's name for it, which the machine hands back
}

// A Key is memory as an adapter knows it.
type Key struct {
	Addr uint64
	LKey uint32
	RKey uint32
}

// By returns the key by the adapter of a number, from 0 to MaxRails-1.
func (m *Memory) By(adapter uint8) *Key {
	if adapter == 0 {
		return &m.Key
	}
	return &m.Further[adapter-1]
}

// from is the memory from a place in it on, without its bytes and its owner.
func (m *Memory) from(off uint64) Memory {
	part := Memory{Key: m.Key, Further: m.Further}
	for i := range uint8(MaxRails) {
		part.By(i).Addr += off
	}
	return part
}

// A RequestKind is what a machine wants of memory.
type RequestKind uint8

// The kinds of request.
const (
	// Allocate is for Size bytes that are registered with the adapters of Conn.Adapters, and
	// that this peer alone may WRITE to when Remote is set, or READ when ToRead is: its keys
	// must be such that were not drawn before.
	Allocate RequestKind = iota
	// Expose gives keys, as many, to the pieces of a message, which are the application's, and lets
	// this peer READ (ToRead) or WRITE them (Remote); else they are for our own requests.
	Expose
	// Release takes the key of Memory out of use, and frees what Allocate made. When it is
	// answered no packet touches the memory any more.
	Release
	// Load copies len(Bytes) bytes of Region, from Off on, to Bytes, and Store copies Bytes there.
	// They are for a Region that is not steady. The answer is no memory.
	Load
	Store
)

// A Request is what a machine wants of memory. The owner takes it by Endpoint.NextRequest and
// answers once, by Endpoint.Answer, at any time: registering may take long, and no connection
// waits for that of another one. What Release asks for cannot fail. The error of a Load or a Store
// is that of the message.
type Request struct {
	Kind   RequestKind
	Conn   *Conn
	Size   int
	Remote bool
	ToRead bool
	Pieces [][]byte
	Region Region // of Expose, in the place of Pieces: Size bytes of it; of Load and Store
	Write  bool   // of Expose: we write to the memory, or the peer does
	Off    int    // of Load and Store
	Bytes  []byte // likewise
	Given  Memory // of Release

	asker asker
	links list.Link[Request]
	asked bool // and not answered
}

// An asker is who in the machine is told the answer to a request.
type asker interface {
	answer(now clock.Time, r *Request, m Memory, err error)
}

// busy reports whether it was made and not answered.
func (r *Request) busy() bool { return r.asked || r.links.In() }
