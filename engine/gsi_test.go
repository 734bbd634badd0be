package engine_test

import (
	"bytes"
	"errors"
	"testing"

	"xroce/engine"
	"xroce/roce"
)

// TestGSI sends a datagram between the QPs number 1 of two devices. Its Q_Key is
// that of the architecture whatever the work request says, each device has one,
// and its number is free again once it is closed.
func TestGSI(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		var seats [2]*seat
		for i, dev := range w.devs {
			s := seatOn(t, dev, engine.QPInit{})
			init := engine.QPInit{SendCQ: s.cq, RecvCQ: s.cq}
			for range 2 {
				s.qp.Close()
				qp, err := dev.CreateGSI(s.pd, init)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := dev.CreateGSI(s.pd, init); !errors.Is(err, engine.ErrBusy) {
					t.Errorf("a second one: %v", err)
				}
				s.qp = qp
			}
			init.Type = roce.TypeUD
			if _, err := dev.CreateGSI(s.pd, init); !errors.Is(err, roce.ErrInvalid) {
				t.Errorf("of type UD: %v", err)
			}
			if err := s.qp.Start(0); err != nil {
				t.Fatal(err)
			}
			seats[i] = s
		}
		a, b := seats[0], seats[1]
		mad := bytes.Repeat([]byte{7}, 256)
		copy(a.mr.Bytes(), mad)
		ah := a.handle(t, w.devs[1].GIDs()[gidIPv4], gidIPv4)
		b.recv(t, 1, 0, grhLen+256)
		a.send(t, roce.SendWR{
			Opcode: roce.OpSend, Flags: roce.SendSignaled, SGList: []roce.SGE{a.mr.SGE(0, 256)},
			AH: ah, RemoteQPN: 1, RemoteQKey: 5,
		})
		w.succeed(a.cq, 1)
		wc := w.succeed(b.cq, 1)[0]
		if wc.QPN != 1 || wc.SrcQP != 1 || wc.ByteLen != grhLen+256 {
			t.Errorf("completion %+v", wc)
		}
		if !bytes.Equal(b.mr.Bytes()[grhLen:][:256], mad) {
			t.Error("something else came")
		}
	})
}
