package match_test

import (
	"testing"

	"xroce/roce/msg/match"
)

// What MPI 4.1 says in chapter 3, and UCX and libfabric have as well. A tag of MPI is
// here the low half of a tag, and the communicator the high one: the usual way to put
// MPI on tags of 64 bits.
const (
	anyTag  = 0xffffffff << 32 // the mask of MPI_ANY_TAG: only the communicator counts
	world   = 1 << 32
	another = 2 << 32
)

// TestNonOvertaking: of two messages of a peer that both fit, the first one is received
// first, whether they came before or after the receives (section 3.5).
func TestNonOvertaking(t *testing.T) {
	g := newRig(t, 2)
	one, _ := g.arrive(g.peers[0], world|7, 1)
	two, _ := g.arrive(g.peers[0], world|7, 2)
	if _, got := g.post(world|7, match.Exact, g.peers[0]); got != one {
		t.Error("the second message overtook the first")
	}
	if _, got := g.post(world, anyTag, nil); got != two {
		t.Error("the second message is not there")
	}
	first, _ := g.post(world|7, match.Exact, g.peers[0])
	second, _ := g.post(world, anyTag, nil)
	if _, got := g.arrive(g.peers[0], world|7, 3); got != first {
		t.Error("the receive that was posted first waits")
	}
	if _, got := g.arrive(g.peers[0], world|7, 4); got != second {
		t.Error("the receive that was posted second waits")
	}
}

// TestReceivesInOrderOfPosting: a message that two receives fit goes to the one that was
// posted first, whichever of both has wildcards (section 3.5).
func TestReceivesInOrderOfPosting(t *testing.T) {
	g := newRig(t, 2)
	from := g.peers[0]
	kinds := []struct {
		name   string
		mask   uint64
		source *peer
	}{
		{"exact", match.Exact, from},
		{"any source", match.Exact, nil},
		{"any tag", anyTag, from},
		{"any tag, any source", anyTag, nil},
	}
	for _, a := range kinds {
		for _, b := range kinds {
			first, _ := g.post(world|7, a.mask, a.source)
			second, _ := g.post(world|7, b.mask, b.source)
			if _, got := g.arrive(from, world|7, 0); got != first {
				t.Errorf("%s before %s: the second got the message", a.name, b.name)
			}
			if _, got := g.arrive(from, world|7, 0); got != second {
				t.Errorf("%s before %s: the second got nothing", a.name, b.name)
			}
		}
	}
}

// TestMessagesInOrderOfArrival: a receive from any source takes what arrived first here,
// and leaves others to those who name them.
func TestMessagesInOrderOfArrival(t *testing.T) {
	g := newRig(t, 3)
	second, _ := g.arrive(g.peers[2], world|7, 0)
	third, _ := g.arrive(g.peers[0], world|7, 0)
	first, _ := g.arrive(g.peers[1], world|7, 0)
	if _, got := g.post(world|7, match.Exact, g.peers[1]); got != first {
		t.Error("who names a source gets another's message")
	}
	if _, got := g.post(world|7, match.Exact, nil); got != second {
		t.Error("exact, any source: not what arrived first")
	}
	if _, got := g.post(world, anyTag, nil); got != third {
		t.Error("any tag, any source: not what was left")
	}
}

// TestTagsSelect: messages of different tags may be received in another order than that
// of sending, and what does not fit stays.
func TestTagsSelect(t *testing.T) {
	g := newRig(t, 1)
	one, _ := g.arrive(g.peers[0], world|1, 0)
	two, _ := g.arrive(g.peers[0], world|2, 0)
	if _, got := g.post(world|2, match.Exact, g.peers[0]); got != two {
		t.Error("tag 2 did not find its message")
	}
	if _, got := g.post(world|3, match.Exact, g.peers[0]); got != nil {
		t.Error("tag 3 found a message")
	}
	if _, got := g.post(world|1, match.Exact, g.peers[0]); got != one {
		t.Error("tag 1 did not find its message")
	}
}

// TestCommunicatorsAreApart: any tag is any of one communicator, on both sides.
func TestCommunicatorsAreApart(t *testing.T) {
	g := newRig(t, 1)
	g.arrive(g.peers[0], another|7, 0)
	r, got := g.post(world, anyTag, nil)
	if got != nil {
		t.Fatal("a receive took a message of another communicator")
	}
	if _, got := g.arrive(g.peers[0], another|8, 0); got != nil {
		t.Fatal("a message of another communicator took the receive")
	}
	if _, got := g.arrive(g.peers[0], world|8, 0); got != r {
		t.Fatal("a message of the communicator did not")
	}
}

// TestBitsBeyondTheMaskDoNotCount: those of the tag of a receive are ignored.
func TestBitsBeyondTheMaskDoNotCount(t *testing.T) {
	g := newRig(t, 1)
	r, _ := g.post(world|0xdead, anyTag, nil)
	if _, got := g.arrive(g.peers[0], world|7, 0); got != r {
		t.Error("they count for a message that arrives")
	}
	m, _ := g.arrive(g.peers[0], world|7, 0)
	if g.probe(world|0xbeef, anyTag, nil) != m {
		t.Error("they count for a probe")
	}
}

