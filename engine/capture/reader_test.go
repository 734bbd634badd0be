package capture

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// judged is a packet of which all is known.
var judged = Packet{
	At: 1_700_000_000_123_456_789, Dir: Inbound, Head: []byte("head of a frame"),
	Tail: []byte("its tail"),
	Info: Info{
		Queue: 3, QPN: 0x11, Peer: 0x12, HasWR: true, WRID: 7, Verdict: "refused",
		Reason: "resources",
	},
}

// everySecond wants each second packet.
type everySecond struct{ n int }

func (e *everySecond) Match(*Packet) bool { e.n++; return e.n%2 == 0 }

// captured writes packets and returns the file.
func captured(t *testing.T, config Config, packets ...Packet) []byte {
	t.Helper()
	var file bytes.Buffer
	w := New(&file, config)
	for i := range packets {
		w.Packet(&packets[i])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestReader reads back all that is said of a packet.
func TestReader(t *testing.T) {
	out := Packet{
		At: 5, Dir: Outbound, Head: []byte("x"),
		Info: Info{QPN: 1, Verdict: "sent"},
	}
	plain := Packet{At: 6, Dir: Outbound, Head: []byte("xy"), Len: 100}
	file := captured(t, Config{Interface: "xr0", Snap: 18}, judged, out, plain)
	r, err := NewReader(bytes.NewReader(file))
	if err != nil || r.Interface() != "xr0" {
		t.Fatal(err)
	}
	for i, want := range []Packet{
		{
			At: judged.At, Dir: Inbound, Head: []byte("head of a frameits"), Len: 23,
			Info: Info{Queue: 3}, Comment: "qp 0x000011 peer 0x000012 wr 7 refused: resources",
		},
		{At: 5, Dir: Outbound, Head: []byte("x"), Len: 1, Comment: "qp 0x000001 sent"},
		{At: 6, Dir: Outbound, Head: []byte("xy"), Len: 100},
	} {
		p, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if p.At != want.At || p.Dir != want.Dir || !bytes.Equal(p.Head, want.Head) ||
			p.Len != want.Len || p.Queue != want.Queue || p.Comment != want.Comment {
			t.Errorf("packet %d: %+v, want %+v", i, *p, want)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	want := Statistics{At: 6, Received: 3, Accepted: 3}
	if got, ok := r.Statistics(); !ok || got != want {
		t.Errorf("%+v, %t", got, ok)
	}
}

// TestCommentsInWireshark: tshark shows the comment, the queue and the direction.
func TestCommentsInWireshark(t *testing.T) {
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Skip("tshark is not installed")
	}
	path := filepath.Join(t.TempDir(), "c.pcapng")
	if err := os.WriteFile(path, captured(t, Config{Interface: "xr0"}, judged), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("tshark", "-r", path, "-T", "fields", "-e", "frame.comment",
		"-e", "frame.packet_flags_direction", "-e", "frame.interface_queue").Output()
	got := strings.TrimSpace(string(out))
	want := "qp 0x000011 peer 0x000012 wr 7 refused: resources\t0x00000001\t3"
	if err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
}

// TestFilter: what is not wanted is counted and not kept.
func TestFilter(t *testing.T) {
	file := captured(t, Config{Filter: &everySecond{}}, judged, judged, judged)
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err = r.Next(); err == nil; _, err = r.Next() {
		n++
	}
	got, _ := r.Statistics()
	if n != 1 || got.Received != 3 || got.Accepted != 1 {
		t.Errorf("%d packets, %+v, %v", n, got, err)
	}
}

// TestDamaged: whatever is wrong with a capture, reading it ends with an error and without
// one that is not there.
func TestDamaged(t *testing.T) {
	file := captured(t, Config{Interface: "xr0"}, judged, judged)
	read := func(b []byte) (n int, err error) {
		r, err := NewReader(bytes.NewReader(b))
		if err != nil {
			return 0, err
		}
		for _, err = r.Next(); err == nil; _, err = r.Next() {
			n++
		}
		return n, err
	}
	if n, err := read(file); n != 2 || !errors.Is(err, io.EOF) {
		t.Fatal(n, err)
	}
	for end := range file {
		if n, err := read(file[:end]); err == nil || n > 2 {
			t.Errorf("cut at %d: %d packets, %v", end, n, err)
		}
	}
	for at := range file {
		for _, bit := range []byte{1, 0x80, 0xff} {
			damaged := bytes.Clone(file)
			damaged[at] ^= bit
			if n, err := read(damaged); err == nil || n > 2 {
				t.Errorf("byte %d: %d packets, %v", at, n, err)
			}
		}
	}
}

// TestPacketDoesNotAllocate: neither one of which all is known, nor one that is not wanted.
func TestPacketDoesNotAllocate(t *testing.T) {
	w := New(io.Discard, Config{Filter: &everySecond{}})
	defer w.Close()
	p := judged
	if n := testing.AllocsPerRun(100, func() { w.Packet(&p) }); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}

// BenchmarkPacket is what a captured packet of 122 bytes costs who watches it.
func BenchmarkPacket(b *testing.B) {
	w := New(io.Discard, Config{})
	defer w.Close()
	p := judged
	p.At, p.Head, p.Tail = 0, make([]byte, 122), nil
	for b.Loop() {
		w.Packet(&p)
	}
	b.ReportMetric(float64(w.Dropped())/float64(b.N), "dropped/op")
}

// clocksApart is more than a time is off: the wall clock and the one that goes on are read one
// after the other, and somebody else may have the processor in between.
const clocksApart = time.Second

// TestTimeOfPackets: a packet that does not say when it passed did so when it was added, and none
// before another.
func TestTimeOfPackets(t *testing.T) {
	begin := time.Now().Add(-clocksApart).UnixNano()
	file := captured(t, Config{Interface: "xr0"}, Packet{Dir: Outbound}, Packet{Dir: Outbound})
	end := time.Now().Add(clocksApart).UnixNano()
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	last := begin
	for range 2 {
		p, err := r.Next()
		if err != nil || p.At < last || p.At > end {
			t.Fatalf("%d, %v: not from %d to %d", p.At, err, last, end)
		}
		last = p.At
	}
}

// TestTimeOfBursts: the packets of a burst have one time, which is that of the first that the
// filter wants, and another burst has a later one.
func TestTimeOfBursts(t *testing.T) {
	var file bytes.Buffer
	w := New(&file, Config{Interface: "xr0", Filter: &everySecond{}})
	const bursts = 2
	begun := time.Now()
	for range bursts {
		for at := time.Now(); time.Since(at) == 0; {
			continue // until the clock goes on
		}
		for i := range 6 {
			w.Packet(&Packet{Dir: Outbound, Together: i > 0})
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	last := begun.Add(-clocksApart).UnixNano()
	for range bursts {
		var first int64
		for i := range 3 {
			p, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = p.At
			}
			if p.At <= last || p.At != first {
				t.Errorf("%d, not %d, which is behind %d", p.At, first, last)
			}
		}
		last = first
	}
}

// TestLongReason: what somebody has to say of a packet is cut where it is too long, and the packet
// behind it can be read.
func TestLongReason(t *testing.T) {
	for _, n := range []int{1, 100, maxOption - 60, maxOption, 1 << 17} {
		long := judged
		long.Reason = strings.Repeat("x", n)
		r, err := NewReader(bytes.NewReader(captured(t, Config{}, long, judged)))
		if err != nil {
			t.Fatal(err)
		}
		want := string(long.AppendComment(nil))
		p, err := r.Next()
		if err != nil || p.Comment != want[:min(len(want), maxOption)] {
			t.Fatalf("%d: a comment of %d bytes, %v", n, len(p.Comment), err)
		}
		if p, err = r.Next(); err != nil || p.Comment != string(judged.AppendComment(nil)) {
			t.Errorf("%d: behind it %q, %v", n, p.Comment, err)
		}
	}
}
