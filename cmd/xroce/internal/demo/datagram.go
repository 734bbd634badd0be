package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// qkey is the Q_Key of both datagram QPs; wrongKey is none of theirs.
const (
	qkey     = 0x11223344
	wrongKey = 0x11223345
)

// hopLimit is that of the datagrams.
const hopLimit = 64

// A mailbox is a datagram QP of each host, with a region to send from and to
// receive to.
type mailbox struct {
	*pair
	tally
	*talk
	mr [2]*engine.MR
}

// room is the largest datagram with the 40 bytes of addresses in front.
func (m *mailbox) room() int { return wire.GRHLen + m.dev[0].ActiveMTU().Bytes() }

// playUD sends datagrams. Host 1 learns from each whom to answer.
func playUD(ctx context.Context, c *cast) error {
	p, err := c.create(both(roce.TypeUD))
	if err != nil {
		return err
	}
	defer p.disconnect()
	m := &mailbox{pair: p, tally: c.tally}
	for host, dev := range p.dev {
		if err := p.end[host].QP.Start(qkey); err != nil {
			return err
		}
		m.mr[host], err = dev.RegMR(p.pd[host], make([]byte, 2*m.room()), mem.LocalWrite)
		if err != nil {
			return err
		}
		defer m.mr[host].Deregister()
	}
	m.talk = c.listen(p)
	to, err := c.dev[0].CreateAH(ctx, c.pd[0], engine.AddressVector{
		DGID: p.end[1].Local.GID, SGIDIndex: p.end[0].SGIDIndex, HopLimit: hopLimit,
	})
	if err != nil {
		return err
	}
	for _, size := range c.sizes {
		size = min(size, c.dev[0].ActiveMTU().Bytes())
		if err := m.roundTrip(ctx, to, size); err != nil {
			return fmt.Errorf("datagram of %d bytes: %w", size, err)
		}
	}
	return m.misaddress(ctx, to)
}

// roundTrip sends a datagram, which the other host answers with the same bytes.
func (m *mailbox) roundTrip(ctx context.Context, to *roce.AH, size int) error {
	data := m.mr[0].Bytes()[m.room():][:size]
	_, _ = rand.Read(data) // it never fails
	mark(data)
	there := roce.SendWR{
		Opcode: roce.OpSend, AH: to, RemoteQPN: m.end[1].QP.QPN(), RemoteQKey: qkey,
	}
	sender, err := m.deliver(ctx, 0, &there, size)
	if err != nil {
		return err
	}
	got := m.mr[1].Bytes()
	m.check(bytes.Equal(got[wire.GRHLen:][:size], data), "datagram of %d bytes: it differs", size)

	// All that host 1 knows of the sender is what came with the datagram.
	back, err := m.dev[1].ReplyVector(got[:wire.GRHLen])
	if err != nil {
		return err
	}
	m.check(back.DGID == m.end[0].Local.GID, "datagram of %d bytes: it is from %s, not %s", size,
		back.DGID, m.end[0].Local.GID)
	from, err := m.dev[1].CreateAH(ctx, m.pd[1], back)
	if err != nil {
		return err
	}
	copy(got[m.room():], got[wire.GRHLen:][:size])
	answer := roce.SendWR{
		Opcode: roce.OpSendImm, Imm: uint32(size), AH: from, RemoteQPN: sender, RemoteQKey: qkey,
	}
	if _, err = m.deliver(ctx, 1, &answer, size); err != nil {
		return err
	}
	m.check(bytes.Equal(m.mr[0].Bytes()[wire.GRHLen:][:size], data),
		"answer of %d bytes: it differs", size)
	return nil
}

// deliver sends a datagram from one host to the other and returns the QP that the
// other was told it is from.
func (m *mailbox) deliver(
	ctx context.Context, from int, wr *roce.SendWR, size int,
) (sender uint32, err error) {
	to := 1 - from
	err = m.end[to].QP.PostRecv(&roce.RecvWR{SGList: []roce.SGE{m.mr[to].SGE(0, m.room())}})
	if err != nil {
		return 0, err
	}
	if err := m.post(from, wr, size); err != nil {
		return 0, err
	}
	want := [2]*roce.Completion{}
	want[from] = &roce.Completion{Opcode: roce.WCSend, QPN: m.end[from].QP.QPN()}
	want[to] = &roce.Completion{
		Opcode: roce.WCRecv, Flags: roce.WCGRH, QPN: m.end[to].QP.QPN(),
		ByteLen: uint32(wire.GRHLen + size), SrcQP: m.end[from].QP.QPN(),
	}
	if wr.Opcode == roce.OpSendImm {
		want[to].Flags |= roce.WCWithImm
		want[to].Imm = wr.Imm
	}
	what := fmt.Sprintf("datagram of %d bytes from host %d", size, from)
	if err := m.expect(ctx, m.tally, what, want); err != nil {
		return 0, err
	}
	return want[to].SrcQP, m.fence()
}

// post sends what lies behind the room for receives.
func (m *mailbox) post(from int, wr *roce.SendWR, size int) error {
	wr.SGList = []roce.SGE{m.mr[from].SGE(m.room(), size)}
	if err := m.fence(); err != nil {
		return err
	}
	if err := m.end[from].QP.PostSend(wr); err != nil {
		return err
	}
	m.carried(from, wr.Opcode, size)
	return nil
}

// misaddress sends a datagram with another Q_Key, and behind it a good one: only
// that arrives, and a counter tells of the other.
func (m *mailbox) misaddress(ctx context.Context, to *roce.AH) error {
	name := counter.DropBadQKey.String()
	before, err := m.counter(1, name)
	if err != nil {
		return err
	}
	const size = 64
	wr := roce.SendWR{
		Opcode: roce.OpSend, AH: to, RemoteQPN: m.end[1].QP.QPN(), RemoteQKey: wrongKey,
	}
	if err := m.post(0, &wr, size); err != nil {
		return err
	}
	err = m.expect(ctx, m.tally, "datagram with a wrong Q_Key",
		[2]*roce.Completion{{Opcode: roce.WCSend, QPN: m.end[0].QP.QPN()}, nil})
	if err != nil {
		return err
	}
	if err := m.roundTrip(ctx, to, size); err != nil {
		return err
	}
	after, err := m.counter(1, name)
	m.check(after == before+1, "datagram with a wrong Q_Key: %s went from %d to %d", name, before,
		after)
	return err
}
