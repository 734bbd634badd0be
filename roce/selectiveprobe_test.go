package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

const (
	probeFirst = roce.Millisecond // before a round trip was measured
	probeLeast = 200 * roce.Microsecond
	ackTimer   = 4096 * roce.Nanosecond << 14 // of the scripts
)

// newProbed is newSelective at a time that is not the first of all.
func newProbed(t *testing.T, o options) *script {
	t.Helper()
	s := newSelective(t, o)
	s.now = roce.Second
	return s
}

// probed waits for a probe, and wants it to be this packet and to cost no retry.
func (s *script) probed(after roce.Time, psn uint32) {
	s.t.Helper()
	s.ExpectDeadline(after)
	s.Advance(after - 1)
	s.ExpectNothing()
	before := s.qp.Snapshot().RetryLeft
	s.Advance(1)
	s.Expect(roctest.PSN(s.us(psn)), roctest.AckReq(true))
	s.ExpectNothing()
	s.ExpectCount(counter.LocalAckTimeout, 0)
	if left := s.qp.Snapshot().RetryLeft; left != before {
		s.t.Errorf("%d retries left, before the probe %d", left, before)
	}
}

// trip makes one round trip of a time.
func (s *script) trip(psn uint32, t roce.Time) {
	s.t.Helper()
	s.Send(0, 4)
	s.Expect(roctest.PSN(s.us(psn)))
	s.now += t
	s.Recv(ack(s.us(psn)))
	s.ExpectDeadline(0)
}

// TestProbeOfTheTail: when the end of what was sent is lost, the newest packet goes
// again, and its answer tells what is missing.
func TestProbeOfTheTail(t *testing.T) {
	s := newProbed(t, options{SQPSN: 0xfffffd})
	s.sendMany(6)
	s.probed(probeFirst, 5)
	s.Recv(sack(s.us(2), 1, 3)) // 2 and 4 are missing
	s.expectPSNs(2, 4)
	s.Recv(ack(s.us(5)))
	s.ExpectDeadline(0)
	s.ExpectCount(counter.TailProbes, 1)
	s.ExpectCount(counter.Retransmits, 3)
}

// TestProbeOfTheOldest: when a repetition of the oldest was not heard of, or the
// answer to the newest would be data, the oldest goes again, and so it does when a
// probe was in vain. The round goes on with the answer.
func TestProbeOfTheOldest(t *testing.T) {
	s := newProbed(t, options{})
	s.sendMany(6)
	s.Recv(sack(s.us(1), 1, 3)) // and 2 and 4 after it
	s.expectPSNs(1, 3)
	s.probed(probeFirst, 1)
	s.Recv(sack(s.us(3), 1)) // 3 went before the probe, which came
	s.expectPSNs(3)
	s.Recv(ack(s.us(5)))
	s.ExpectDeadline(0)

	s = newProbed(t, options{})
	s.sendMany(3)
	s.probed(probeFirst, 2)
	s.probed(2*probeFirst, 0)
	s.probed(4*probeFirst, 0)

	s = newProbed(t, options{})
	s.Send(0, 4)
	s.Read(1, 2*s.mtu())
	s.Expect(roctest.PSN(s.us(0)))
	s.Expect(roctest.PSN(s.us(1)))
	s.probed(probeFirst, 0)
	s.Recv(ack(s.us(0)))
	s.Recv(response(wire.RCReadRespFirst, s.us(1), make([]byte, s.mtu())))
	s.probed(3*probeFirst, 2) // the READ was answered after 1 ms, with half of that as variation
}

// TestProbeTime: the time without an answer that calls for a probe follows the round
// trip, doubles, and is never longer than the local ACK timer.
func TestProbeTime(t *testing.T) {
	s := newProbed(t, options{})
	s.trip(0, 10*roce.Microsecond)
	s.Send(1, 4)
	s.expectPSNs(1)
	for i := range 8 {
		s.probed(probeLeast<<i, 1) // 51 ms in all
	}
	s.Advance(0)
	s.ExpectDeadline(ackTimer - 255*probeLeast)

	// The first round trip counts with a variation of half of it.
	s = newProbed(t, options{})
	s.trip(0, roce.Millisecond)
	s.Send(1, 4)
	s.expectPSNs(1)
	s.ExpectDeadline(3 * roce.Millisecond)
	s.now += roce.Millisecond
	s.Recv(ack(s.us(1)))
	s.Send(2, 4)
	s.expectPSNs(2)
	s.ExpectDeadline(roce.Millisecond + 4*375*roce.Microsecond)

	// The peer may wait before it calls a gap a loss.
	s = newProbed(t, options{Ext: roce.ExtReorderWindow})
	s.trip(0, 10*roce.Microsecond)
	s.Send(1, 4)
	s.expectPSNs(1)
	s.ExpectDeadline(probeLeast + 100*roce.Microsecond)
}

