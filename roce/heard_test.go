package roce_test

import (
	"fmt"
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// newHearing makes a QP that tells of the first request in this state.
func newHearing(t *testing.T, typ roce.QPType, state roce.State) *script {
	t.Helper()
	s := newScriptIn(t, options{Type: typ}, state)
	s.qp.TellEstablished()
	return s
}

// heard gives the QP a WRITE of no bytes, so many PSNs ahead of what it expects.
func (s *script) heard(ahead int32) {
	s.t.Helper()
	p := request(wire.RCWriteOnly, s.it(uint32(ahead)), nil)
	switch s.qp.Type() {
	case roce.TypeUC:
		p.Opcode = wire.UCWriteOnly
	case roce.TypeXRCRecv:
		p = xrc(srqNum, p)
	}
	s.Recv(p)
}

// TestHeard: EventCommEst is raised for a request at the PSN that the peer was told, or next to it
// where packets were lost. Nobody else knows that PSN, so no other packet means that the peer has
// heard of us.
func TestHeard(t *testing.T) {
	for _, typ := range []roce.QPType{roce.TypeRC, roce.TypeUC, roce.TypeXRCRecv} {
		for _, state := range []roce.State{roce.StateRTR, roce.StateRTS} {
			t.Run(fmt.Sprintf("%s/%s", typ, state), func(t *testing.T) {
				for _, ahead := range []int32{-1, 0, 1, 6} { // -1 is a keepalive
					s := newHearing(t, typ, state)
					s.heard(ahead)
					s.ExpectEvents(roce.EventCommEst)
					s.heard(0)
					s.ExpectEvents()
				}
				s := newHearing(t, typ, state)
				for _, ahead := range []int32{7, -2, 1 << 12, 1<<12 + 1, 1<<23 - 1, -1 << 23} {
					s.heard(ahead)
					s.ExpectEvents()
				}
				s.heard(0)
				s.ExpectEvents(roce.EventCommEst)
			})
		}
	}
}

// TestHeardResponse: a response tells nothing, whatever its PSN, since nothing was asked.
func TestHeardResponse(t *testing.T) {
	s := newHearing(t, roce.TypeRC, roce.StateRTS)
	for _, p := range []roctest.Packet{
		ack(s.it(0)), ack(s.us(0)), ackWith(s.it(0), wire.NAKPSNSequenceError),
		response(wire.RCReadRespOnly, s.it(0), nil),
	} {
		s.Recv(p)
		s.ExpectEvents()
	}
	s.heard(0)
	s.ExpectEvents(roce.EventCommEst)
}
