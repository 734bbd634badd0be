package rdmacm

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
	"xroce/roce/mem"
)

// Sizes of a ping in bytes that rping takes, and what both it and we default to.
const (
	RpingMinSize     = 23
	RpingMaxSize     = 64*1024 - 1
	RpingDefaultSize = 64
	RpingPort        = 7174
)

// Rping says how to ping. In each round the client tells where its text is, the
// server READs it and says so; the client tells where it wants it back, the server
// WRITEs it and says so.
type Rping struct {
	Addr   netip.AddrPort // of the server
	Source netip.Addr     // of the client, the zero Addr for the one that fits
	Count  int            // rounds of a client, 0 for no end; a server goes on until the end
	Size   int            // bytes of text, with the zero byte behind it
	// Validate compares what came back with what was sent.
	Validate bool
	// Verbose says the text of each round.
	Verbose bool
}

// A pinger is one end of a ping.
type pinger struct {
	Rping
	*line
	control *engine.MR // the info received, the info sent
	data    *engine.MR // the server's copy, the client's echo
	start   *engine.MR // the client's text, nil for a server
	rounds  int        // that are complete
	first   info       // of a server, if heard: what its client said when it came
	heard   bool
	seat    *seat // of a client of ServeRpings, else nil
}

// rpingSends is the depth of the send queue, that of rping.
const rpingSends = 16

func (s *Station) newPinger(c Rping, client bool) (_ *pinger, err error) {
	p := &pinger{Rping: c}
	if p.line, err = s.newLine(2 * rpingSends); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.free()
		}
	}()
	if p.control, err = p.register(2*infoLen, mem.LocalWrite); err != nil {
		return nil, err
	}
	if p.data, err = p.register(c.Size, mem.LocalWrite|mem.RemoteWrite); err != nil {
		return nil, err
	}
	if client {
		p.start, err = p.register(c.Size, mem.RemoteRead)
	}
	return p, err
}

// setup is the connection of rping.
func (p *pinger) setup() cm.Setup {
	return cm.Setup{
		PD: p.pd, Init: p.init(rpingSends, 2), Access: mem.RemoteRead | mem.RemoteWrite,
		ResponderRes: 1, InitiatorDepth: 1, LocalAddr: p.Source, Prepare: p.supply,
	}
}

// supply posts the receive of the next info.
func (p *pinger) supply(qp *engine.QP) error {
	return qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{p.control.SGE(0, infoLen)}})
}

// tell sends an info.
func (p *pinger) tell(i info) error {
	i.put(p.control.Bytes()[infoLen:])
	return p.conn.QP().PostSend(&roce.SendWR{
		Opcode: roce.OpSend, SGList: []roce.SGE{p.control.SGE(infoLen, infoLen)},
	})
}

// hear receives an info.
func (p *pinger) hear(ctx context.Context) (info, error) {
	wc, err := p.await(ctx, roce.WCRecv)
	if err != nil {
		return info{}, err
	}
	if wc.ByteLen != infoLen {
		return info{}, fmt.Errorf("received bogus data, size %d: rping says %d bytes",
			wc.ByteLen, infoLen)
	}
	i := parseInfo(p.control.Bytes())
	return i, p.supply(p.conn.QP())
}

// await waits until the one thing happens that may, but for SENDs that are complete.
func (p *pinger) await(ctx context.Context, what roce.WCOpcode) (roce.Completion, error) {
	for {
		wc, err := p.next(ctx)
		switch {
		case err != nil:
			return wc, err
		case wc.Opcode == what:
			p.seat.heard()
			return wc, nil
		case wc.Opcode != roce.WCSend:
			return wc, fmt.Errorf("the peer does not wait for its turn: %s before %s",
				wc.Opcode, what)
		}
	}
}

// text is the C string at the beginning of b.
func text(b []byte) []byte {
	before, _, _ := bytes.Cut(b, []byte{0})
	return before
}
