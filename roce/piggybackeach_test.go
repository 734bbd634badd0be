package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/wire"
)

// talk has two ends send rounds messages to each other in turn, over a wire with faults. Each is
// complete once at both ends, in order. It returns how many frames each end sent.
func talk(t *testing.T, ext roce.Extensions, rounds int, f faultFunc) [2]int {
	t.Helper()
	p := newRCPair(t, options{Ext: ext, RetryCnt: 7, MTU: wire.MTU256})
	p.fault = f
	say := func(e *endpoint, i int) {
		e.buf[8*i] = byte(i + 1)
		must(t, e.qp.PostSend(&roce.SendWR{
			WRID: uint64(i), Opcode: roce.OpSend, Flags: roce.SendSignaled,
			SGList: e.sge(8*i, 8),
		}))
	}
	for _, e := range p.ends {
		for i := range rounds {
			must(t, e.postRecv(&roce.RecvWR{WRID: uint64(i), SGList: e.sge(512+8*i, 8)}))
		}
	}
	var came, done [2]int
	say(p.ends[0], 0)
	for p.step() {
		for i, e := range p.ends {
			var wcs [4]roce.Completion
			n, err := e.recv.Poll(wcs[:])
			must(t, err)
			for _, wc := range wcs[:n] {
				if wc.Status != 0 || wc.WRID != uint64(came[i]) ||
					e.buf[512+8*came[i]] != byte(came[i]+1) {
					t.Fatalf("end %d got %v for message %d", i, wc, came[i])
				}
				came[i]++
				if i == 1 {
					say(e, came[1]-1)
				} else if came[0] < rounds {
					say(e, came[0])
				}
			}
			n, err = e.send.Poll(wcs[:])
			must(t, err)
			for _, wc := range wcs[:n] {
				if wc.Status != 0 || wc.WRID != uint64(done[i]) {
					t.Fatalf("end %d completed %v, not message %d", i, wc, done[i])
				}
				done[i]++
			}
		}
	}
	if want := [2]int{rounds, rounds}; came != want || done != want {
		t.Fatalf("%v came and %v were completed, of %d", came, done, rounds)
	}
	return p.sent
}

// TestEachFrameOfConversation: where acknowledges ride, with each way to recover, each frame of
// either end is lost, doubled, late and damaged, and each two are lost: nothing is lost, nothing
// is done or acknowledged twice. Without faults a message is a packet.
func TestEachFrameOfConversation(t *testing.T) {
	const rounds = 5
	for _, ext := range []roce.Extensions{
		0, roce.ExtSelectiveRepeat, roce.ExtSelectiveRepeat | roce.ExtReorderWindow,
	} {
		ext |= roce.ExtPiggybackAck
		sent := talk(t, ext, rounds, nil)
		if sent != [2]int{rounds + 1, rounds} { // the last message has nothing to ride on it
			t.Errorf("%s: %d frames for %d messages each way", ext, sent, rounds)
		}
		for _, one := range []fault{
			{Drop: true},
			{Dup: true},
			{Delay: 50 * roce.Microsecond},
			{Delay: 300 * roce.Millisecond},
			{Flip: 400},
		} {
			for first := range sent[0] + sent[1] {
				for second := range first + 1 {
					if second != first && (!one.Drop || testing.Short()) {
						continue // first alone
					}
					talk(t, ext, rounds, func(from, nth int, _ []byte) (f fault) {
						if at := 2*nth + from; at == first || at == second {
							f = one
						}
						return f
					})
				}
			}
		}
	}
}
