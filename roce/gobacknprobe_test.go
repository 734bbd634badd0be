package roce_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// newMeasured is a script with go-back-N, at a time that is not the first of all, that has
// lost a packet and measured a round trip of 10 us, PSN 0.
func newMeasured(t *testing.T, o options) *script {
	t.Helper()
	s := newScript(t, o)
	s.now = roce.Second
	s.lose()
	s.trip(2, 10*roce.Microsecond)
	s.o.SQPSN = s.us(2)
	s.count[counter.Retransmits] = 0
	return s
}

// lose sends two packets, of which the second arrives at the second attempt.
func (s *script) lose() {
	s.t.Helper()
	s.sendMore(0, 2)
	s.now += 10 * roce.Microsecond
	s.Recv(ackWith(s.us(1), wire.NAKPSNSequenceError))
	s.expectRound(1, 2)
	s.Recv(ack(s.us(1)))
	s.ExpectDeadline(0)
}

// expectRound wants the PSNs from one up to another, and then nothing.
func (s *script) expectRound(from, to uint32) {
	s.t.Helper()
	for n := from; n < to; n++ {
		s.Expect(roctest.PSN(s.us(n)))
	}
	s.ExpectNothing()
}

// sendMore sends packets of one SEND each from a PSN up to another; each asks.
func (s *script) sendMore(from, to uint32) {
	s.t.Helper()
	for n := from; n < to; n++ {
		s.Send(uint64(n), 4)
		s.Expect(roctest.PSN(s.us(n)))
	}
	s.ExpectNothing()
}

// TestBackProbeRepetitionLost: what was sent again for a NAK is lost, too. The responder
// says nothing more, so the oldest alone goes, and when it was that which was missing, all
// that was dropped behind it. It costs no retry.
func TestBackProbeRepetitionLost(t *testing.T) {
	s := newMeasured(t, options{SQPSN: 0xfffffe, RetryCnt: 1})
	s.sendMore(1, 6)
	s.Recv(ackWith(s.us(2), wire.NAKPSNSequenceError))
	s.expectRound(2, 6)
	s.probed(probeLeast, 2)
	s.now += 10 * roce.Microsecond
	s.Recv(ack(s.us(2)))
	s.expectRound(3, 6)
	s.Recv(ack(s.us(5)))
	s.ExpectDeadline(0)
	s.ExpectCount(counter.TailProbes, 1)
	s.ExpectCount(counter.Retransmits, 8)
	s.ExpectCount(counter.RetryExceeded, 0)
}

// TestBackProbeNAKLost: the NAK itself is lost. The answer to the duplicate tells up to
// where all came, and the packet behind that goes at once, alone.
func TestBackProbeNAKLost(t *testing.T) {
	s := newMeasured(t, options{})
	s.sendMore(1, 6)
	s.probed(probeLeast, 1)
	s.now += 10 * roce.Microsecond
	s.Recv(ack(s.us(3)))
	s.Expect(roctest.PSN(s.us(4)), roctest.AckReq(true))
	s.ExpectNothing()
	s.now += 10 * roce.Microsecond
	s.Recv(ack(s.us(4)))
	s.expectRound(5, 6)
	s.ExpectCount(counter.TailProbes, 2)
	s.ExpectCount(counter.Retransmits, 3)
}

// TestBackProbeLatePeer: the peer was only late. Its acknowledges of what came cost two
// packets that go for nothing, and no repetition.
func TestBackProbeLatePeer(t *testing.T) {
	s := newMeasured(t, options{})
	s.sendMore(1, 9)
	s.probed(probeLeast, 1)
	s.Recv(ack(s.us(2)))
	s.expectRound(3, 4)
	for n := range uint32(4) {
		s.Recv(ack(s.us(5 + n)))
		s.ExpectNothing()
	}
	s.ExpectDeadline(0)
	s.sendMore(9, 10)
	s.ExpectCount(counter.Retransmits, 2)
}

// TestBackProbeNotNeeded: what comes between the decision and the packet makes it
// needless, be it an acknowledge or a NAK.
func TestBackProbeNotNeeded(t *testing.T) {
	s := newMeasured(t, options{})
	s.sendMore(1, 5)
	s.Advance(probeLeast)
	s.Recv(ack(s.us(3)))
	s.ExpectNothing()
	s.ExpectCount(counter.Retransmits, 0)

	s = newMeasured(t, options{})
	s.sendMore(1, 5)
	s.Advance(probeLeast)
	s.Recv(ackWith(s.us(1), wire.NAKPSNSequenceError))
	s.expectRound(1, 5)
	s.Recv(ack(s.us(1)))
	s.ExpectNothing()
}

// TestBackProbeInVain: each waits twice as long, and the local ACK timeout comes when it
// would have come without any.
func TestBackProbeInVain(t *testing.T) {
	s := newMeasured(t, options{})
	s.sendMore(1, 3)
	for i := range 8 {
		s.probed(probeLeast<<i, 1)
	}
	s.ExpectDeadline(ackTimer - 255*probeLeast)
	s.Advance(ackTimer - 255*probeLeast)
	s.ExpectCount(counter.LocalAckTimeout, 1)
	s.expectRound(1, 3)
}

