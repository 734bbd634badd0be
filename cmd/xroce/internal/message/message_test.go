package message

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"xroce/roce/msg"
)

// TestPattern: each message has its content, and what is changed, missing or in the place of
// another one is found and named.
func TestPattern(t *testing.T) {
	p, other := newPattern(1000, false), newPattern(1000, true)
	for n := range 2 * period {
		got := append([]byte(nil), p.of(n)...)
		if err := p.check(n, got); err != nil {
			t.Fatal(err)
		}
		if p.check(n+1, got) == nil || other.check(n, got) == nil {
			t.Fatalf("message %d passes for another", n)
		}
		at := rand.IntN(len(got))
		got[at] ^= 1 << rand.IntN(8)
		err := p.check(n, got)
		if err == nil || !strings.Contains(err.Error(), "differs at byte ") {
			t.Fatalf("byte %d of message %d: %v", at, n, err)
		}
		if err := p.check(n, got[:999]); err == nil || !strings.Contains(err.Error(), "999 bytes") {
			t.Fatal(err)
		}
	}
	empty := newPattern(0, false)
	if err := empty.check(7, nil); err != nil {
		t.Error(err)
	}
}

// TestTerms: what an end says is read as it was meant, what others say is refused, and their words
// cannot command a terminal.
func TestTerms(t *testing.T) {
	for _, c := range []struct{ says, want string }{
		{`{}`, ErrForeign.Error()},
		{`hello`, `begins with "hello"`},
		{"\x1b[2J\xff", `\x1b[2J`},
		{`{"tool":"xroce msg","version":2}`, "it speaks 2, this end 1"},
		{`{"tool":"xroce msg","version":1,"size":"many"}`, ErrForeign.Error()},
		{strings.Repeat("[", maxTerms), ErrForeign.Error()},
	} {
		_, err := parseTerms([]byte(c.says))
		if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 400 {
			t.Errorf("%.20q: %v", c.says, err)
		}
	}
	theirs, err := parseTerms([]byte(`{"tool":"xroce msg","version":1,"test":"\u001b[2J\n"}`))
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Test: Stream}
	ours := c.terms()
	err = ours.compare(&theirs)
	if !errors.Is(err, ErrMismatch) || strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("%q", err)
	}
	if err := ours.compare(&ours); err != nil {
		t.Error(err)
	}
}

// TestExplainChoice: what is explained is what Situation.Choose says.
func TestExplainChoice(t *testing.T) {
	for _, protocol := range []msg.Protocol{
		msg.Auto, msg.Eager, msg.Get, msg.Put, msg.Fragments, msg.Provisioned,
	} {
		for _, pieces := range [][]int{{0}, {1024}, {1025}, {500, 500}, {2000, 9000}, {300_000}} {
			e, err := Explain(msg.Config{Protocol: protocol}, pieces, 1024)
			if err != nil {
				t.Fatal(err)
			}
			longest := 0
			for _, n := range pieces {
				longest = max(longest, n)
			}
			now := msg.Situation{
				EagerLimit: e.Config.EagerLimit, Forced: protocol, Large: e.Config.Large,
				Keys: true, Reads: true,
			}
			want := now.Choose(e.Size, longest)
			got := e.Plans[0].Choice
			if got.Protocol != want.Protocol || got.Why != want.Why {
				t.Errorf("%v by %v: %v, not %v", pieces, protocol, got, want)
			}
			if last := e.Plans[len(e.Plans)-1].Last; last != 3 {
				t.Errorf("%v by %v: %d messages", pieces, protocol, last)
			}
		}
	}
}

// TestExplainRefuses: what is out of range is no message, and costs nothing.
func TestExplainRefuses(t *testing.T) {
	for _, pieces := range [][]int{
		{-1}, {MaxSize + 1}, {MaxSize, 1}, make([]int, MaxPieces+1),
	} {
		_, err := Explain(msg.Config{}, pieces, 1024)
		if !errors.Is(err, ErrConfig) {
			t.Errorf("%d pieces: %v", len(pieces), err)
		}
	}
	_, err := Explain(msg.Config{EagerLimit: 1}, []int{1}, 1024)
	if !errors.Is(err, msg.ErrInvalid) {
		t.Error(err)
	}
}
