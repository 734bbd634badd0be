package conversation

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// The hosts of a conversation are the last bytes of their addresses.
const (
	ownHost   = 1 // the QP under test
	peerHost  = 2 // its peer, played by the file
	otherHost = 99
)

// maxFrame is room for the headers and the largest path MTU, and to spare.
const maxFrame = 8192

// A player plays one run: it is the application, the peer and the clock of one
// queue pair, and keeps an account of what was announced.
type player struct {
	run    *Run
	conf   config
	now    roce.Time
	qp     *roce.QP
	srq    *roce.SRQ // nil when the file makes none
	sq, rq *roce.CQ
	keys   *mem.Keys
	domain *mem.Domain
	other  *mem.Domain // of regions that the QP must not touch
	party  *mem.Party  // another queue pair of the domain
	count  counter.Set

	regions []*region
	windows []*window
	posted  map[uint64]bool // work requests without completion; true: a receive
	state   roce.State      // the one last announced
	drops   counter.Set     // values announced by counter statements
	events  []roce.Event    // raised and not announced
	notes   [2]int          // notifications of the send CQ and the receive CQ
	overrun [2]bool         // announced for these two
	frame   []byte
}

// A region is a registered piece of memory and what the file says is in it.
type region struct {
	name   string
	mr     *mem.Region
	bytes  []byte
	shadow []byte
}

// config is the part of a QP that is not an attribute.
type config struct {
	typ     qpType
	qpn     uint64
	destQPN uint64
	window  int
	sendWR  int
	recvWR  int
	sge     int
	cq      int
	inline  int
	shared  bool // receives come from the SRQ
	all     bool // every send makes a completion
}

// Play plays the run with a fresh queue pair. It returns nil when everything
// came as the file says, and else an *Error with the place, what was expected
// and what came instead.
func (r *Run) Play() error {
	p := &player{
		run: r, keys: mem.NewKeys(rand.NewPCG(1, 2)), domain: new(mem.Domain),
		other: new(mem.Domain), party: new(mem.Party), posted: map[uint64]bool{},
		frame: make([]byte, maxFrame),
	}
	for _, s := range r.steps {
		if err := p.step(s); err != nil {
			return err
		}
	}
	if err := p.finish(); err != nil {
		return errorAt(r.end, "at the end: %v", err)
	}
	return nil
}

// step plays one step and gives its error the place.
func (p *player) step(s step) error {
	err := s.play(p)
	if err == nil {
		return nil
	}
	return errorAt(s.pos, "%s: %v", s.text, err)
}

// finish wants nothing to be left that the file did not announce.
func (p *player) finish() error {
	if p.qp == nil {
		return nil
	}
	if err := p.quiet(); err != nil {
		return err
	}
	for i, cq := range []*roce.CQ{p.sq, p.rq} {
		if wc, ok, err := poll(cq); err != nil && !p.overrun[i] || ok {
			return fmt.Errorf("unpolled: %s", formatCQE(&wc, err))
		}
	}
	if len(p.events) > 0 {
		return fmt.Errorf("event %s was not announced", nameOf(events, p.events[0]))
	}
	if s := p.qp.State(); s != p.state {
		return fmt.Errorf("the QP is in %s, last announced was %s", s, p.state)
	}
	for id := range counter.Count {
		if strings.HasPrefix(id.String(), "drop_") && p.count[id] != p.drops[id] {
			return fmt.Errorf("counter %s %d was not announced", id, p.count[id])
		}
	}
	for _, r := range p.regions {
		if err := r.compare(0, r.shadow); err != nil {
			return fmt.Errorf("memory changed: %w", err)
		}
	}
	return nil
}

// quiet wants the QP to have nothing to send.
func (p *player) quiet() error {
	pkt, err := p.next()
	if err == nil && pkt != nil {
		err = fmt.Errorf("the QP sends: > %s", p.describe(pkt))
	}
	return err
}

// next takes the next packet from the QP, nil when there is none.
func (p *player) next() (*wire.Packet, error) {
	n := p.qp.NextPacket(p.now, p.frame)
	if n == 0 {
		return nil, nil
	}
	pkt := new(wire.Packet)
	if r := pkt.Decode(p.frame[:n], nil); r != wire.OK {
		return nil, fmt.Errorf("the QP sends what does not decode: %s: %x", r, p.frame[:n])
	}
	return pkt, nil
}

// poll takes the next completion.
func poll(cq *roce.CQ) (roce.Completion, bool, error) {
	var got [1]roce.Completion
	n, err := cq.Poll(got[:])
	return got[0], n == 1, err
}

