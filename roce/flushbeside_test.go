package roce_test

import (
	"errors"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// flushBeside are the options of a script whose region is made persistent when the test says
// so.
var flushBeside = options{
	Rights: persistentRights, Sync: func(int, int) error { return nil }, Beside: true,
}

// A syncBench is where an endpoint has memory made persistent.
type syncBench struct {
	started, cancelled []*mem.SyncJob
	full               bool
}

// StartSync implements mem.Syncer.
func (b *syncBench) StartSync(job *mem.SyncJob, _ uint32) bool {
	if !b.full {
		b.started = append(b.started, job)
	}
	return !b.full
}

// CancelSync implements mem.Syncer.
func (b *syncBench) CancelSync(job *mem.SyncJob) { b.cancelled = append(b.cancelled, job) }

// done ends the n-th job.
func (s *script) done(n int, err error) (waited bool) {
	return s.qp.SyncDone(s.now, s.syncs.started[n], err)
}

// flush is a FLUSH to persistence with the n-th PSN of the peer.
func (s *script) flush(n uint32) roctest.Packet {
	return s.flushRequest(s.it(n), wire.FlushPersistent, wire.FlushRange, 8, 100)
}

// TestFlushBeside: a FLUSH is answered when its memory is persistent. What was before it is
// answered before, and what came behind it waits.
func TestFlushBeside(t *testing.T) {
	s := newScript(t, flushBeside)
	s.put(0, 5)
	word := roctest.Packet{
		Opcode: wire.RCAtomicWrite, PSN: s.it(2), Payload: []byte("too soon"),
		RETH: wire.RETH{VA: s.word(0), RKey: s.region.RKey(), DMALen: 8},
	}
	s.Recv(s.readRequest(s.it(0), 512, 64), s.flush(1))
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(0)), roctest.MSN(1))
	s.ExpectNothing()
	s.Send(7, 8) // requests of its own go on
	s.Expect(roctest.Opcode(wire.RCSendOnly))
	s.Recv(word, s.writeRequest(wire.RCWriteOnly, s.it(3), 0, 8, []byte("too soon")))
	s.Recv(s.flush(1)) // which the peer asks for again
	s.ExpectNothing()
	s.ExpectWord(0, 5)
	s.ExpectDeadline(s.ackDeadline())
	if len(s.syncs.started) != 1 {
		t.Fatalf("%d jobs, want 1", len(s.syncs.started))
	}
	if !s.done(0, nil) || s.done(0, nil) {
		t.Error("the end of the job was not told once")
	}
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(1)), roctest.MSN(2),
		roctest.PayloadLen(0))
	s.ExpectAck(s.it(2), wire.RNRSyndrome(1), 2)
	s.ExpectNothing()
	s.Recv(s.flush(1)) // was executed
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(1)), roctest.MSN(2))
	s.Recv(word)
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(2)), roctest.MSN(3))
	if len(s.syncs.started) != 1 || len(s.syncs.cancelled) != 0 {
		t.Errorf("%d jobs, %d given up", len(s.syncs.started), len(s.syncs.cancelled))
	}
}

// ackDeadline is how far away the local ACK timer is that was started now.
func (s *script) ackDeadline() roce.Time { return 4096 << s.o.Timeout }

// TestFlushBesideFails: the FLUSH alone is refused, where it is in the order of answers.
func TestFlushBesideFails(t *testing.T) {
	s := newScript(t, flushBeside)
	s.Recv(s.readRequest(s.it(0), 512, 64), s.flush(1))
	s.Recv(s.writeRequest(wire.RCWriteOnly, s.it(2), 0, 8, make([]byte, 8)))
	s.done(0, errors.New("no disk"))
	s.ExpectState(roce.StateErr)
	s.ExpectEvents(roce.EventQPReqErr)
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(0)), roctest.MSN(1))
	s.ExpectAck(s.it(1), wire.NAKRemoteOperationalError, 1)
	s.ExpectNothing()
}

// TestFlushBesideNoRoom: a FLUSH that finds no room is tried again by the peer.
func TestFlushBesideNoRoom(t *testing.T) {
	s := newScript(t, flushBeside)
	s.syncs.full = true
	s.Recv(s.flush(0))
	s.ExpectAck(s.it(0), wire.RNRSyndrome(7), 0)
	s.ExpectCount(counter.SendRNR, 1)
	s.syncs.full = false
	s.Recv(s.flush(0))
	s.done(0, nil)
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(0)), roctest.MSN(1))
}

// TestFlushBesideGivenUp: a QP that is moved to ERR or RESET does not wait for the job, and
// its end is news for nobody.
func TestFlushBesideGivenUp(t *testing.T) {
	for _, to := range []roce.State{roce.StateErr, roce.StateReset} {
		s := newScript(t, flushBeside)
		s.Recv(s.flush(0))
		s.move(to)
		if len(s.syncs.cancelled) != 1 || s.syncs.cancelled[0] != s.syncs.started[0] {
			t.Errorf("%s: %d jobs given up", to, len(s.syncs.cancelled))
		}
		if s.done(0, errors.New("too late")) {
			t.Errorf("%s: somebody waited for the job", to)
		}
		s.ExpectNothing()
		if to == roce.StateErr {
			s.move(roce.StateReset)
		}
		s.connect(qpnB, s.o, roce.StateRTS)
		s.Recv(s.flush(0))
		if s.done(0, nil) {
			t.Errorf("%s: the job of an earlier connection ended that of a later", to)
		}
		s.ExpectNothing()
		s.done(1, nil)
		s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(0)), roctest.MSN(1))
	}
}
