package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/roce"
	rmsg "xroce/roce/msg"
)

// messagePort is where host 1 listens for messages.
const messagePort = 7480

// patience is longer than the demonstration.
const patience = roce.Time(time.Hour)

// A speech is what one connection of messages carries: messages of host 0, one after the other.
type speech struct {
	what     string        // they are about
	by       rmsg.Protocol // Auto lets it be chosen
	level    rmsg.Level
	messages []shownMessage
}

// A shownMessage has its size, and what it must say in the capture: the direction and the name
// of each frame, control message, READ and WRITE.
type shownMessage struct {
	size int
	says []string
	how  rmsg.Choice // it travelled, once it has
}

// speeches are one for each protocol, and one whose sender asks whether it was received.
func speeches() []*speech {
	return []*speech{
		{
			what:     "eager",
			messages: []shownMessage{{size: 64, says: []string{"> FRAME"}}},
		},
		{
			what: "eager, told when received", level: rmsg.Matched,
			messages: []shownMessage{{size: 64, says: []string{"> FRAME", "< MATCHED"}}},
		},
		{
			what: "provisioned", messages: []shownMessage{
				{size: 20_000, says: []string{"> PROVISION_REQ", "< PROVISION_ACK", "> FRAME"}},
				{size: 20_000, says: []string{"> FRAME"}},
			},
		},
		{
			what: "get", messages: []shownMessage{
				{size: 256 << 10, says: []string{"> RTS", "< READ", "> READ_RESPONSE", "< ATS"}},
			},
		},
		{
			what: "put", by: rmsg.Put, messages: []shownMessage{
				{size: 256 << 10, says: []string{"> RTS", "< RTR", "> WRITE", "> ATP", "< ATS"}},
			},
		},
		{
			what: "fragments", by: rmsg.Fragments, messages: []shownMessage{
				{size: 2000, says: []string{"> RTS", "< CTS", "> FRAME", "> FRAME", "< ATS"}},
			},
		},
	}
}

// playMessages sends messages by each protocol, over a connection of its own, so that the capture
// shows what each of them says.
func playMessages(ctx context.Context, c *cast) (err error) {
	var ends [2]*msg.Endpoint
	for host, dev := range c.dev {
		manager, err2 := cm.Open(dev, cm.Options{})
		if err2 != nil {
			return err2
		}
		defer func() { err = errors.Join(err, manager.Close()) }()
		ends[host], err2 = msg.Open(dev, manager, msg.Options{Machine: rmsg.Config{
			// Something else may keep the processors for a while: what is shown is not to
			// depend on that.
			Patience: patience, Crowded: patience, Idle: patience,
		}})
		if err2 != nil {
			return err2
		}
		defer func() { err = errors.Join(err, ends[host].Close()) }()
	}
	at, err := addressOf(c.dev[1])
	if err != nil {
		return err
	}
	listener, err := ends[1].Listen(at)
	if err != nil {
		return err
	}
	defer listener.Close()
	for _, s := range speeches() {
		if err := s.hold(ctx, c, ends[0], listener, at); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
		c.speeches = append(c.speeches, s)
	}
	return nil
}

// addressOf returns where a device can listen for messages.
func addressOf(dev *engine.Device) (netip.AddrPort, error) {
	for _, gid := range dev.GIDs() {
		if a := gid.Addr().Unmap(); a.Is4() {
			return netip.AddrPortFrom(a, messagePort), nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("device %s has no IPv4 address", dev.Name())
}

// hold connects, sends the messages, and closes.
func (s *speech) hold(
	ctx context.Context, c *cast, from *msg.Endpoint, listener *msg.Listener, at netip.AddrPort,
) error {
	type accepted struct {
		conn *msg.Conn
		err  error
	}
	peer := make(chan accepted, 1)
	go func() {
		conn, err := listener.Accept(ctx)
		peer <- accepted{conn, err}
	}()
	conn, err := from.Dial(ctx, at)
	if err != nil {
		listener.Close() // nobody else comes
		<-peer
		return err
	}
	other := <-peer
	if other.err != nil {
		return other.err
	}
	for i := range s.messages {
		m := &s.messages[i]
		if err := s.send(ctx, c, conn, other.conn, m); err != nil {
			return fmt.Errorf("%d bytes: %w", m.size, err)
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- other.conn.Close(ctx) }()
	return errors.Join(conn.Close(ctx), <-closed)
}

// send sends a message of random bytes and compares what comes.
func (s *speech) send(ctx context.Context, c *cast, from, to *msg.Conn, m *shownMessage) error {
	data, got := make([]byte, m.size), make([]byte, m.size+1)
	_, _ = rand.Read(data) // it never fails
	mark(data)
	sent := &msg.Send{Buffers: [][]byte{data}, Protocol: s.by, Level: s.level}
	if err := from.PostSend(sent); err != nil {
		return err
	}
	n, err := to.Receive(ctx, got)
	if err != nil {
		return err
	}
	if err := sent.Wait(ctx); err != nil {
		return err
	}
	m.how = sent.Choice
	c.check(n == m.size && bytes.Equal(got[:n], data),
		"a message of %d bytes, %s: %d came, which differ from byte %d on", m.size, s.what, n,
		firstDifference(got[:m.size], data))
	return nil
}
