package roce_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"xroce/roce"
	"xroce/roce/wire"
)

// A rebuilder finds out from packets what two programs did that kept no record of
// their verbs calls, and writes it as a dialogue. There is one wire between the
// two, nothing on it was lost, and each program saw all complete.
type rebuilder struct {
	c     *capture
	pairs []qpPair
	hosts map[byte]*rebuiltHost
	lines []string
}

// A qpPair are the queue pairs of A and B that talk with each other.
type qpPair struct {
	qpn      map[byte]uint32
	datagram bool
}

// A rebuiltHost is what one of the programs had.
type rebuiltHost struct {
	next         map[int]wire.PSN       // of its queue pairs
	remote       map[uint32]*memoryArea // what the peer reached, by key
	touched      map[uint64]bool        // where the peer made atomics
	local        int                    // bytes of region 0, which has all other data
	sends, recvs []string               // completions
	last         []string               // calls at the end
}

// A memoryArea is a region, as far as requests show it.
type memoryArea struct {
	mr        int
	low, high uint64
}

// rebuildDialogue writes the dialogue for the packets of a capture.
func rebuildDialogue(c *capture) []string {
	r := &rebuilder{c: c, hosts: map[byte]*rebuiltHost{}}
	for _, name := range []byte("AB") {
		r.hosts[name] = &rebuiltHost{
			next: map[int]wire.PSN{}, remote: map[uint32]*memoryArea{},
			touched: map[uint64]bool{},
		}
	}
	for i, p := range c.packets {
		if isRequest(p) {
			r.findPair(i)
			r.findMemory(c.from[i], p)
		}
	}
	for k := range r.pairs {
		for _, name := range []byte("AB") {
			r.connect(k, name)
		}
	}
	for i, p := range c.packets {
		k, name := r.pairOf(i), c.from[i]
		if isRequest(p) && p.BTH.PSN == r.hosts[name].next[k] {
			r.message(i, k, name)
		}
	}
	var regions []string
	for _, name := range []byte("AB") {
		h := r.hosts[name]
		regions = append(regions, said(name, "mr len=%d", "mr=0 addr=0x1000 rkey=0 len=%d",
			h.local, h.local)...)
		for key, m := range h.remote {
			regions = append(regions, said(name, "mr", "mr=%d addr=%d rkey=%d len=%d",
				m.mr, m.low, key, m.high-m.low)...)
		}
		r.lines = append(r.lines, string(name)+"> poll", string(name)+"< ok")
		r.lines = append(append(append(r.lines, h.sends...), h.recvs...), h.last...)
	}
	return append(regions, r.lines...)
}

// said is a call and its result; the arguments are those of both formats.
func said(name byte, call, reply string, args ...any) []string {
	text := fmt.Sprintf(call+"\n"+reply, args...)
	i := slices.Index([]byte(text), '\n')
	return []string{string(name) + "> " + text[:i], string(name) + "< ok " + text[i+1:]}
}

// say adds a call that returns nothing.
func (r *rebuilder) say(name byte, format string, args ...any) {
	r.lines = append(r.lines, said(name, fmt.Sprintf(format, args...), "")...)
}

// peerOf is the other host.
func peerOf(name byte) byte { return 'A' + 'B' - name }

// answerWindow is how many PSNs behind a request the first answer to its queue
// pair may be. The PSNs of different queue pairs are further apart.
const responseWindow = 128

// findPair finds the queue pair that sent request i, which a packet does not tell
// unless it is a datagram: the answers to it go there.
func (r *rebuilder) findPair(i int) {
	p, name := r.c.packets[i], r.c.from[i]
	if r.pairOf(i) >= 0 {
		return
	}
	pair := qpPair{qpn: map[byte]uint32{peerOf(name): p.BTH.DestQP}}
	if pair.datagram = p.Spec.Has(wire.HasDETH); pair.datagram {
		pair.qpn[name] = p.DETH().SrcQP
	}
	for j, q := range r.c.packets[i:] {
		if !pair.datagram && !isRequest(q) && r.c.from[i+j] != name &&
			q.BTH.PSN.InWindow(p.BTH.PSN, responseWindow) {
			pair.qpn[name] = q.BTH.DestQP
			break
		}
	}
	r.pairs = append(r.pairs, pair)
}

// pairOf is the pair to which packet i belongs, -1 when it is not known yet.
func (r *rebuilder) pairOf(i int) int {
	return slices.IndexFunc(r.pairs, func(pair qpPair) bool {
		return pair.qpn[peerOf(r.c.from[i])] == r.c.packets[i].BTH.DestQP
	})
}

