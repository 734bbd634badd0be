package roce_test

import (
	"net/netip"

	"xroce/roce"
	"xroce/roce/wire"
)

// run makes one call of the dialogue. Requests that send packets wait until the
// capture has the first of them.
func (r *replay) run(c *call) {
	r.t.Helper()
	switch c.verb {
	case "qp":
		r.create(c)
	case "srq":
		r.createSRQ(c)
	case "connect":
		r.connect(c)
	case "mr":
		r.register(c)
	case "ah":
		ah, err := roce.NewAH(r.domain, r.path(c.args))
		must(r.t, err)
		r.handles[c.reply.num("ah", 0)] = ah
	case "mcast":
		gid := wire.GIDFromAddr(netip.MustParseAddr(c.args["gid"]))
		r.sides[c.args.num("qp", 0)].groups[gid] = true
	case "recv":
		r.queueReceives(c)
	case "post":
		r.runSilent(c)
	case "poke":
		copy(r.memory[c.args.num("mr", 0)][c.args.num("off", 0):], r.unhex(c.args["hex"]))
	case "peek":
		r.checkMemory(c, r.unhex(c.reply["hex"]))
	case "check":
		r.checkMemory(c, pattern(c.args.num("seed", 0), c.args.num("skip", 0),
			uint64(len(r.bytes(c.args)))))
	case "poll":
		r.poll(c)
	case "query":
		r.query(c)
	case "mw":
		r.window(c)
	case "sleep":
	default:
		r.t.Fatalf("dialogue line %d: %s is not known", c.line, c.verb)
	}
}

// runSilent makes a posted request that sends nothing.
func (r *replay) runSilent(c *call) {
	r.t.Helper()
	var wr roce.SendWR
	switch c.args["op"] {
	case "bind_mw":
		wr = r.bind(c)
	case "local_inv":
		wr = roce.SendWR{
			WRID: c.args.num("wr_id", 0), Opcode: roce.OpLocalInv, Flags: roce.SendSignaled,
			InvalidateKey: r.keyed[uint32(c.args.num("rkey", 0))].RKey(),
		}
	default:
		return
	}
	s := r.sides[c.args.num("qp", 0)]
	must(r.t, s.qp.PostSend(&wr))
	r.collect(s)
}

var captureOps = map[string]roce.Opcode{
	"send": roce.OpSend, "send_imm": roce.OpSendImm, "send_inv": roce.OpSendInv,
	"write": roce.OpWrite, "write_imm": roce.OpWriteImm, "read": roce.OpRead,
	"cas": roce.OpCmpSwap, "fadd": roce.OpFetchAdd,
}

// postRequest posts a request that sends packets.
func (r *replay) postRequest(c *call) {
	r.t.Helper()
	w := c.args
	wr := roce.SendWR{
		WRID: w.num("wr_id", 0), Opcode: captureOps[w["op"]], SGList: r.list(w, 0),
		RemoteAddr: w.num("raddr", 0), RKey: uint32(w.num("rkey", 0)),
		Imm: uint32(w.num("imm", 0)), InvalidateKey: uint32(w.num("rkey", 0)),
		CompareAdd: w.num("add", 0), RemoteQPN: uint32(w.num("rqpn", 0)),
		RemoteQKey: uint32(w.num("rqkey", 0x11111111)),
	}
	if wr.Opcode == roce.OpCmpSwap {
		wr.CompareAdd, wr.Swap = w.num("cmp", 0), w.num("swap", 0)
	}
	if w.has("ah") {
		wr.AH = r.handles[w.num("ah", 0)]
	}
	for _, f := range []struct {
		key     string
		missing uint64
		flag    roce.SendFlags
	}{{"sig", 1, roce.SendSignaled}, {"sol", 0, roce.SendSolicited}, {"fence", 0, roce.SendFence}} {
		if w.num(f.key, f.missing) != 0 {
			wr.Flags |= f.flag
		}
	}
	must(r.t, r.sides[w.num("qp", 0)].qp.PostSend(&wr))
}

// query compares the state of a queue pair.
func (r *replay) query(c *call) {
	r.t.Helper()
	s := r.sides[c.args.num("qp", 0)].qp.Snapshot()
	if want := roce.State(c.reply.num("state", 0)); s.State != want {
		r.t.Errorf("dialogue line %d: state %s, want %s", c.line, s.State, want)
	}
	for _, psn := range []struct {
		key string
		got wire.PSN
	}{{"rq_psn", s.ExpectedPSN}, {"sq_psn", s.NextPSN}} {
		if want := wire.PSN(c.reply.num(psn.key, 0)); psn.got != want {
			r.t.Errorf("dialogue line %d: %s 0x%06x, want 0x%06x", c.line, psn.key,
				uint32(psn.got), uint32(want))
		}
	}
}

// poll compares completions with those that the program got. Sends and receives
// of one host share a CQ in the capture and have one each here.
func (r *replay) poll(c *call) {
	r.t.Helper()
	for i, want := range c.wcs {
		opcode := want.num("opcode", 0)
		cq := r.send
		if opcode >= uint64(roce.WCRecv) {
			cq = r.recv
		}
		got, ok := r.next(cq)
		if !ok {
			r.t.Fatalf("dialogue line %d: completion %d is missing: %v", c.line, i, want)
		}
		r.sameAsWC(c.line, got, want)
	}
}

// next takes the next completion. When there is none yet the last packet has
// come, and the time is that of the timers.
func (r *replay) next(cq *roce.CQ) (wc roce.Completion, ok bool) {
	r.t.Helper()
	var got [1]roce.Completion
	for range 16 {
		n, err := cq.Poll(got[:])
		must(r.t, err)
		if n == 1 {
			return got[0], true
		}
		if !r.over {
			break
		}
		for _, s := range r.sides {
			if at, ok := s.qp.NextDeadline(); ok {
				s.qp.HandleDeadline(at)
			}
		}
	}
	return wc, false
}

// sameAsWC compares a completion with a wc line. Soft-RoCE sets the flag GRH on
// every receive, shows an invalidated key with the kernel's flag instead of the
// library's, and gives lengths and flags of sends too.
func (r *replay) sameAsWC(line int, got roce.Completion, want words) {
	r.t.Helper()
	w := roce.Completion{
		WRID: want.num("wr_id", 0), QPN: uint32(want.num("qpn", 0)),
		Status: roce.Status(want.num("status", 0)),
	}
	got.Time = 0
	if w.Status != roce.StatusSuccess {
		got.Opcode, got.Flags, got.ByteLen = 0, 0, 0 // not valid
		if got != w {
			r.t.Errorf("dialogue line %d: completion %+v, want %+v", line, got, w)
		}
		return
	}
	w.Opcode, w.ByteLen = roce.WCOpcode(want.num("opcode", 0)), uint32(want.num("len", 0))
	switch {
	case w.Opcode >= roce.WCRecv:
		w.SrcQP = uint32(want.num("src_qp", 0))
		if w.SrcQP != 0 {
			w.Flags |= roce.WCGRH
		}
		if want.has("imm") {
			w.Flags |= roce.WCWithImm
			w.Imm = uint32(want.num("imm", 0))
		}
		if want.has("inv") {
			w.Flags |= roce.WCWithInv
			w.InvalidatedKey = r.keyed[uint32(want.num("inv", 0))].RKey()
		}
	case w.Opcode != roce.WCRead && w.Opcode != roce.WCCompSwap && w.Opcode != roce.WCFetchAdd:
		w.ByteLen = 0
	}
	if got != w {
		r.t.Errorf("dialogue line %d: completion %+v, want %+v", line, got, w)
	}
}
