package roce_test

import (
	"bytes"
	"fmt"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// eachFlip calls f with every frame that differs from a right one in one bit of its
// first n bytes, from the IP header on.
func eachFlip(frame []byte, n int, f func(bit int, frame []byte)) {
	damaged := bytes.Clone(frame)
	for bit := 8 * frameIP; bit < 8*n; bit++ {
		copy(damaged, frame)
		damaged[bit/8] ^= 1 << (bit % 8)
		f(bit, damaged)
	}
}

// masked reports whether the ICRC does not cover a byte of an IPv4 frame (IBA
// annex A17): then a changed bit there is no damage. The IPv4 header has a sum of
// its own.
func masked(at int) bool {
	return at == frameUDP+6 || at == frameUDP+7 || at == frameBTH+4
}

// TestHostileBitWithOldICRC: one wrong bit in any header of any opcode, in the payload
// or in the ICRC itself, that is else as it was: the packet never reaches the QP.
func TestHostileBitWithOldICRC(t *testing.T) {
	flips := 0
	for _, k := range kinds {
		if k.typ == roce.TypeRawPacket || k.srq && k.typ != roce.TypeXRCRecv {
			continue
		}
		s := newStand(t, k, roce.StateRTS)
		for op := range wire.Opcodes() {
			if takes, _ := meets(k, roce.StateRTS, op); !takes {
				continue
			}
			frame := s.frameOf(op)
			s.frozen(fmt.Sprintf("%s with a bit wrong", op), func() {
				eachFlip(frame, len(frame), func(bit int, f []byte) {
					if masked(bit / 8) {
						return
					}
					flips++
					before := s.count[counter.RcvdPkts]
					if s.giveFrame(f); s.count[counter.RcvdPkts] != before {
						t.Fatalf("%s: %s with bit %d of byte %d wrong was taken", k.name, op, bit%8,
							bit/8)
					}
				})
			})
		}
	}
	if flips < 100_000 {
		t.Errorf("only %d bits were wrong", flips)
	}
}

// TestHostileBitOutsideICRC: what the ICRC does not cover may change on the way,
// and makes no difference.
func TestHostileBitOutsideICRC(t *testing.T) {
	for _, at := range []int{frameIP + 1, frameIP + 8, frameUDP + 6, frameUDP + 7, frameBTH + 4} {
		for bit := range 8 {
			s := newStand(t, kinds[0], roce.StateRTS)
			frame := s.frameOf(wire.RCSendOnly)
			frame[at] ^= 1 << bit
			sumIPv4(frame)
			s.giveFrame(frame)
			s.check()
			if s.recvDone != 1 {
				t.Errorf("bit %d of byte %d: %d receives done", bit, at, s.recvDone)
			}
		}
	}
}

// TestHostileBitWithNewICRC: the same with all checksums made right again, in the headers
// and the first bytes behind them: whoever did it is an attacker, not noise. The fields
// decide, and nothing that the QP does goes beyond its rights.
func TestHostileBitWithNewICRC(t *testing.T) {
	for _, k := range kinds {
		if k.typ == roce.TypeRawPacket {
			continue
		}
		for _, state := range []roce.State{roce.StateRTR, roce.StateRTS} {
			for op := range wire.Opcodes() {
				if takes, _ := meets(k, state, op); takes {
					sealedFlips(t, k, state, op)
				}
			}
		}
	}
}

func sealedFlips(t *testing.T, k kind, state roce.State, op wire.Opcode) {
	t.Helper()
	s := newStand(t, k, state)
	frame := s.frameOf(op)
	fresh := s.qp.Snapshot()
	headers := frameBTH + wire.BTHLen + int(op.Spec().HeaderLen)
	eachFlip(frame, min(headers+8, len(frame)-wire.ICRCLen), func(bit int, f []byte) {
		if testing.Short() && bit%7 != 0 {
			return
		}
		transport := f[frameBTH : len(f)-wire.ICRCLen]
		sealed := bytes.Clone(f)
		sumIPv4(sealed)
		sealed = append(sealed[:frameBTH], transport...)
		sealed = appendICRC(sealed)
		s.giveFrame(sealed)
		s.sendAll()
		s.check()
		now := s.qp.Snapshot()
		now.LastDrop, now.RecvPosted = fresh.LastDrop, fresh.RecvPosted
		if now != fresh {
			s.end()
			s = newStand(t, k, state)
		}
	})
	s.end()
}

// appendICRC seals an IPv4 frame, bit by bit, independently of the code under
// test.
func appendICRC(frame []byte) []byte {
	crc := ^uint32(0)
	for i, b := range append(bytes.Repeat([]byte{0xff}, 8), frame[frameIP:]...) {
		switch i - 8 + frameIP {
		case frameIP + 1, frameIP + 8, frameIP + 10, frameIP + 11, frameUDP + 6, frameUDP + 7,
			frameBTH + 4:
			b = 0xff
		}
		crc ^= uint32(b)
		for range 8 {
			crc = crc>>1 ^ 0xedb88320*(crc&1)
		}
	}
	crc = ^crc
	return append(frame, byte(crc), byte(crc>>8), byte(crc>>16), byte(crc>>24))
}
