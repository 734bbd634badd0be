package roce_test

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A captureHost is one host of a capture, made of our queue pairs: numbers of QPs
// and addresses are those of the capture, keys are ours.
type captureHost struct {
	t          *testing.T
	c          *capture
	name       byte
	keys       *mem.Keys
	domain     *mem.Domain
	count      *counter.Set
	send, recv *roce.CQ
	memory     map[uint64][]byte
	regions    map[uint64]*mem.Region
	windows    map[uint64]*mem.Window
	keyed      map[uint32]keyed // by the key of the capture
	sides      map[uint64]*side
	srqs       map[uint64]*roce.SRQ
	shared     map[uint64]*receives
	handles    map[uint64]*roce.AH
	remarks    map[string]bool // what is not as in the capture
}

// keyed is a region or a window.
type keyed interface{ RKey() uint32 }

// A side is a queue pair, and what it did that was not compared yet.
type side struct {
	*receives
	qp     *roce.QP
	typ    roce.QPType
	qkey   uint32
	groups map[wire.GID]bool

	requests     [][]byte // sent before the capture had them
	ours, theirs responses
}

// Receives wait to be posted until the capture shows that one was there.
type receives struct {
	waiting []roce.RecvWR
	post    func(*roce.RecvWR) error
	posted  func() int
}

func newCaptureHost(t *testing.T, c *capture, name byte) *captureHost {
	t.Helper()
	h := &captureHost{
		t: t, c: c, name: name, keys: mem.NewKeys(rand.NewPCG(uint64(name), 1)),
		domain: new(mem.Domain), count: new(counter.Set), memory: map[uint64][]byte{},
		regions: map[uint64]*mem.Region{}, keyed: map[uint32]keyed{},
		windows: map[uint64]*mem.Window{},
		sides:   map[uint64]*side{}, shared: map[uint64]*receives{},
		srqs: map[uint64]*roce.SRQ{}, remarks: map[string]bool{},
		handles: map[uint64]*roce.AH{},
	}
	var err error
	h.send, err = roce.NewCQ(1024, nil)
	must(t, err)
	h.recv, err = roce.NewCQ(1024, nil)
	must(t, err)
	return h
}

// accessOf reads access rights.
func accessOf(s string) (a mem.Access) {
	for letter, right := range map[string]mem.Access{
		"l": mem.LocalWrite, "w": mem.RemoteWrite, "r": mem.RemoteRead, "a": mem.RemoteAtomic,
		"b": mem.MWBind,
	} {
		if strings.Contains(s, letter) {
			a |= right
		}
	}
	return a
}

// register makes a region where the capture had it.
func (h *captureHost) register(c *call) {
	h.t.Helper()
	b := make([]byte, max(64, c.reply.num("len", 0)))[:c.reply.num("len", 0)]
	if c.args.has("seed") {
		copy(b, pattern(c.args.num("seed", 0), 0, uint64(len(b))))
	}
	r, err := h.keys.RegisterAt(h.domain, b, c.reply.num("addr", 0),
		accessOf(or(c.args["access"], "lwra")))
	must(h.t, err)
	mr := c.reply.num("mr", 0)
	h.memory[mr], h.regions[mr], h.keyed[uint32(c.reply.num("rkey", 0))] = b, r, r
}

// window makes a memory window.
func (h *captureHost) window(c *call) {
	h.t.Helper()
	w, err := h.keys.AllocWindow(h.domain, mem.WindowType(c.args.num("type", 0)))
	must(h.t, err)
	h.windows[c.reply.num("mw", 0)] = w
}

// bind is a request to bind a window, under the next key as in the capture.
func (h *captureHost) bind(c *call) roce.SendWR {
	h.t.Helper()
	w, r := h.windows[c.args.num("mw", 0)], h.regions[c.args.num("mr", 0)]
	h.keyed[uint32(c.reply.num("rkey", 0))] = w
	return roce.SendWR{
		WRID: c.args.num("wr_id", 0), Opcode: roce.OpBindMW, Flags: roce.SendSignaled,
		Bind: mem.Bind{
			Window: w.RKey(), NewKey: mem.NextKey(w.RKey()), LKey: r.LKey(),
			Addr: r.Addr() + c.args.num("off", 0), Length: c.args.num("len", 0),
			Access: accessOf(c.args["access"]),
		},
	}
}

// bytes is the memory that a call names.
func (h *captureHost) bytes(w words) []byte {
	b := h.memory[w.num("mr", 0)][w.num("off", 0):]
	return b[:w.num("len", uint64(len(b)))]
}

// list is the scatter/gather list of a call; without region or length it is empty.
func (h *captureHost) list(w words, step uint64) []roce.SGE {
	if !w.has("mr") || !w.has("len") {
		return nil
	}
	r := h.regions[w.num("mr", 0)]
	return []roce.SGE{{
		Addr: r.Addr() + w.num("off", 0) + step, Length: uint32(w.num("len", 0)), LKey: r.LKey(),
	}}
}

var captureTypes = map[string]roce.QPType{
	"rc": roce.TypeRC, "uc": roce.TypeUC, "ud": roce.TypeUD,
}

// createSRQ makes a shared receive queue.
func (h *captureHost) createSRQ(c *call) {
	h.t.Helper()
	srq, err := roce.NewSRQ(1, roce.SRQConfig{
		Domain: h.domain, MaxWR: int(c.args.num("depth", 0)), MaxSGE: 1,
	})
	must(h.t, err)
	i := c.reply.num("srq", 0)
	h.srqs[i], h.shared[i] = srq, &receives{post: srq.PostRecv, posted: func() int {
		_, n := srq.Query()
		return n
	}}
}

