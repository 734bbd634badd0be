package perf

import (
	"strings"

	"xroce/roce"
	"xroce/roce/mem"
)

// A Verb is what a test measures.
type Verb int

// The verbs.
const (
	Send Verb = iota
	Write
	Read
	Atomic
)

// verbs has the names of each: in commands, in headings, and the rights that the
// peer needs.
var verbs = [...]struct {
	name, title string
	access      mem.Access
}{
	Send:   {"send", "Send", mem.RemoteWrite},
	Write:  {"write", "RDMA_Write", mem.RemoteWrite},
	Read:   {"read", "RDMA_Read", mem.RemoteRead},
	Atomic: {"atomic", "Atomic", mem.RemoteAtomic},
}

// A Test is one of the eight.
type Test struct {
	Verb    Verb
	Latency bool // latency, not bandwidth
}

// Tests are the eight, in the order of perftest's manual.
var Tests = []Test{
	{Send, false},
	{Send, true},
	{Write, false},
	{Write, true},
	{Read, false},
	{Read, true},
	{Atomic, false},
	{Atomic, true},
}

// Name is the test as a subcommand: send-bw.
func (t Test) Name() string {
	if t.Latency {
		return verbs[t.Verb].name + "-lat"
	}
	return verbs[t.Verb].name + "-bw"
}

// Tool is the name of perftest's program: ib_send_bw.
func (t Test) Tool() string { return "ib_" + strings.ReplaceAll(t.Name(), "-", "_") }

// Answered reports whether the peer's device answers with data: the round trip is
// then one message, and who asks needs no program on the other end.
func (t Test) Answered() bool { return t.Verb == Read || t.Verb == Atomic }

// An AtomicType is the operation of an atomic test.
type AtomicType string

// The atomic operations, by the names of -A.
const (
	FetchAndAdd AtomicType = "FETCH_AND_ADD"
	CmpAndSwap  AtomicType = "CMP_AND_SWAP"
)

// opcode is what the test posts.
func (c *Config) opcode() roce.Opcode {
	switch c.Test.Verb {
	case Write:
		return roce.OpWrite
	case Read:
		return roce.OpRead
	case Atomic:
		if c.Atomic == CmpAndSwap {
			return roce.OpCmpSwap
		}
		return roce.OpFetchAdd
	}
	return roce.OpSend
}

// heading is the title of the report, with sep between the words.
func (c *Config) heading(sep string) string {
	words := []string{verbs[c.Test.Verb].title}
	if c.Test.Verb == Atomic {
		words = append(words, string(c.Atomic))
	}
	if c.Test.Latency {
		return strings.Join(append(words, "Latency", "Test"), sep)
	}
	if c.Both {
		words = append(words, "Bidirectional")
	}
	if c.PostList > 1 {
		words = append(words, strings.Join([]string{"Post", "List"}, sep))
	}
	return strings.Join(append(words, "BW", "Test"), sep)
}
