package perf

import (
	"bytes"
	"errors"
	"net"
	"testing"

	"xroce/engine/oob/perftest"
	"xroce/engine/sim"
	"xroce/roce"
)

// A groupConn is a connection of an end that names a group where it should name its GID.
type groupConn struct{ net.Conn }

// Write implements net.Conn.
func (c groupConn) Write(b []byte) (int, error) {
	own, group := []byte(":ff:ff:c0:00:02:01:"), []byte(":ff:ff:e0:00:00:01:")
	return c.Conn.Write(bytes.ReplaceAll(b, own, group))
}

// TestPeerIsNoGroup: a peer that names a group as where it is does not make this end send to
// all of it.
func TestPeerIsNoGroup(t *testing.T) {
	for _, typ := range []roce.QPType{roce.TypeRC, roce.TypeUC, roce.TypeUD} {
		t.Run(typ.String(), func(t *testing.T) {
			c := brief(Test{Verb: Send})
			c.Type, c.Both, c.Size = typ, true, 1024
			p := newPair(t, c)
			p.wrap = func(end int, conn net.Conn) net.Conn {
				if end == 0 {
					return groupConn{conn}
				}
				return conn
			}
			p.network.Observe(func(e *sim.Event) {
				if e.Kind == sim.Sent && e.Frame[0]&1 != 0 {
					t.Errorf("a frame for a group")
				}
			})
			errs := p.run(t)
			p.wantsNoResult(t, errs)
			if !errors.Is(errs[1], perftest.ErrMessage) {
				t.Errorf("the server: %v", errs[1])
			}
		})
	}
}