// formatCQE prints a completion as a statement.
func formatCQE(wc *roce.Completion, err error) string {
	if err != nil {
		return err.Error()
	}
	s := fmt.Sprintf("cqe wr=%d %s", wc.WRID, nameOf(statuses, wc.Status))
	if wc.VendorErr != 0 {
		s += fmt.Sprintf(" vendor=%d", wc.VendorErr)
	}
	if wc.Status != roce.StatusSuccess {
		return s
	}
	s += " " + nameOf(completed, wc.Opcode)
	if wc.ByteLen != 0 {
		s += fmt.Sprintf(" len=%d", wc.ByteLen)
	}
	if wc.Flags&roce.WCWithImm != 0 {
		s += fmt.Sprintf(" imm=%d", wc.Imm)
	}
	if wc.Flags&roce.WCWithInv != 0 {
		s += fmt.Sprintf(" inv=%#x", wc.InvalidatedKey)
	}
	if wc.Flags&roce.WCGRH != 0 {
		s += fmt.Sprintf(" grh src_qpn=%d", wc.SrcQP)
	}
	return s
}

// advance lets time pass. What is due on the way is done when it is due, and
// the QP must not want to send anything while time passes.
func (p *player) advance(d roce.Time) error {
	end := p.now + d
	for p.now < end {
		if err := p.quiet(); err != nil {
			return fmt.Errorf("%s before it is over, %w", formatTime(end-p.now), err)
		}
		at, ok := p.qp.NextDeadline()
		if !ok || at > end {
			p.now = end
			return nil
		}
		if at <= p.now {
			return fmt.Errorf("a deadline is %s overdue", formatTime(p.now-at))
		}
		p.now = at
		p.qp.HandleDeadline(p.now)
	}
	return nil
}

// region finds a region by name.
func (p *player) region(name string) (*region, error) {
	for _, r := range p.regions {
		if r.name == name {
			return r, nil
		}
	}
	return nil, fmt.Errorf("no region %s", name)
}

func (p *player) address(a address) (uint64, error) {
	if a.region == "" {
		return a.n, nil
	}
	if w := p.window(a.region); w != nil {
		return w.mw.Addr() + a.n, nil
	}
	r, err := p.region(a.region)
	if err != nil {
		return 0, err
	}
	return r.mr.Addr() + a.n, nil
}

func (p *player) key(k key) (uint32, error) {
	if k.region == "" {
		return uint32(k.n), nil
	}
	if w := p.window(k.region); w != nil {
		return w.mw.RKey() ^ uint32(k.n), nil
	}
	r, err := p.region(k.region)
	if err != nil {
		return 0, err
	}
	return r.mr.RKey() ^ uint32(k.n), nil
}

// pieces makes a scatter/gather list.
func (p *player) pieces(list []piece) ([]roce.SGE, error) {
	var out []roce.SGE
	for _, one := range list {
		s := roce.SGE{Addr: one.addr, Length: one.n, LKey: one.lkey}
		if one.region != "" {
			r, err := p.region(one.region)
			if err != nil {
				return nil, err
			}
			s.Addr, s.LKey = r.mr.Addr()+one.addr, r.mr.LKey()
		}
		out = append(out, s)
	}
	return out, nil
}

// content returns the bytes that a value stands for. Of a region these are the
// bytes that the file says are there.
func (p *player) content(d data) ([]byte, error) {
	switch {
	case d.bytes != nil:
		return d.bytes, nil
	case d.region == "":
		seed := d.seed
		if d.opaque {
			seed = 1
		}
		b := make([]byte, d.n)
		pattern(b, seed, d.off)
		return b, nil
	}
	r, err := p.region(d.region)
	if err != nil {
		return nil, err
	}
	return r.part(d.span)
}

// part returns the bytes that the file says are in a span.
func (r *region) part(s span) ([]byte, error) {
	if s.off+s.n > len(r.shadow) {
		return nil, fmt.Errorf("%s has %d bytes", r.name, len(r.shadow))
	}
	return r.shadow[s.off:][:s.n], nil
}

// compare holds the memory from off on against want.
func (r *region) compare(off int, want []byte) error {
	got := r.bytes[off:][:len(want)]
	if bytes.Equal(got, want) {
		return nil
	}
	i := 0
	for got[i] == want[i] {
		i++
	}
	end := min(len(got), i+16)
	return fmt.Errorf("%s:%d has %x, want %x", r.name, off+i, got[i:end], want[i:end])
}

// pathTo is the path from the QP to a host; to host 0 there is none.
func pathTo(host byte) wire.Path {
	if host == 0 {
		return wire.Path{}
	}
	return pathBetween(ownHost, host)
}

func pathBetween(src, dst byte) wire.Path {
	return wire.Path{
		Framing: wire.FramingV2IPv4, HopLimit: 64,
		SrcMAC: [6]byte{2, 5: src}, DstMAC: [6]byte{2, 5: dst},
		Src: wire.GIDFromIPv4([4]byte{192, 0, 2, src}),
		Dst: wire.GIDFromIPv4([4]byte{192, 0, 2, dst}),
	}
}
