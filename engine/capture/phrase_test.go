package capture

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestPhrases: what a Writer writes with the help of what it wrote before is what it would have
// written without, also where packets of other queue pairs, directions and verdicts, or of the same
// place in its table, come in between.
func TestPhrases(t *testing.T) {
	w := &Writer{}
	frame := bytes.Repeat([]byte{0xa5}, 67)
	check := func(p *Packet) {
		t.Helper()
		want := appendPacket(nil, p, 1, p.Missing, 0, nil)
		// Behind something else, so that bytes from before are where the padding goes.
		room := bytes.Repeat([]byte{0xff}, len(want)+1000)
		got := appendPacket(room[:5], p, 1, p.Missing, 0, w.phraseOf(p))[5:]
		if !bytes.Equal(got, want) {
			t.Fatalf("%+v:\n%q, want\n%q", p.Info, got, want)
		}
	}
	infos := []Info{
		{Verdict: "sent", QPN: 0x11, Peer: 0x12, HasWR: true},
		{Verdict: "sent again", QPN: 0x11, Peer: 0x12, HasWR: true},
		{Verdict: "sent", QPN: 0x11, Peer: 0x12},
		{Verdict: "sent", QPN: 0x11, Peer: 0x12, HasWR: true, Queue: 3},
		{Verdict: "sent", QPN: 0x11 + phraseCount, Peer: 0x12, HasWR: true},
		{Verdict: "sent", QPN: 0x11, Peer: 0x12 + phraseCount, HasWR: true},
		{Verdict: "accepted", Peer: 0x12},
		{Verdict: "accepted"},
		{Verdict: "refused", Reason: "resources", QPN: 0xffffff, Peer: 0xfffffe, HasWR: true},
		{Verdict: "refused", Reason: "other", QPN: 0xffffff, Peer: 0xfffffe, HasWR: true},
		{},
	}
	for n := range 2 * phraseEnd {
		infos = append(infos, Info{
			Verdict: "dropped", Reason: strings.Repeat("r", n), QPN: 0x11, HasWR: n%2 == 0,
		})
	}
	for range 2 {
		for i := range infos {
			for n := range 6 {
				for _, dir := range []Direction{Inbound, Outbound} {
					p := Packet{Dir: dir, Head: frame[:60+n], Tail: frame[60+n:], Info: infos[i]}
					p.WRID, p.Missing = uint64(i), uint64(n%2)
					check(&p)
				}
			}
		}
	}
}

// TestDecimals: numbers of every length, and those beside.
func TestDecimals(t *testing.T) {
	numbers := []uint64{0, math.MaxUint64, math.MaxInt64, 100_001, 7_654_321}
	for n := uint64(1); ; n *= 10 {
		numbers = append(numbers, n-1, n, n+1, 9*n-1)
		if n > math.MaxUint64/10 {
			break
		}
	}
	for _, n := range numbers {
		var b [maxDecimal]byte
		if got := string(b[:putDecimal(&b, n)]); got != fmt.Sprint(n) {
			t.Errorf("%d is written as %s", n, got)
		}
	}
}
