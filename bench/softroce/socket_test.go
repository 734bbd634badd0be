package softroce

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// readFrame reads the frame that has to be somewhere, and says where it was.
func readFrame(t *testing.T, from ...*os.File) (frame []byte, which int) {
	t.Helper()
	end := time.Now().Add(timeout.Scaled(10 * time.Second))
	type read struct {
		which int
		frame []byte
		err   error
	}
	came := make(chan read, len(from))
	for _, f := range from { // before any has a frame, and ends the time of the others
		if err := f.SetReadDeadline(end); err != nil {
			t.Fatal(err)
		}
	}
	for i, f := range from {
		go func() {
			buf := make([]byte, maxFrame)
			n, err := f.Read(buf)
			if err == nil { // nobody else has one
				for _, other := range from {
					_ = other.SetReadDeadline(time.Unix(1, 0))
				}
			}
			came <- read{i, buf[:max(0, n)], err}
		}()
	}
	which = -1
	var errs []error
	for range from {
		if r := <-came; r.err == nil {
			frame, which = r.frame, r.which
		} else {
			errs = append(errs, r.err)
		}
	}
	if which < 0 {
		t.Fatalf("no frame came: %v", errs)
	}
	return frame, which
}

// TestSocket: what goes into the socket of a site comes out of one queue of its tap, on each of
// them sometimes; what goes into a queue comes out of the socket, and nothing else does.
func TestSocket(t *testing.T) {
	xsktest.NeedRoot(t)
	site, err := NewSite(t.Context(), 2, 1500)
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	socket, err := site.Socket()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	hits := map[int]int{}
	for i := range 64 {
		there := udpFrame(uint16(0xc000 + i))
		send(t, socket, there)
		got, which := readFrame(t, site.Queues()...)
		if !bytes.Equal(got, there) {
			t.Fatalf("%x came out of the tap, not %x", got, there)
		}
		hits[which]++
		back := udpFrame(uint16(0x8000 + i))
		send(t, site.Queues()[i%2], back)
		if got, _ := readFrame(t, socket); !bytes.Equal(got, back) {
			t.Fatalf("%x came out of the socket, not %x", got, back)
		}
	}
	if len(hits) != 2 {
		t.Errorf("of 64 flows all came out of one queue: %s", fmt.Sprint(hits))
	}
}

// udpFrame is a frame of a UDP flow with a source port of its own, between hosts that are not
// here.
func udpFrame(port uint16) []byte {
	b := []byte{
		0x52, 0x54, 0, 0, 0, 2, 0x52, 0x54, 0, 0, 0, 1, 8, 0, // Ethernet
		0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0xb6, 0xc7, 192, 0, 2, 1, 192, 0, 2, 2, // IPv4
		byte(port >> 8), byte(port), 0x12, 0xb7, 0, 12, 0, 0, // UDP
		1, 2, 3, 4,
	}
	return append(b, make([]byte, 60-len(b))...)
}