// findMemory learns from a request what memory the peer has.
func (r *rebuilder) findMemory(name byte, p *wire.Packet) {
	var key uint32
	var low, n uint64
	switch {
	case p.Spec.Has(wire.HasRETH):
		key, low, n = p.RETH().RKey, p.RETH().VA, uint64(p.RETH().DMALen)
	case p.Spec.Has(wire.HasAtomicETH):
		key, low, n = p.AtomicETH().RKey, p.AtomicETH().VA, 8
	default:
		return
	}
	areas := r.hosts[peerOf(name)].remote
	if areas[key] == nil {
		areas[key] = &memoryArea{mr: len(areas) + 1, low: low, high: low + n}
	}
	areas[key].low, areas[key].high = min(areas[key].low, low), max(areas[key].high, low+n)
}

// connect makes and connects a host's end of a pair.
func (r *rebuilder) connect(k int, name byte) {
	pair, h := r.pairs[k], r.hosts[name]
	var first [2]wire.PSN // of the requests of the host, and of its peer
	var seen [2]bool
	mtu := 0
	var path *wire.Packet
	qkey := uint32(0)
	for i, p := range r.c.packets {
		if r.pairOf(i) != k {
			continue
		}
		mtu = max(mtu, p.PayloadLen())
		side := 0
		if r.c.from[i] != name {
			side = 1
		} else if path == nil {
			path = p
		}
		if isRequest(p) && !seen[side] {
			seen[side], first[side] = true, p.BTH.PSN
		}
		if pair.datagram {
			qkey = p.DETH().QKey
		}
	}
	code := wire.MTU256
	for code.Bytes() < mtu {
		code++
	}
	h.next[k] = first[0]
	if pair.datagram {
		r.lines = append(r.lines, said(name, "qp type=ud qkey=%d", "qp=%d qpn=%d",
			qkey, k, pair.qpn[name])...)
		r.say(name, "connect qp=%d psn=%d", k, first[0])
	} else {
		r.lines = append(r.lines, said(name, "qp type=rc", "qp=%d qpn=%d", k, pair.qpn[name])...)
		r.say(name, "connect qp=%d qpn=%d gid=%s psn=%d rpsn=%d mtu=%d sport=%d tclass=%d", k,
			pair.qpn[peerOf(name)], path.Dst.Addr(), first[0], first[1], code.Bytes(),
			path.SrcPort, path.TClass)
	}
	if pair.datagram && path != nil {
		r.lines = append(r.lines, said(name, "ah gid=%s hop=%d", "ah=%d", path.Dst.Addr(),
			path.HopLimit, k)...)
	}
}

// place makes room in region 0 of a host.
func (h *rebuiltHost) place(n int) (off int) {
	off = h.local
	h.local += (n + guard + 7) &^ 7
	return off
}

// message writes the calls for the message that begins with packet i.
func (r *rebuilder) message(i, k int, name byte) {
	p, h := r.c.packets[i], r.hosts[name]
	var end *wire.Packet
	var data []byte
	for j, q := range r.c.packets[i:] {
		if isRequest(q) && r.c.from[i+j] == name && r.pairOf(i+j) == k && q.BTH.PSN == h.next[k] {
			data, h.next[k], end = append(data, q.Payload...), h.next[k].Add(1), q
			if q.Spec.Is(wire.ClassLast) {
				break
			}
		}
	}
	op := opOf(end)
	what := fmt.Sprintf("post qp=%d op=%s mr=0", k, op)
	switch op {
	case "read", "fadd", "cas":
		data = r.responses(i, k, name)
		what += r.fetch(p, peerOf(name), data)
	default:
		what += fmt.Sprintf(" imm=%d sol=%d", end.ImmDt().Data, bitOf(end.BTH.SE))
	}
	if p.Spec.Has(wire.HasRETH) {
		what += fmt.Sprintf(" raddr=%d rkey=%d", p.RETH().VA, p.RETH().RKey)
	}
	if p.Spec.Has(wire.HasDETH) {
		what += fmt.Sprintf(" ah=%d rqpn=%d rqkey=%d", k, p.BTH.DestQP, p.DETH().QKey)
	}
	off := h.place(len(data))
	what += fmt.Sprintf(" off=%d len=%d wr_id=%d", off, len(data), len(h.sends))
	seen := said(name, "peek mr=0 off=%d", "hex=%x", off, data)
	switch op {
	case "read":
		h.next[k] = h.next[k].Add(uint32(r.responsesOf(i, k, name) - 1))
		h.last = append(h.last, seen...)
	case "fadd", "cas":
		h.last = append(h.last, seen...)
	default:
		r.say(name, "poke mr=0 off=%d hex=%x", off, data)
	}
	if end.Spec.Is(wire.ClassReceive) {
		r.receive(k, name, end, data)
	}
	r.say(name, "%s", what)
	if p.Spec.Is(wire.ClassWrite) && len(data) > 0 {
		m := r.hosts[peerOf(name)].remote[p.RETH().RKey]
		r.lines = append(r.lines, said(peerOf(name), "peek mr=%d off=%d", "hex=%x", m.mr,
			p.RETH().VA-m.low, data)...)
	}
	h.sends = append(h.sends, fmt.Sprintf("%c<   wc wr_id=%d status=0 opcode=%d qpn=%d len=%d",
		name, len(h.sends), wcOf[op], r.pairs[k].qpn[name], len(data)))
}

