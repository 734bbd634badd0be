package msg_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"

	"xroce/engine/msg"
	rmsg "xroce/roce/msg"
)

// TestStreamOverRails: bytes go both ways, in writes of all lengths, while one rail after the other
// is cut and heals, and both for a while. What is read is what was written, to the last byte.
func TestStreamOverRails(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWires(t, 2, msg.Options{})
	var at []netip.AddrPort
	for _, a := range w.at {
		at = append(at, netip.AddrPortFrom(a.Addr(), a.Port()+1))
	}
	l, err := w.endpoints[1].ListenStream(at[0], at[1:]...)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) }) // further rails come as long as it listens
	accepted := make(chan *msg.Stream, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			close(accepted)
			return
		}
		accepted <- c.(*msg.Stream)
	}()
	sa, err := w.endpoints[0].DialStream(within(t), at[0], at[1:]...)
	must(t, err)
	sb := <-accepted
	streams := []*msg.Stream{sa, sb}
	up := func(want int) {
		for _, s := range streams {
			upAt(t, want, s.Rails)
		}
	}
	up(2)
	stop, results := make(chan struct{}), make(chan error, 4)
	for i, s := range streams {
		total := make(chan int, 1)
		go func() { results <- writeUntil(s, byte(i), stop, total) }()
		go func() { results <- readAll(streams[1-i], byte(i), total) }()
	}
	for round := range 4 {
		w.cut(t, round%2, true)
		up(1)
		w.cut(t, round%2, false)
		up(2)
	}
	w.cut(t, 0, true)
	w.cut(t, 1, true)
	up(0)
	w.cut(t, 0, false)
	w.cut(t, 1, false)
	up(2)
	close(stop)
	for range cap(results) {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	for host, e := range w.endpoints {
		n := e.Counters()
		t.Logf("host %d: %d rails lost, %d changes, %d items again", host, n[rmsg.RailsLost],
			n[rmsg.Resumed], n[rmsg.SentAgain])
		if n[rmsg.Resumed] == 0 || n[rmsg.SentAgain] == 0 {
			t.Errorf("host %d: %d changes, %d items again", host, n[rmsg.Resumed],
				n[rmsg.SentAgain])
		}
	}
	for _, s := range streams {
		must(t, s.Close())
	}
}

// byteAt is the byte of a direction at a place in its stream.
func byteAt(way byte, at int) byte { return byte(at) ^ byte(at>>8)*31 ^ byte(at>>16)*17 ^ way<<7 }

// writeUntil writes until it is told to stop, ends its direction, and tells how many bytes it has
// written.
func writeUntil(s *msg.Stream, way byte, stop chan struct{}, total chan int) error {
	r := rand.New(rand.NewPCG(uint64(way), 1))
	buf, at := make([]byte, 200_000), 0
	defer func() { total <- at }()
	for {
		select {
		case <-stop:
			return s.CloseWrite()
		default:
		}
		p := buf[:1+r.IntN(1<<r.IntN(18))]
		for i := range p {
			p[i] = byteAt(way, at+i)
		}
		n, err := s.Write(p)
		if at += n; err != nil {
			return fmt.Errorf("written %d bytes: %w", at, err)
		}
	}
}

// readAll reads to the end, and wants what was written.
func readAll(s *msg.Stream, way byte, total chan int) error {
	buf, at := make([]byte, 100_000), 0
	for {
		n, err := s.Read(buf)
		for i, b := range buf[:n] {
			if b != byteAt(way, at+i) {
				return fmt.Errorf("byte %d is wrong", at+i)
			}
		}
		switch at += n; {
		case err == io.EOF:
			if wrote := <-total; wrote != at {
				return fmt.Errorf("read %d bytes of %d", at, wrote)
			}
			return nil
		case err != nil:
			return fmt.Errorf("read %d bytes: %w", at, err)
		}
	}
}