// TestProbeSample: what was sent twice is no measure of the round trip, and the time
// stays as long as it was until there is one, or a probe is answered in time.
func TestProbeSample(t *testing.T) {
	s := newProbed(t, options{})
	s.trip(0, 10*roce.Microsecond)
	s.Send(1, 4)
	s.expectPSNs(1)
	s.probed(probeLeast, 1)
	s.now += roce.Millisecond
	s.Recv(ack(s.us(1)))
	s.Send(2, 4)
	s.expectPSNs(2)
	s.ExpectDeadline(2 * probeLeast)
	s.now += 10 * roce.Microsecond
	s.Recv(ack(s.us(2)))
	s.Send(3, 4)
	s.expectPSNs(3)
	s.ExpectDeadline(probeLeast)

	s.probed(probeLeast, 3)
	s.now += 10 * roce.Microsecond
	s.Recv(ack(s.us(3)))
	s.Send(4, 4)
	s.expectPSNs(4)
	s.ExpectDeadline(probeLeast)

	// What the peer keeps has arrived, too, and is not measured later.
	s = newProbed(t, options{})
	s.Post(roce.SendWR{Opcode: roce.OpWrite, RemoteAddr: 1, SGList: s.sge(0, 2*s.mtu())})
	s.Expect(roctest.PSN(s.us(0)), roctest.AckReq(false))
	s.Expect(roctest.PSN(s.us(1)), roctest.AckReq(true))
	s.now += 10 * roce.Microsecond
	s.Recv(sack(s.us(0), 1))
	s.expectPSNs(0)
	s.ExpectDeadline(probeLeast)
}

// TestProbeOnlyOurPeers: nobody is probed who cannot tell what is missing, nobody
// whose local ACK timer is off or shorter, and nobody who asked for patience.
func TestProbeOnlyOurPeers(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    options
		want roce.Time
	}{
		{"no extension", options{}, ackTimer},
		{"reorder window", options{Ext: roce.ExtReorderWindow}, ackTimer},
		{"short timer", options{Ext: roce.ExtSelectiveRepeat, Timeout: 1}, 8192},
		{"no timer", options{Ext: roce.ExtSelectiveRepeat, Attr: func(a *roce.Attr) {
			a.Timeout = 0
		}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, tt.o)
			s.sendMany(2)
			s.ExpectDeadline(tt.want)
		})
	}

	s := newProbed(t, options{})
	s.sendMany(3)
	s.Recv(ackWith(s.us(0), wire.RNRSyndrome(20))) // 10.24 ms
	s.ExpectDeadline(10240 * roce.Microsecond)
	s.Advance(10240 * roce.Microsecond)
	s.expectPSNs(0, 1, 2)
	s.ExpectDeadline(probeFirst)
}

// TestProbeOfTheRefused: the peer kept the oldest and then refused it for want of a
// receive, and the RNR NAK was lost.
func TestProbeOfTheRefused(t *testing.T) {
	s := newProbed(t, options{})
	s.sendMany(3)
	s.Recv(sack(s.us(0), 1, 2))
	s.expectPSNs(0)
	s.Recv(ack(s.us(0)))
	s.ExpectNothing()
	s.probed(probeFirst, 1)
}

// TestProbeAcknowledge: who asks with a duplicate hears of the gap again, of which the
// report was lost, and else what was executed.
func TestProbeAcknowledge(t *testing.T) {
	s := newProbed(t, options{})
	w := func(n uint32, asks bool) roctest.Packet {
		p := request(wire.RCWriteOnly, s.it(n), nil)
		p.AckReq = asks
		return p
	}
	s.Recv(w(0, false), w(2, false))
	s.expectSack(s.it(1), 1)
	s.Recv(w(0, true))
	s.expectSack(s.it(1), 1)
	s.Recv(w(1, false), w(0, true))
	s.ExpectAck(s.it(2), wire.ACKNoCredits, 3)
	s.ExpectNothing()
}

// TestSelectiveLostInARound: of two repetitions the first is lost again: that the
// second came tells so, before anything new does.
func TestSelectiveLostInARound(t *testing.T) {
	s := newProbed(t, options{})
	const trip = 40 * roce.Microsecond
	s.trip(0, trip)
	for n := range uint32(6) {
		s.Send(uint64(n), 4)
		s.expectPSNs(1 + n)
	}
	s.Recv(sack(s.us(1), 1, 2, 4)) // 1 and 4 are missing
	s.expectPSNs(1, 4)
	s.Recv(sack(s.us(1), 1, 2, 3, 4)) // so soon it may be the first 4
	s.ExpectNothing()
	s.now += trip / 2
	s.Recv(sack(s.us(1), 1, 2, 3, 4))
	s.expectPSNs(1)
	s.Recv(sack(s.us(1), 1, 2, 3, 4)) // no news
	s.ExpectNothing()
}
