package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestFenceOfAll: a fenced request begins when all READs, atomics and their like before
// it are complete; SENDs and WRITEs it does not wait for.
func TestFenceOfAll(t *testing.T) {
	responses := map[roce.Opcode]func(psn wire.PSN) roctest.Packet{
		roce.OpRead: func(psn wire.PSN) roctest.Packet {
			return response(wire.RCReadRespOnly, psn, make([]byte, 8))
		},
		roce.OpFetchAdd: func(psn wire.PSN) roctest.Packet { return atomicAck(psn, 1) },
		roce.OpCmpSwap:  func(psn wire.PSN) roctest.Packet { return atomicAck(psn, 1) },
		roce.OpFlush: func(psn wire.PSN) roctest.Packet {
			return response(wire.RCReadRespOnly, psn, nil)
		},
		roce.OpAtomicWrite: func(psn wire.PSN) roctest.Packet {
			return response(wire.RCReadRespOnly, psn, nil)
		},
	}
	for before, response := range responses {
		for _, op := range []roce.Opcode{
			roce.OpSend, roce.OpWrite, roce.OpRead, roce.OpFetchAdd, roce.OpAtomicWrite,
			roce.OpFlush,
		} {
			s := newScript(t, options{})
			post := func(op roce.Opcode, flags roce.SendFlags) {
				wr := roce.SendWR{Opcode: op, Flags: flags, SGList: s.sge(0, 8), Flush: 1}
				if op == roce.OpFlush {
					wr.SGList = nil
				}
				s.Post(wr)
			}
			s.Send(0, 4)
			post(before, 0)
			s.Send(0, 4)
			post(op, roce.SendFence)
			s.Send(0, 4)
			for i := range uint32(3) {
				s.Expect(roctest.PSN(s.us(i)))
			}
			s.ExpectNothing()
			s.Recv(ack(s.us(0)))
			s.ExpectNothing()
			s.Recv(response(s.us(1)))
			s.Expect(roctest.PSN(s.us(3)))
			s.Expect(roctest.PSN(s.us(4)), roctest.Opcode(wire.RCSendOnly))
		}
	}
}
