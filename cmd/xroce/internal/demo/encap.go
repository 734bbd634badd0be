package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"xroce/encap"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/clock"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// etherLen is the length of an Ethernet header in bytes.
const etherLen = 14

// largestMessage has room for an IP packet of connected mode.
const largestMessage = 1 << 16

// A carrier carries the packets of formats: frames of a raw QP, datagrams or messages, from host 0
// to host 1.
type carrier struct {
	*pair
	tally
	*talk    // nil for frames, of which the capture has no transport packet
	mr       [2]*engine.MR
	before   int // bytes before a packet where it is sent: an Ethernet header
	arrival  int // the same where it arrives: a header, or a GRH
	room     int // the most bytes of a packet
	flags    roce.WCFlags
	to       *roce.AH // of datagrams
	frames   [][]byte // that were sent
	sent     int      // datagrams
	segments *encap.Reassembler
}

// playEncap carries an Ethernet frame and IP packets in each format, and shows the bytes of
// one.
func playEncap(ctx context.Context, c *cast) error {
	carriers := map[encap.Carrier]*carrier{}
	for _, kind := range []struct {
		encap.Carrier
		open func(context.Context, *cast) (*carrier, error)
	}{
		{encap.Native, openFrames},
		{encap.Datagrams, openDatagrams},
		{encap.Connections, openMessages},
	} {
		r, err := kind.open(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		defer r.close()
		carriers[kind.Carrier] = r
	}
	for _, spec := range encap.Formats() {
		r := carriers[encap.Connections]
		for _, better := range []encap.Carrier{encap.Datagrams, encap.Native} {
			if spec.Carriers&better != 0 {
				r = carriers[better]
			}
		}
		if err := r.show(ctx, c, &spec); err != nil {
			return fmt.Errorf("%s: %w", spec.Name, err)
		}
	}
	c.natives = carriers[encap.Native].frames
	return nil
}

// openCarrier registers what a carrier sends from and receives to.
func (c *cast) openCarrier(p *pair, talk *talk) (*carrier, error) {
	segments, err := encap.NewReassembler(encap.ReassemblerConfig{})
	if err != nil {
		return nil, err
	}
	r := &carrier{pair: p, tally: c.tally, talk: talk, segments: segments}
	for host, dev := range c.dev {
		r.mr[host], err = dev.RegMR(c.pd[host], make([]byte, 2*largestMessage), mem.LocalWrite)
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// close gives back what it has.
func (r *carrier) close() {
	r.disconnect()
	for _, mr := range r.mr {
		mr.Deregister()
	}
}

// openFrames makes a QP for raw Ethernet frames at each host.
func openFrames(_ context.Context, c *cast) (*carrier, error) {
	p, err := c.create(both(roce.TypeRawPacket))
	if err != nil {
		return nil, err
	}
	for _, end := range p.end {
		if err := end.QP.Start(0); err != nil {
			return nil, err
		}
		if err := end.QP.AttachEtherType(encap.EtherTypeNative); err != nil {
			return nil, err
		}
	}
	r, err := c.openCarrier(p, nil)
	if err != nil {
		return nil, err
	}
	r.before, r.arrival, r.room = etherLen, etherLen, c.dev[0].Port().MTU
	from, to := c.dev[0].Port().MAC, c.dev[1].Port().MAC
	header := append(append(r.mr[0].Bytes()[:0], to[:]...), from[:]...)
	binary.BigEndian.AppendUint16(header, encap.EtherTypeNative)
	return r, nil
}

// openDatagrams makes a QP for datagrams at each host.
func openDatagrams(ctx context.Context, c *cast) (*carrier, error) {
	p, err := c.create(both(roce.TypeUD))
	if err != nil {
		return nil, err
	}
	for _, end := range p.end {
		if err := end.QP.Start(qkey); err != nil {
			return nil, err
		}
	}
	r, err := c.openCarrier(p, c.listen(p))
	if err != nil {
		return nil, err
	}
	r.arrival, r.room, r.flags = wire.GRHLen, c.dev[0].ActiveMTU().Bytes(), roce.WCGRH
	r.to, err = c.dev[0].CreateAH(ctx, c.pd[0], engine.AddressVector{
		DGID: p.end[1].Local.GID, SGIDIndex: p.end[0].SGIDIndex, HopLimit: hopLimit,
	})
	return r, err
}

// openMessages connects a reliable QP of each host.
func openMessages(ctx context.Context, c *cast) (*carrier, error) {
	p, talk, err := c.join(ctx, mem.LocalWrite, both(roce.TypeRC))
	if err != nil {
		return nil, err
	}
	r, err := c.openCarrier(p, talk)
	if err != nil {
		return nil, err
	}
	r.room = largestMessage
	return r, nil
}

// Lengths in bytes of the datagrams: a short one whose length is odd, and a long one, which of
// Ethernet takes segments.
const (
	shortDatagram = 61
	longFrame     = 5000
	longPacket    = 1500
	longConnected = 60_000
)

// show carries a short and a long datagram of each kind in a format.
func (r *carrier) show(ctx context.Context, c *cast, spec *encap.Spec) error {
	t := &encap.Template{
		Format: spec.Format, Room: min(spec.Room, r.room), DLID: 2, SLID: 1, HopLimit: hopLimit,
		SGID: r.end[0].Local.GID, DGID: r.end[1].Local.GID, Switch: 7,
	}
	if err := t.Validate(); err != nil {
		return err
	}
	for _, code := range spec.Codes {
		long := longPacket
		switch {
		case code.Kind == encap.ARP, code.Kind == encap.RARP:
			continue // the same as IP but for the type
		case code.Kind == encap.Ethernet:
			long = min(longFrame, t.Largest(encap.Ethernet))
		case spec.Whole == 0:
			long = longConnected
		}
		for _, n := range []int{shortDatagram, long} {
			first, err := r.carry(ctx, t, code.Kind, newDatagram(code.Kind, n, spec.HeaderLen))
			if err != nil {
				return fmt.Errorf("%s of %d bytes: %w", code.Kind, n, err)
			}
			if spec.Format == encap.Raw && code.Kind == encap.Ethernet && n == shortDatagram {
				c.notes = append(c.notes, named(spec, n, first)...)
			}
		}
	}
	return nil
}

// carry sends a datagram in as many packets as it takes and compares what comes. It returns
// the first packet.
func (r *carrier) carry(
	ctx context.Context, t *encap.Template, k encap.Kind, d []byte,
) (first []byte, err error) {
	r.sent++
	cut, reason := t.Cut(k, d, uint16(r.sent))
	if reason != encap.OK {
		return nil, reason
	}
	what := fmt.Sprintf("%s datagram of %d bytes, %s", k, len(d), t.Format)
	var got []byte
	for cut.Packets() > 0 {
		n := cut.Next(r.mr[0].Bytes()[r.before:])
		b, err := r.send(ctx, what, n)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = bytes.Clone(b)
		}
		var p encap.Packet
		if t.Format.Spec().Carriers == encap.Native {
			reason = p.DecodeNative(b, nil)
		} else {
			reason = p.Decode(t.Format, b)
		}
		if reason == encap.OK && !p.Segment.Whole() {
			got, reason = r.segments.Add(clock.Nanosecond, 0, &p)
		} else {
			got = p.Datagram
		}
		r.check(reason == encap.OK && p.Kind == k && p.Format == t.Format, "%s: %s, %s in %s", what,
			reason, p.Kind, p.Format)
	}
	r.check(bytes.Equal(got, d), "%s: %d bytes came, which differ", what, len(got))
	return first, nil
}

// send sends a packet of n bytes and returns what came behind the headers of the carrier.
func (r *carrier) send(ctx context.Context, what string, n int) ([]byte, error) {
	room := largestMessage + r.arrival
	err := r.end[1].QP.PostRecv(&roce.RecvWR{SGList: []roce.SGE{r.mr[1].SGE(0, room)}})
	if err != nil {
		return nil, err
	}
	if err := r.fence(); err != nil {
		return nil, err
	}
	n += r.before
	wr := roce.SendWR{Opcode: roce.OpSend, SGList: []roce.SGE{r.mr[0].SGE(0, n)}}
	if r.to != nil {
		wr.AH, wr.RemoteQPN, wr.RemoteQKey = r.to, r.end[1].QP.QPN(), qkey
	}
	if err := r.end[0].QP.PostSend(&wr); err != nil {
		return nil, err
	}
	arrived := n - r.before + r.arrival
	want := [2]*roce.Completion{
		{Opcode: roce.WCSend, QPN: r.end[0].QP.QPN()},
		{
			Opcode: roce.WCRecv, Flags: r.flags, QPN: r.end[1].QP.QPN(), ByteLen: uint32(arrived),
		},
	}
	if r.to != nil {
		want[1].SrcQP = r.end[0].QP.QPN()
	}
	if r.talk == nil {
		r.frames = append(r.frames, bytes.Clone(r.mr[0].Bytes()[:n]))
	} else {
		r.carried(0, roce.OpSend, n)
	}
	if err := r.expect(ctx, r.tally, what, want); err != nil {
		return nil, err
	}
	return r.mr[1].Bytes()[r.arrival:arrived], r.fence()
}

// experimental is a protocol of IP that no dissector knows (RFC 3692): tshark takes UDP for
// malformed when the packet that it looks at has only the beginning of it.
const experimental = 253

// newDatagram makes a datagram of n bytes, UDP with random data unless it is longer than a
// packet of a connection. header is what comes before it: see mark.
func newDatagram(k encap.Kind, n, header int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	for i := wire.MTU256.Bytes() - header; i < n; i += wire.MTU256.Bytes() {
		copy(b[i:], "\xa5\x5a\xa5\x5a")
	}
	ip := b
	if k == encap.Ethernet {
		copy(b, "\x02\x00\x00\x00\x00\x0b\x02\x00\x00\x00\x00\x0a\x08\x00")
		ip = b[etherLen:]
	}
	whole := k == encap.Ethernet || n <= longPacket
	if k == encap.IPv6 {
		copy(ip, "\x60\x00\x00\x00\x00\x00\x00\x40"+ // IPv6, 64 hops
			"\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"+
			"\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02")
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-40))
		if ip[6] = experimental; whole {
			ip[6] = fillUDP(ip[40:])
		}
		return b
	}
	copy(ip, "\x45\x00\x00\x00\x00\x00\x40\x00\x40\x00\x00\x00"+ // IPv4, may not be cut, 64 hops
		"\x0a\x00\x00\x01\x0a\x00\x00\x02")
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	if ip[9] = experimental; whole {
		ip[9] = fillUDP(ip[20:])
	}
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	return b
}

