package roce_test

import (
	"bytes"
	"testing"

	"xroce/roce"
	"xroce/roce/wire"
)

// TestPathBytes: two ends with full packets that are no path MTU move every byte, in as many
// packets as that takes, also when some are lost, with and without selective repeat.
func TestPathBytes(t *testing.T) {
	const full, length = 1420, 5*1420 + 3
	for _, op := range []roce.Opcode{roce.OpSend, roce.OpWrite, roce.OpRead} {
		for _, ext := range []roce.Extensions{0, roce.ExtSelectiveRepeat} {
			for _, lost := range []int{-1, 2, 5} {
				st := newStream(t, op, length, options{
					MTU: wire.MTU1024, PathBytes: full, Ext: ext,
				})
				from, to, data := st.p.ends[0], st.p.ends[1], 0
				if op == roce.OpRead {
					from, to, data = to, from, 1
				}
				for i := range length {
					from.buf[i] = byte(i * 7)
				}
				st.p.fault = func(sender, nth int, _ []byte) fault {
					return fault{Drop: sender == data && nth == lost}
				}
				st.run(1)
				if !bytes.Equal(from.buf[:length], to.buf[:length]) {
					t.Errorf("%s, packet %d lost: other data", op, lost)
				}
				if lost < 0 && st.p.sent[data] != 6 {
					t.Errorf("%s: %d packets of %d bytes for %d", op, st.p.sent[data], full,
						length)
				}
			}
		}
	}
}

// TestPathBytesOfOneEnd: an end that was told nothing of longer packets refuses them, and no data
// is taken for others.
func TestPathBytesOfOneEnd(t *testing.T) {
	o := options{MTU: wire.MTU1024}
	p := newRCPair(t, o)
	o.PathBytes = 1420
	o = o.filled()
	p.ends[0] = newEndpoint(t, qpnA, o)
	p.ends[0].connect(qpnB, o, roce.StateRTS)
	from, to := p.ends[0], p.ends[1]
	must(t, to.qp.PostRecv(&roce.RecvWR{SGList: to.sge(0, 8192)}))
	must(t, from.qp.PostSend(&roce.SendWR{Opcode: roce.OpSend, SGList: from.sge(0, 4000)}))
	p.run()
	wcs := drain(t, from.send)
	if len(wcs) != 1 || wcs[0].Status != roce.StatusRemInvReqErr {
		t.Errorf("%+v", wcs)
	}
}
