package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"xroce/engine/capture"
	"xroce/xsk/xsktest/timeout"
)

// manyFrames are more than a socket holds, and less than waits in memory.
const manyFrames = 10_000

// TestPacketsOfAProgramThatEnds: a reader that is behind gets all packets and the statistics,
// whether the device is closed before the server or not at all.
func TestPacketsOfAProgramThatEnds(t *testing.T) {
	for _, first := range []bool{true, false} {
		s, dir := listen(t)
		s.endTime = timeout.Scaled(time.Minute)
		d, from := shown(t, s)
		p, err := Watch(t.Context(), dir, Query{Device: "xr1"})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		from.sendMany(dir, manyFrames)
		if first {
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
		closed := make(chan error)
		go func() { closed <- s.Close() }()
		<-s.ctx.Done()
		read := 0
		for _, err = p.Next(); err == nil; _, err = p.Next() {
			read++
		}
		stats, known := p.Statistics()
		if read != manyFrames || !errors.Is(err, io.EOF) || !known || stats.Dropped != 0 {
			t.Errorf("closed first %t: %d read, %v, %+v, %t", first, read, err, stats, known)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	}
}

// TestPacketsOfAProgramThatWaitsForNobody: a reader that has stopped is cut off, and has what came
// whole when it goes on.
func TestPacketsOfAProgramThatWaitsForNobody(t *testing.T) {
	s, dir := listen(t)
	s.endTime = time.Millisecond
	_, from := shown(t, s)
	p, err := Watch(t.Context(), dir, Query{Device: "xr1"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	from.sendMany(dir, manyFrames)
	begun := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > timeout.Scaled(5*time.Second) {
		t.Errorf("it was held up for %v", took)
	}
	read := 0
	for _, err = p.Next(); err == nil; _, err = p.Next() {
		read++
	}
	if _, known := p.Statistics(); read == 0 || read == manyFrames || known || err != io.EOF {
		t.Errorf("%d read, %v, statistics %t", read, err, known)
	}
}

// TestPacketsOfAProgramThatIsKilled: packets end with the last that came whole.
func TestPacketsOfAProgramThatIsKilled(t *testing.T) {
	header := string(capture.AppendHeader([]byte(`{"version":1}`+"\n"), "xr1", 0))
	packet := string(capture.AppendPacket(nil, &capture.Packet{At: 1, Head: make([]byte, 60)}, 0))
	for _, cut := range []int{0, 4, 8, len(packet) - 1} {
		dir, end := poseAlone(t, func(conn net.Conn) {
			_, _ = bufio.NewReader(conn).ReadString('\n')
			_, _ = fmt.Fprint(conn, header+packet+packet[:cut])
		})
		p, err := Watch(t.Context(), dir, Query{PID: os.Getpid()})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Next(); err != nil || len(got.Head) != 60 {
			t.Errorf("cut at %d: %+v, %v", cut, got, err)
		}
		if _, err := p.Next(); err != io.EOF {
			t.Errorf("cut at %d: %v", cut, err)
		}
		if _, known := p.Statistics(); known {
			t.Errorf("cut at %d: there are statistics", cut)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		end()
	}
}

// TestPacketsForRequestsOfAnyLength: what is left of a request in the socket, the line feed behind
// one that fills what was read at once, does not end the capture.
func TestPacketsForRequestsOfAnyLength(t *testing.T) {
	s, dir := listen(t)
	_, from := shown(t, s)
	request := Request{Version: version, Get: getPackets, Device: "xr1", Filter: "not ip"}
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	for length := 508; length <= 514; length++ {
		filter := request.Filter + strings.Repeat(" ", length-len(text))
		p, err := Watch(t.Context(), dir, Query{Device: "xr1", Filter: filter})
		if err != nil {
			t.Fatal(err)
		}
		for range 10 { // it may take a while until it ends
			from.send(1)
			if _, err := p.Next(); err != nil {
				t.Errorf("a request of %d bytes: %v", length, err)
				break
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
