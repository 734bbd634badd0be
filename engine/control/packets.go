package control

import (
	"context"
	"fmt"
	"net"
	"time"

	"xroce/engine/capture"
	"xroce/engine/capture/filter"
	"xroce/engine/internal/roster"
)

// captureBuffer is how many bytes of packets wait for a client.
const captureBuffer = 4 << 20

// packets answers a request for packets: when it is accepted, it returns what sends them.
func (s *Server) packets(q *Request) (stream func(net.Conn, bool), err error) {
	d, err := s.device(q.Device)
	if err != nil {
		return nil, err
	}
	wanted, err := filter.Compile(q.Filter)
	if err != nil {
		return nil, err
	}
	select {
	case s.captures <- struct{}{}:
	default:
		return nil, fmt.Errorf("%d captures are under way, and no more are served", maxCaptures)
	}
	config := capture.Config{
		Interface: d.Name(), Buffer: captureBuffer, Snap: q.Snap, Filter: wanted,
	}
	return func(conn net.Conn, answered bool) {
		defer func() { <-s.captures }()
		if answered {
			s.send(conn, d, config)
		}
	}, nil
}

// device finds one that is open by its name.
func (s *Server) device(name string) (d roster.Device, err error) {
	open := s.devices.Open()
	if name == "" && len(open) == 1 {
		return open[0], nil
	}
	for _, d := range open {
		if d.Name() == name {
			return d, nil
		}
	}
	if name == "" {
		return d, fmt.Errorf("%d devices are open, name one", len(open))
	}
	return d, fmt.Errorf("no device %q is open", name)
}

// send sends packets until the client ends it, by what it sends or by ending to send, or
// until the device is gone, or the server ends. A client that does not read misses packets, and
// holds up nobody for longer than endTime.
func (s *Server) send(conn net.Conn, d roster.Device, config capture.Config) {
	defer context.AfterFunc(s.patience, func() { conn.Close() })()
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return
	}
	// The client knows by the beginning of the capture that no packet is missed from then on.
	begun := make(chan struct{})
	w := capture.New(gate{conn, begun}, config)
	stop := d.Watch(w)
	close(begun)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		awaitWord(conn)
	}()
	select {
	case <-asked:
	case <-d.Done():
	case <-s.ctx.Done():
	case <-w.Ended(): // nobody reads
	}
	stop()
	_ = w.Close() // whom it did not reach knows that
	conn.Close()
	<-asked
}

// awaitWord waits until a client says more than the line feed behind its request, which nobody may
// have read yet, or ends to say anything.
func awaitWord(conn net.Conn) {
	for b := []byte{'\n'}; b[0] == '\n'; {
		if _, err := conn.Read(b); err != nil {
			return
		}
	}
}

// A gate is a connection to which nothing is written before it is open.
type gate struct {
	net.Conn
	open <-chan struct{} // closed when it is
}

// Write implements net.Conn.
func (g gate) Write(b []byte) (int, error) {
	<-g.open
	return g.Conn.Write(b)
}