var wcOf = map[string]roce.WCOpcode{
	"send": roce.WCSend, "send_imm": roce.WCSend, "write": roce.WCWrite,
	"write_imm": roce.WCWrite, "read": roce.WCRead, "fadd": roce.WCFetchAdd,
	"cas": roce.WCCompSwap,
}

// opOf is the operation of a message that ends with this packet.
func opOf(end *wire.Packet) string {
	switch {
	case end.BTH.Opcode == wire.RCFetchAdd:
		return "fadd"
	case end.BTH.Opcode == wire.RCCmpSwap:
		return "cas"
	case end.Spec.Is(wire.ClassRead):
		return "read"
	}
	op := "send"
	if end.Spec.Is(wire.ClassWrite) {
		op = "write"
	}
	if end.Spec.Has(wire.HasImmDt) {
		op += "_imm"
	}
	return op
}

func bitOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// eachAnswer visits the data packets that answer request i.
func (r *rebuilder) eachResponse(i, k int, name byte, visit func(*wire.Packet)) {
	psn := r.c.packets[i].BTH.PSN
	for j, q := range r.c.packets[i:] {
		if !isRequest(q) && r.c.from[i+j] != name && r.pairOf(i+j) == k && q.BTH.PSN == psn {
			visit(q)
			psn = psn.Add(1)
			if q.Spec.Is(wire.ClassLast) {
				return
			}
		}
	}
}

// answersOf counts them.
func (r *rebuilder) responsesOf(i, k int, name byte) (n int) {
	r.eachResponse(i, k, name, func(*wire.Packet) { n++ })
	return n
}

// answers is what they brought; of an atomic as it stands in memory.
func (r *rebuilder) responses(i, k int, name byte) (data []byte) {
	r.eachResponse(i, k, name, func(q *wire.Packet) {
		if q.Spec.Is(wire.ClassAtomic) {
			data = binary.LittleEndian.AppendUint64(data, q.AtomicAckETH().OrigData)
			return
		}
		data = append(data, q.Payload...)
	})
	return data
}

// fetch lets the peer's memory hold what a READ, or the first atomic there, is
// going to find, and returns the operands of an atomic.
func (r *rebuilder) fetch(p *wire.Packet, peer byte, data []byte) string {
	h := r.hosts[peer]
	if p.Spec.Has(wire.HasRETH) {
		if m := h.remote[p.RETH().RKey]; len(data) > 0 {
			r.say(peer, "poke mr=%d off=%d hex=%x", m.mr, p.RETH().VA-m.low, data)
		}
		return ""
	}
	a := p.AtomicETH()
	m := h.remote[a.RKey]
	if !h.touched[a.VA] {
		h.touched[a.VA] = true
		r.say(peer, "poke mr=%d off=%d hex=%s", m.mr, a.VA-m.low, hex.EncodeToString(data))
	}
	return fmt.Sprintf(" raddr=%d rkey=%d add=%d swap=%d cmp=%d", a.VA, a.RKey, a.SwapAdd,
		a.SwapAdd, a.Compare)
}

// receive posts the receive for a message, and wants it to complete.
func (r *rebuilder) receive(k int, name byte, end *wire.Packet, data []byte) {
	peer := peerOf(name)
	h := r.hosts[peer]
	room, src := 0, uint32(0)
	if end.Spec.Has(wire.HasDETH) {
		room, src = wire.GRHLen, end.DETH().SrcQP
	}
	off, n := h.place(room+len(data)), len(data)
	opcode := roce.WCRecv
	if end.Spec.Is(wire.ClassWrite) {
		opcode = roce.WCRecvRDMAWithImm
	} else {
		h.last = append(h.last,
			said(peer, "peek mr=0 off=%d", "hex=%x", off+room, data)...)
	}
	r.say(peer, "recv qp=%d mr=0 off=%d len=%d wr_id=%d", k, off, room+n, len(h.recvs))
	wc := fmt.Sprintf("%c<   wc wr_id=%d status=0 opcode=%d qpn=%d len=%d src_qp=%d", peer,
		len(h.recvs), opcode, r.pairs[k].qpn[peer], room+n, src)
	if end.Spec.Has(wire.HasImmDt) {
		wc += fmt.Sprintf(" imm=%d", end.ImmDt().Data)
	}
	h.recvs = append(h.recvs, wc)
}
