package wire

import (
	"fmt"
	"testing"
)

// benchFrame is a sealed RC SEND only with n bytes of payload, and its template.
func benchFrame(tb testing.TB, n int) ([]byte, *Template, int) {
	tb.Helper()
	var t Template
	path := testPath(FramingV2IPv4)
	if err := t.Init(path); err != nil {
		tb.Fatal(err)
	}
	frame := make([]byte, t.FrameLen(BTHLen+n))
	b := frame[t.Len():]
	BTH{Opcode: RCSendOnly, PKey: DefaultPKey, DestQP: 0x11, PSN: 0x64}.Put(b)
	for i := range n {
		b[BTHLen+i] = byte(i)
	}
	return frame[:t.Seal(frame, BTHLen+n, 1)], &t, BTHLen + n
}

var benchSizes = []int{0, 64, 1024, 4096}

func BenchmarkDecode(b *testing.B) {
	frame, _, _ := benchFrame(b, 64)
	var p Packet
	b.ReportAllocs()
	for b.Loop() {
		if p.Decode(frame, nil) != OK {
			b.Fatal("not OK")
		}
	}
}

func BenchmarkDecodeVerify(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			frame, _, _ := benchFrame(b, n)
			var p Packet
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				if p.Decode(frame, nil) != OK || !p.VerifyICRC() {
					b.Fatal("not OK")
				}
			}
		})
	}
}

func BenchmarkSeal(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			frame, t, n := benchFrame(b, n)
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				t.Seal(frame, n, 1)
			}
		})
	}
}

func BenchmarkBTHPut(b *testing.B) {
	var buf [BTHLen]byte
	h := BTH{Opcode: RCSendOnly, PKey: DefaultPKey, DestQP: 0x11, PSN: 0x64, AckReq: true}
	for b.Loop() {
		h.Put(buf[:])
	}
}

func BenchmarkVCRC(b *testing.B) {
	buf := make([]byte, 1024)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		VCRC(buf)
	}
}