// TestBackProbeAnswered: the answer to a probe takes the doubling back however soon it comes;
// two round trips are the time for the next.
func TestBackProbeAnswered(t *testing.T) {
	s := newMeasured(t, options{})
	s.sendMore(1, 2)
	s.now += 1610 * roce.Microsecond // that and 10 us are 210 us on average (RFC 6298)
	s.Recv(ack(s.us(1)))
	s.sendMore(2, 5)
	s.probed(420*roce.Microsecond, 2)
	s.now += roce.Microsecond
	s.Recv(ack(s.us(2)))
	s.expectRound(3, 5)
	s.ExpectDeadline(420 * roce.Microsecond)
}

// TestBackProbeNever: nobody is probed before a round trip was measured, whose path has lost
// nothing, for what is answered with data, while it asked for patience, or without a longer
// timer.
func TestBackProbeNever(t *testing.T) {
	s := newScript(t, options{})
	s.now = roce.Second
	s.sendMore(0, 2)
	s.Recv(ackWith(s.us(0), wire.NAKPSNSequenceError))
	s.expectRound(0, 2)
	s.ExpectDeadline(ackTimer)

	s = newScript(t, options{})
	s.now = roce.Second
	s.trip(0, 10*roce.Microsecond)
	s.sendMore(1, 3)
	s.ExpectDeadline(ackTimer)

	s = newMeasured(t, options{})
	s.Read(1, 8)
	s.Expect(roctest.PSN(s.us(1)))
	s.sendMore(2, 4)
	s.Advance(probeLeast)
	s.ExpectNothing()
	s.ExpectDeadline(ackTimer - probeLeast)

	s = newMeasured(t, options{})
	s.sendMore(1, 3)
	s.Recv(ackWith(s.us(1), wire.RNRSyndrome(20)))
	s.ExpectDeadline(rnr20)

	s = newScript(t, options{Attr: func(a *roce.Attr) { a.Timeout = 0 }})
	s.now = roce.Second
	s.lose()
	s.sendMore(2, 4)
	s.ExpectDeadline(0)
}

// TestBackProbeBeforeREAD: an answer to the probe that reaches over a READ says nothing of
// the READ's data, which may be on its way.
func TestBackProbeBeforeREAD(t *testing.T) {
	s := newMeasured(t, options{})
	s.sendMore(1, 2)
	s.Read(2, 8)
	s.Expect(roctest.PSN(s.us(2)))
	s.sendMore(3, 4)
	s.probed(probeLeast, 1)
	s.Recv(ack(s.us(3)))
	s.ExpectNothing()
	s.Recv(response(wire.RCReadRespOnly, s.us(2), make([]byte, 8)), ack(s.us(3)))
	s.ExpectDeadline(0)
	s.ExpectCount(counter.ImpliedNAK, 0)
}

// TestBackEfficiency: under loss either way go-back-N keeps its link busy for at least so
// many percent of the time, with frames and their repetitions: 97 at 1 % loss.
func TestBackEfficiency(t *testing.T) {
	const frame, messages = roce.Microsecond, 1000
	for _, tt := range []struct {
		op            roce.Opcode
		loss          int // percent
		delay         roce.Time
		busy, timeout int // percent at least, and local ACK timeouts at most
	}{
		{roce.OpWrite, 1, 10 * roce.Microsecond, 97, 0},
		{roce.OpSend, 1, 10 * roce.Microsecond, 97, 0},
		{roce.OpWrite, 1, 100 * roce.Microsecond, 97, 0},
		{roce.OpWrite, 5, 10 * roce.Microsecond, 85, 5},
	} {
		t.Run(fmt.Sprintf("%s at %d %%, %d us", tt.op, tt.loss, tt.delay/1000), func(t *testing.T) {
			st := newStream(t, tt.op, 64<<10, options{MTU: wire.MTU1024, Window: 512})
			st.p.gap, st.p.delay = frame, tt.delay
			r := rand.New(rand.NewPCG(1, 2))
			st.p.fault = func(int, int, []byte) fault { return fault{Drop: r.IntN(100) < tt.loss} }
			begin := st.p.now
			st.run(messages)
			took, c := st.p.now-begin, st.p.ends[0].count
			busy := roce.Time(messages*64+c[counter.Retransmits]) * frame
			timeouts := int(c[counter.LocalAckTimeout])
			t.Logf("busy for %d us of %d: %d again, %d probes, %d timeouts", busy/1000,
				took/1000, c[counter.Retransmits], c[counter.TailProbes], timeouts)
			if busy*100 < took*roce.Time(tt.busy) || timeouts > tt.timeout {
				t.Errorf("busy for less than %d %%, or more than %d timeouts", tt.busy, tt.timeout)
			}
		})
	}
}
