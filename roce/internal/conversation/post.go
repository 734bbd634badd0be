package conversation

import (
	"errors"
	"fmt"
	"math"

	"xroce/roce"
)

// A posting is a work request as the file has it: regions by name.
type posting struct {
	wr     roce.SendWR
	recv   bool
	srq    bool // to the SRQ
	inline bool
	list   []piece
	data   data // with inline
	remote address
	rkey   key
	inv    key
	bind   binding
	fails  string
}

// parsePost reads: post OPERATION wr=ID and what the operation needs.
func parsePost(a *args) action {
	op, _, isSend := choose(a, sendOps)
	w := posting{recv: !isSend && a.flag("recv"), inline: a.has("inline")}
	if !isSend && !w.recv {
		a.fail(a.pos, "the operation is missing")
	}
	if !a.has("wr") {
		a.fail(a.pos, "wr= is missing")
	}
	w.srq = w.recv && a.flag("srq")
	w.wr = roce.SendWR{
		WRID: a.number("wr", 0, math.MaxUint64), Opcode: op,
		Imm:         uint32(a.number("imm", 0, math.MaxUint32)),
		CompareAdd:  a.number("compare_add", 0, math.MaxUint64),
		Swap:        a.number("swap", 0, math.MaxUint64),
		Flush:       uint8(a.number("plt", 0, math.MaxUint8)),
		FlushLength: uint32(a.number("flush_len", 0, math.MaxUint32)),
		FlushRegion: a.flag("flush_region"),
		RemoteQPN:   uint32(a.number("dest_qpn", 0, math.MaxUint32)),
		RemoteQKey:  uint32(a.number("qkey", 0, math.MaxUint32)),
		RemoteSRQN:  uint32(a.number("srqn", 0, math.MaxUint32)),
	}
	for _, f := range sendFlags {
		if a.flag(f.name) {
			w.wr.Flags |= f.bit
		}
	}
	w.list = read(a, "sge", parsePieces, nil)
	w.data = read(a, "inline", parseData, data{})
	w.remote = read(a, "remote", parseAddress, address{})
	w.rkey = read(a, "rkey", parseKey, key{})
	w.inv = read(a, "inv", parseKey, key{})
	if op == roce.OpBindMW {
		w.bind = readBinding(a)
	}
	w.fails = a.text("error")
	return func(p *player) error { return p.post(&w) }
}

func (p *player) post(w *posting) error {
	if _, twice := p.posted[w.wr.WRID]; twice {
		return fmt.Errorf("a work request %d is posted already", w.wr.WRID)
	}
	list, err := p.pieces(w.list)
	if err != nil {
		return err
	}
	switch recv := (&roce.RecvWR{WRID: w.wr.WRID, SGList: list}); {
	case w.srq && p.srq == nil:
		return errNoSRQ
	case w.srq:
		err = p.srq.PostRecv(recv)
	case w.recv:
		err = p.qp.PostRecv(recv)
	default:
		wr := w.wr
		wr.SGList = list
		if err := p.fill(w, &wr); err != nil {
			return err
		}
		err = p.qp.PostSend(&wr)
		// Inline data is copied: what becomes of the buffer is nobody's business.
		clear(wr.Inline)
	}
	if err == nil {
		p.posted[w.wr.WRID] = w.recv
		// Whoever posts tells the queue that drives the QP.
		p.qp.HandleDeadline(p.now)
	}
	return expectError(err, w.fails)
}

// fill puts into a send work request what the file has by name.
func (p *player) fill(w *posting, wr *roce.SendWR) (err error) {
	var errs [4]error
	wr.RemoteAddr, errs[0] = p.address(w.remote)
	wr.RKey, errs[1] = p.key(w.rkey)
	wr.InvalidateKey, errs[2] = p.key(w.inv)
	if wr.Opcode == roce.OpBindMW {
		if wr.Bind, err = p.bind(&w.bind); err != nil {
			return err
		}
	}
	if w.inline {
		var b []byte
		b, errs[3] = p.content(w.data)
		wr.Inline = append([]byte(nil), b...)
		wr.Flags |= roce.SendInline
	}
	if t := p.conf.typ.num; t == roce.TypeUD || t == roce.TypeGSI {
		wr.AH, err = roce.NewAH(p.domain, pathTo(peerHost))
	}
	return errors.Join(append(errs[:], err)...)
}
