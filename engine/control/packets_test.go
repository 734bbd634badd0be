package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/capture"
	"xroce/engine/sim"
	"xroce/xsk"
	"xroce/xsk/xsktest/timeout"
)

// A stranger sends frames to a device that is shown.
type stranger struct {
	t    *testing.T
	port *sim.Port
}

// shown opens a device that a server shows, and a port that sends to it.
func shown(t *testing.T, s *Server) (*engine.Device, *stranger) {
	t.Helper()
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	port, err := network.NewPort(sim.PortConfig{
		Name: "xr1", MAC: [6]byte{2}, MTU: 4200,
		Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := engine.OpenLink(port, port, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	other, err := network.NewPort(sim.PortConfig{Name: "xr2", MAC: [6]byte{4}, MTU: 4200})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	s.Add(d)
	return d, &stranger{t, other}
}

// send sends a frame of 60 bytes that is no RoCE packet.
func (s *stranger) send(last byte) {
	s.t.Helper()
	frame := make([]byte, 60)
	copy(frame, []byte{2, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0x08, 0x06})
	frame[59] = last
	var tx [1]xsk.TxFrame
	for s.port.Reserve(tx[:]) != 1 {
		s.t.Fatal("no transmit frame")
	}
	tx[0].Len = copy(tx[0].Data, frame)
	s.port.Transmit(tx[:])
	if err := s.port.Flush(); err != nil {
		s.t.Fatal(err)
	}
}

// sendMany sends so many frames, all of which the device has seen then.
func (s *stranger) sendMany(dir string, frames uint64) {
	s.t.Helper()
	for sent := uint64(1); sent <= frames; sent++ {
		s.send(1)
		for sent%500 == 0 && counterOf(s.t, dir, "drop_not_roce") < sent {
			continue // the device goes on
		}
	}
}

// TestPackets: another process reads the packets of a device that it wants, cut, with what
// came of them, and the statistics when it stops.
func TestPackets(t *testing.T) {
	s, dir := listen(t)
	_, from := shown(t, s)
	for _, q := range []Query{
		{Device: "xr1", Snap: 20, Filter: "ether[59] == 2"},
		{PID: os.Getpid(), Snap: 20, Filter: "ether[59] == 2"},
	} {
		p, err := Watch(t.Context(), dir, q)
		if err != nil {
			t.Fatal(err)
		}
		if p.PID != os.Getpid() || p.Interface() != "xr1" {
			t.Errorf("process %d, interface %s", p.PID, p.Interface())
		}
		p.stopTime = timeout.Scaled(60 * time.Second) // it does heed it
		from.send(1)
		from.send(2)
		got, err := p.Next()
		if err != nil || len(got.Head) != 20 || got.Len != 60 || got.Dir != capture.Inbound ||
			got.Comment != "dropped: not_roce" {
			t.Fatalf("%+v, %v", got, err)
		}
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Next(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if stats, ok := p.Statistics(); !ok || stats.Received != 2 || stats.Accepted != 1 {
			t.Errorf("%+v, %t", stats, ok)
		}
		p.Close()
	}
}

// TestPacketsRefused: what is wrong with a request is said, and where nobody has the device.
func TestPacketsRefused(t *testing.T) {
	s, dir := listen(t)
	if _, err := Watch(t.Context(), dir, Query{PID: os.Getpid()}); err == nil ||
		!strings.Contains(err.Error(), "0 devices are open") {
		t.Error(err)
	}
	shown(t, s)
	var refused *RefusedError
	_, err := Watch(t.Context(), dir, Query{Device: "xr1", Filter: "qpn == x"})
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "^") {
		t.Error(err)
	}
	for _, q := range []Query{{Device: "eth7"}, {PID: os.Getpid() + 1}} {
		if _, err := Watch(t.Context(), dir, q); !errors.Is(err, ErrNoDevice) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if _, err := Watch(t.Context(), filepath.Join(dir, "none"), Query{Device: "xr1"}); !errors.Is(
		err, ErrNoDevice) {
		t.Error(err)
	}
}

// TestPacketsBounded: so many captures at once and no more; they leave room for other
// questions, and one that ends leaves room for the next.
func TestPacketsBounded(t *testing.T) {
	s, dir := listen(t)
	shown(t, s)
	var open []*Packets
	for range maxCaptures {
		p, err := Watch(t.Context(), dir, Query{Device: "xr1"})
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, p)
	}
	if _, err := Watch(t.Context(), dir, Query{Device: "xr1"}); err == nil ||
		!strings.Contains(err.Error(), "4 captures are under way") {
		t.Error(err)
	}
	if answers, err := Ask(t.Context(), dir, 0, 1, false); err != nil || len(answers) != 1 {
		t.Errorf("%+v, %v", answers, err)
	}
	open[0].Close()
	for end := time.Now().Add(timeout.Scaled(10 * time.Second)); ; {
		p, err := Watch(t.Context(), dir, Query{Device: "xr1"})
		if err == nil {
			open[0] = p
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
	}
	for _, p := range open {
		p.Close()
	}
}

// TestPacketsOfAReaderThatStops: it costs it packets, of which it is told when it goes on, and
// the device nothing. A server ends though nobody reads.
func TestPacketsOfAReaderThatStops(t *testing.T) {
	s, dir := listen(t)
	_, from := shown(t, s)
	p, err := Watch(t.Context(), dir, Query{Device: "xr1"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.stopTime = timeout.Scaled(60 * time.Second) // it does heed it
	const frames = 40_000                         // more than waits in the socket and in memory
	from.sendMany(dir, frames)
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	read, missing := uint64(0), uint64(0)
	for got, err := p.Next(); !errors.Is(err, io.EOF); got, err = p.Next() {
		if err != nil {
			t.Fatal(err)
		}
		read++
		missing += got.Missing
	}
	stats, _ := p.Statistics()
	if stats.Dropped == 0 || read+stats.Dropped != frames || missing > stats.Dropped {
		t.Errorf("%d read, %d missing before them, %+v", read, missing, stats)
	}
	stuck, err := Watch(t.Context(), dir, Query{Device: "xr1"})
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	for range frames {
		from.send(1)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// counterOf asks for a counter of the one device.
func counterOf(t *testing.T, dir, name string) uint64 {
	t.Helper()
	answers, err := AskStatistics(t.Context(), dir, 0, 0, CountAsBefore)
	if err != nil || len(answers) != 1 || len(answers[0].Counters) != 1 {
		t.Fatalf("%+v, %v", answers, err)
	}
	for _, c := range answers[0].Counters[0] {
		if c.Name == name {
			return c.Value
		}
	}
	t.Fatalf("no counter %s", name)
	return 0
}

// TestPacketsOfAForeignServer: what is no capture is not taken for one.
func TestPacketsOfAForeignServer(t *testing.T) {
	for name, says := range map[string]string{
		"noise":           "nonsense\n",
		"nothing":         "",
		"another version": `{"version":2,"pid":1}` + "\n",
		"no capture":      `{"version":1,"pid":1}` + "\nthis is no capture at all",
		"a huge block": `{"version":1,"pid":1}` + "\n" +
			"\x0a\x0d\x0d\x0a\xfc\xff\xff\xff\x4d\x3c\x2b\x1a",
		"counters of none": `{"version":1,"pid":1,"counters":[[]]}` + "\n",
	} {
		dir, end := poseAlone(t, func(conn net.Conn) {
			_ = json.NewDecoder(conn).Decode(new(Request))
			_, _ = fmt.Fprint(conn, says)
		})
		if p, err := Watch(t.Context(), dir, Query{PID: os.Getpid()}); err == nil {
			t.Errorf("%s: was taken for a capture", name)
			p.Close()
		} else if errors.Is(err, ErrNoDevice) {
			t.Errorf("%s: was not asked", name)
		}
		end()
	}
}

// TestPacketsOfASilentServer: who accepts and then says nothing is not waited for without an end,
// and others are asked.
func TestPacketsOfASilentServer(t *testing.T) {
	for name, says := range map[string]string{
		"no capture": `{"version":1,"pid":1}` + "\n",
		"half a capture": `{"version":1,"pid":1}` + "\n" +
			"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a",
	} {
		dir, end := poseAlone(t, func(conn net.Conn) {
			_, _ = fmt.Fprint(conn, says)
			_, _ = io.Copy(io.Discard, conn) // until the other end gives up
		})
		q := Query{PID: os.Getpid(), begin: time.Millisecond}
		if _, err := Watch(t.Context(), dir, q); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		end()
	}
}