// create makes a queue pair.
func (h *captureHost) create(c *call) {
	h.t.Helper()
	s := &side{
		typ: captureTypes[c.args["type"]], qkey: uint32(c.args.num("qkey", 0x11111111)),
		groups: map[wire.GID]bool{},
	}
	config := roce.QPConfig{
		Type: s.typ, Domain: h.domain, SendCQ: h.send, RecvCQ: h.recv,
		MaxSendWR: 256, MaxRecvWR: 256, MaxSendSGE: 1, MaxRecvSGE: 1, Counters: h.count,
		Common: &roce.Common{Keys: h.keys, PKeys: roce.DefaultPKeys()},
	}
	if c.args.has("srq") {
		i := c.args.num("srq", 0)
		config.SRQ, config.MaxRecvWR, s.receives = h.srqs[i], 0, h.shared[i]
	}
	var err error
	s.qp, err = roce.NewQP(uint32(c.reply.num("qpn", 0)), config)
	must(h.t, err)
	if s.receives == nil {
		s.receives = &receives{post: s.qp.PostRecv, posted: func() int {
			return int(s.qp.Snapshot().RecvPosted)
		}}
	}
	h.sides[c.reply.num("qp", 0)] = s
}

// path is the path of a call that names a GID. Only the MAC addresses come from
// the packets.
func (h *captureHost) path(w words) wire.Path {
	p := wire.Path{
		Framing: wire.FramingV2IPv4, Dst: wire.GIDFromAddr(netip.MustParseAddr(w["gid"])),
		HopLimit: uint8(w.num("hop", 64)), TClass: uint8(w.num("tclass", 0)),
		SrcPort: uint16(w.num("sport", 0)),
	}
	if !p.Dst.IsIPv4() {
		p.Framing = wire.FramingV2IPv6
	}
	for i, pkt := range h.c.packets {
		if h.c.from[i] == h.name {
			p.Src, p.SrcMAC, p.DstMAC = pkt.Src, pkt.SrcMAC, pkt.DstMAC
			return p
		}
		p.Src, p.SrcMAC, p.DstMAC = pkt.Dst, pkt.DstMAC, pkt.SrcMAC
	}
	return p
}

// connect moves a queue pair to RTS.
func (h *captureHost) connect(c *call) {
	h.t.Helper()
	s, w := h.sides[c.args.num("qp", 0)], c.args
	mtu, _ := wire.MTUFromBytes(int(w.num("mtu", 1024)))
	a := roce.Attr{
		Access: accessOf("wra"), Port: 1, QKey: s.qkey, PathMTU: mtu,
		DestQPN: uint32(w.num("qpn", 0)), RQPSN: wire.PSN(w.num("rpsn", 0)),
		SQPSN: wire.PSN(w.num("psn", 0)), MaxRdAtomic: uint8(w.num("ord", 16)),
		MaxDestRdAtomic: uint8(w.num("rd", 16)), MinRNRTimer: uint8(w.num("min_rnr", 12)),
		Timeout: uint8(w.num("timeout", 14)), RetryCnt: uint8(w.num("retry", 7)),
		RNRRetry: uint8(w.num("rnr_retry", 7)),
	}
	masks := map[roce.QPType][3]roce.AttrMask{
		roce.TypeRC: {maskInit, maskRTR, maskRTS},
		roce.TypeUC: {
			maskInit, maskRTR &^ (roce.AttrMaxDestRdAtomic | roce.AttrMinRNRTimer),
			roce.AttrState | roce.AttrSQPSN,
		},
		roce.TypeUD: {
			roce.AttrState | roce.AttrPKeyIndex | roce.AttrPort | roce.AttrQKey,
			roce.AttrState, roce.AttrState | roce.AttrSQPSN,
		},
	}[s.typ]
	if s.typ != roce.TypeUD {
		a.Path = h.path(w)
	}
	for i, mask := range masks {
		a.State = roce.StateInit + roce.State(i)
		must(h.t, s.qp.Modify(0, &a, mask))
	}
}

// queueReceives keeps receives until they are needed.
func (h *captureHost) queueReceives(c *call) {
	into := h.shared[c.args.num("srq", 0)]
	if !c.args.has("srq") {
		into = h.sides[c.args.num("qp", 0)].receives
	}
	for i := range c.args.num("n", 1) {
		into.waiting = append(into.waiting, roce.RecvWR{
			WRID: c.args.num("wr_id", 0) + i, SGList: h.list(c.args, i*c.args.num("step", 0)),
		})
	}
}

// checkMemory compares memory with what the program found there.
func (h *captureHost) checkMemory(c *call, want []byte) {
	h.t.Helper()
	got := h.memory[c.args.num("mr", 0)][c.args.num("off", 0):][:len(want)]
	for i := range got {
		if got[i] != want[i] {
			h.t.Errorf("dialogue line %d: %s %v: byte %d is 0x%02x, want 0x%02x",
				c.line, c.verb, c.args, i, got[i], want[i])
			return
		}
	}
}

// unhex decodes what peek and poke show.
func (h *captureHost) unhex(s string) []byte {
	h.t.Helper()
	b, err := hex.DecodeString(s)
	must(h.t, err)
	return bytes.Clone(b)
}
