package wire

import (
	"fmt"
	"hash/crc32"
	"testing"
	"time"
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

var benchSizes = []int{0, 64, 256, 1024, 4096}

// benchEach runs f for packets of each size. f gets a sealed frame, its template,
// the bytes from BTH through padding, and the packet decoded from the frame.
func benchEach(b *testing.B, f func(frame []byte, t *Template, n int, p *Packet) bool) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			frame, t, n := benchFrame(b, size)
			var p Packet
			p.Decode(frame, nil)
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				if !f(frame, t, n, &p) {
					b.Fatal("not OK")
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	benchEach(b, func(frame []byte, _ *Template, _ int, p *Packet) bool {
		return p.Decode(frame, nil) == OK
	})
}

func BenchmarkVerifyICRC(b *testing.B) {
	benchEach(b, func(_ []byte, _ *Template, _ int, p *Packet) bool { return p.VerifyICRC() })
}

func BenchmarkSeal(b *testing.B) {
	benchEach(b, func(frame []byte, t *Template, n int, _ *Packet) bool {
		return t.Seal(frame, n, 1) == len(frame)
	})
}

// BenchmarkPacket is what one packet costs one side that sends and receives it.
func BenchmarkPacket(b *testing.B) {
	benchEach(b, func(frame []byte, t *Template, n int, p *Packet) bool {
		return t.Seal(frame, n, 1) == len(frame) && p.Decode(frame, nil) == OK && p.VerifyICRC()
	})
}

func BenchmarkCopyTo(b *testing.B) {
	buf := make([]byte, 8192)
	benchEach(b, func(_ []byte, _ *Template, _ int, p *Packet) bool {
		_, ok := p.CopyTo(buf)
		return ok
	})
}

func BenchmarkBTHPut(b *testing.B) {
	var buf [BTHLen]byte
	h := BTH{Opcode: RCSendOnly, PKey: DefaultPKey, DestQP: 0x11, PSN: 0x64, AckReq: true}
	for b.Loop() {
		h.Put(buf[:])
	}
}

// BenchmarkVCRC runs hash/crc32 over the same bytes in turn and reports how much faster or
// slower that is: of each the fastest turn, because something else may have the processor
// in others.
func BenchmarkVCRC(b *testing.B) {
	for _, size := range []int{64, 256, 1536, 4096, 8188} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			buf := make([]byte, size)
			for i := range buf {
				buf[i] = byte(i)
			}
			const turn = 64 // calls between looks at the clock
			ours, theirs := time.Hour, time.Hour
			for b.Loop() {
				start := time.Now()
				for range turn {
					sinkVCRC += VCRC(buf)
				}
				middle := time.Now()
				for range turn {
					sinkICRC += crc32.ChecksumIEEE(buf)
				}
				ours, theirs = min(ours, middle.Sub(start)), min(theirs, time.Since(middle))
			}
			b.ReportMetric(turn*float64(size)/float64(ours.Nanoseconds()), "GB/s")
			b.ReportMetric(turn*float64(size)/float64(theirs.Nanoseconds()), "GB/s-crc32")
			b.ReportMetric(float64(theirs)/float64(ours), "ratio")
		})
	}
}

// What benchmarks compute, so that they do.
var (
	sinkVCRC uint16
	sinkICRC uint32
)