// TestProbeLeavesTheMessage: it is found again until it is received, and a probe with any
// source says whose it is: who then names none may get another.
func TestProbeLeavesTheMessage(t *testing.T) {
	g := newRig(t, 2)
	if g.probe(world, anyTag, nil) != nil {
		t.Fatal("a message before any came")
	}
	m, _ := g.arrive(g.peers[1], world|7, 40)
	for range 2 {
		if g.probe(world, anyTag, nil) != m {
			t.Fatal("it is not found")
		}
	}
	g.arrive(g.peers[0], world|7, 80)
	if _, got := g.post(m.tag, match.Exact, m.from); got != m {
		t.Error("the receive after the probe got another message")
	}
}

// TestClaimIsForItsHolder: what is claimed is found by nobody else, not even by a receive
// that came before it could be received, and the next message takes its place
// (section 3.8.2, MPI_Mprobe).
func TestClaimIsForItsHolder(t *testing.T) {
	g := newRig(t, 1)
	one, _ := g.arrive(g.peers[0], world|7, 1)
	two, _ := g.arrive(g.peers[0], world|7, 2)
	if g.claim(world, anyTag, nil) != one || one.node.Queued() {
		t.Fatal("the first message was not claimed")
	}
	if g.probe(world|7, match.Exact, nil) != two {
		t.Error("a probe finds what is claimed")
	}
	if _, got := g.post(world|7, match.Exact, g.peers[0]); got != two {
		t.Error("a receive got what is claimed")
	}
	if g.claim(world|7, match.Exact, g.peers[0]) != nil || g.withdraw(one) {
		t.Error("it can be taken twice")
	}
	if messages, _ := g.forget(g.peers[0]); len(messages) != 0 {
		t.Error("it is forgotten with its peer")
	}
}

// TestCancelOrMatch: a receive is either cancelled or has its message, never both
// (section 3.8.4), and a cancelled one makes room for those behind it.
func TestCancelOrMatch(t *testing.T) {
	g := newRig(t, 1)
	for _, mask := range []uint64{match.Exact, anyTag} {
		first, _ := g.post(world|7, mask, nil)
		second, _ := g.post(world|7, mask, nil)
		if !g.cancel(first) || g.cancel(first) || first.node.Queued() {
			t.Error("a queued receive is not cancelled once")
		}
		if _, got := g.arrive(g.peers[0], world|7, 0); got != second {
			t.Error("the message went elsewhere")
		}
		if g.cancel(second) {
			t.Error("a receive that has its message is cancelled")
		}
	}
}

// TestWithdrawOrMatch is the same of a message that its sender cancels.
func TestWithdrawOrMatch(t *testing.T) {
	g := newRig(t, 1)
	one, _ := g.arrive(g.peers[0], world|7, 5)
	two, _ := g.arrive(g.peers[0], world|7, 6)
	if !g.withdraw(one) || g.withdraw(one) || one.node.Queued() {
		t.Error("an unexpected message is not withdrawn once")
	}
	if _, got := g.post(world|7, match.Exact, nil); got != two {
		t.Error("the receive got another message")
	}
	if g.withdraw(two) {
		t.Error("a message that was received is withdrawn")
	}
}

// TestExactNeedsNoList: a receive with all bits in its mask does not walk through what is
// unexpected; one with a mask does.
func TestExactNeedsNoList(t *testing.T) {
	g := newRig(t, 1)
	for tag := range uint64(10) {
		g.arrive(g.peers[0], world|tag, 0)
	}
	restore := g.x.HideMessages()
	exact := g.x.Probe(world|9, match.Exact, nil)
	masked := g.x.Probe(world|9, match.Exact>>1, nil)
	restore()
	if exact != g.messages[9] {
		t.Error("exact: the message is not found without the list")
	}
	if masked != nil {
		t.Error("masked: the list was not hidden, this test shows nothing")
	}
}

// TestForgottenPeer: its messages go, receives from it alone fail, receives from any
// source stay and serve others, who lose nothing.
func TestForgottenPeer(t *testing.T) {
	g := newRig(t, 2)
	dead, alive := g.peers[0], g.peers[1]
	g.arrive(dead, world|1, 10)
	kept, _ := g.arrive(alive, world|1, 20)
	g.post(another|1, match.Exact, dead)
	g.post(another, anyTag, dead)
	stays, _ := g.post(another, anyTag, nil)
	if messages, receives := g.forget(dead); len(messages) != 1 || len(receives) != 2 {
		t.Errorf("%d messages and %d receives", len(messages), len(receives))
	}
	if g.probe(world|1, match.Exact, nil) != kept {
		t.Error("the message of the other peer is not found")
	}
	if _, got := g.arrive(alive, another|1, 0); got != stays {
		t.Error("the receive from any source is gone")
	}
	g.must(g.x.Add(&dead.node))
	if _, got := g.arrive(dead, another|1, 0); got != nil {
		t.Error("a peer that came back met what was there before")
	}
}
