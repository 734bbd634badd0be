package control

import (
	"encoding/json"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// A notedConn is a connection of which is noted what is done to it, and nothing else.
type notedConn struct {
	net.Conn
	note func(what string)
	said strings.Builder
}

// SetDeadline implements net.Conn.
func (c *notedConn) SetDeadline(at time.Time) error {
	c.note("deadline")
	if at.IsZero() {
		c.note("none")
	}
	return nil
}

// Write implements net.Conn.
func (c *notedConn) Write(b []byte) (int, error) {
	c.note("write")
	return c.said.Write(b)
}

// TestOurTimeIsNotTheClients: the time in which a client has to take its answer begins when that
// is written down, however long it is and whatever keeps this process meanwhile.
func TestOurTimeIsNotTheClients(t *testing.T) {
	s, _ := listen(t)
	s.Add(device(t))
	var did []string
	note := func(what string) { did = append(did, what) }
	s.marshal = func(v any) ([]byte, error) {
		note("marshal")
		return json.Marshal(v)
	}
	for _, q := range []Request{
		{Version: version, Get: getResources, Rows: 1},
		{Version: version, Get: getStatistics, Rows: 1},
		{Version: version, Get: getPackets, Device: "none"},
	} {
		did = nil
		conn := &notedConn{note: note}
		if _, err := s.answer(conn, &q, nil); err != nil {
			t.Errorf("%s: %v", q.Get, err)
		}
		if want := []string{"marshal", "deadline", "write"}; !slices.Equal(did, want) {
			t.Errorf("%s: %q, want %q", q.Get, did, want)
		}
		line := conn.said.String()
		if a, err := parseAnswer([]byte(line), &q); strings.Count(line, "\n") != 1 ||
			err != nil && q.Get != getPackets || a.PID == 0 {
			t.Errorf("%s: %q, %v", q.Get, line, err)
		}
	}
}