// fillUDP writes a UDP header, without a checksum, and a mark behind it, and returns the
// number of UDP.
func fillUDP(b []byte) (protocol byte) {
	copy(b, "\xc0\x01\x9c\x40\x00\x00\x00\x00\xa5\x5a\xa5\x5a")
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
	return 17
}

// named are the bytes of a packet with the names of its headers, in lines.
func named(spec *encap.Spec, n int, packet []byte) []string {
	list, reason := encap.Fields(spec.Format, packet)
	if reason != encap.OK {
		return []string{reason.Error()}
	}
	lines := []string{fmt.Sprintf("an Ethernet frame of %d bytes in format %s:", n, spec.Name)}
	for _, f := range list {
		name, _, _ := strings.Cut(f.Name, " ")
		const most, row = 8, 24 // bytes in the line of a name, and in others
		if len(f.Bytes) <= most {
			line := fmt.Sprintf("%-8s %-16x %s", name, f.Bytes, f.Text)
			lines = append(lines, strings.TrimRight(line, " "))
			continue
		}
		lines = append(lines, fmt.Sprintf("%-8s %s", name, f.Text))
		for b := range slices.Chunk(f.Bytes, row) {
			lines = append(lines, fmt.Sprintf("%-8s %x", "", b))
		}
	}
	return lines
}
