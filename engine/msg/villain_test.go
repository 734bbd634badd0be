package msg_test

import (
	"bytes"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
	rmsg "xroce/roce/msg"
)

// A villain is the bad peer of a stage: a test says what it does.
type villain struct {
	*seat
	pd       *engine.PD
	qp       *engine.QP
	info     engine.Endpoint
	mr       *engine.MR
	act      func(v *villain) bool // does something, and reports whether it did
	frozen   bool                  // its device does nothing at all
	under    int                   // work requests
	controls uint32
	frames   uint32
	step     int // of the act
	heard    [32]int
	last     [32]rmsg.Control // of each type
	wcs      [16]roce.Completion
}

// Where the villain has what: receives, frames, and memory that may be read and written.
const (
	villainFrame = jointReceives * rmsg.MaxControlLen
	villainRoom  = villainFrame + 1<<16
	villainBytes = 1 << 20
)

// threaten connects the hub and the villain, for the first time or again.
func (s *stage) threaten() {
	v := s.bad
	*v = villain{seat: v.seat, act: v.act}
	v.pd = v.dev.AllocPD()
	v.qp, v.info = v.newQP(v.pd, mem.RemoteRead|mem.RemoteWrite)
	var err error
	v.mr, err = v.dev.AllocMR(v.pd, villainRoom+villainBytes,
		mem.LocalWrite|mem.RemoteRead|mem.RemoteWrite)
	must(s.t, err)
	for i := range jointReceives {
		must(s.t, v.receive(i))
	}
	s.threat = s.hub.newJoint()
	s.connect(s.threat.qp, v.qp, s.threat.info, v.info)
	s.hub.busy += costOfConnection
	s.threat.open()
}

func (v *villain) receive(i int) error {
	return v.qp.PostRecv(&roce.RecvWR{
		WRID: uint64(i), SGList: []roce.SGE{v.mr.SGE(i*rmsg.MaxControlLen, rmsg.MaxControlLen)},
	})
}

func (v *villain) turn() bool {
	if v.frozen {
		return false
	}
	worked := v.dev.Progress()
	n, err := v.cq.Poll(v.wcs[:])
	must(v.stage.t, err)
	for _, wc := range v.wcs[:n] {
		switch {
		case v.stage.door != nil && wc.QPN == v.stage.door.bad.QPN():
			v.stage.door.answered(&wc)
		case wc.QPN != v.qp.QPN():
		case wc.WRID >= sent:
			v.under--
		case wc.Status == roce.StatusSuccess:
			if wc.Opcode == roce.WCRecv {
				m, err := rmsg.ParseControl(
					v.mr.Bytes()[wc.WRID*rmsg.MaxControlLen:][:wc.ByteLen])
				must(v.stage.t, err)
				v.heard[m.Type]++
				v.last[m.Type] = m
			}
			_ = v.receive(int(wc.WRID))
		}
	}
	for v.act != nil && v.heard[rmsg.TypeAdvert] > 0 && v.under < 32 && !v.frozen && v.act(v) {
		worked = true
	}
	return worked || n > 0
}

// say sends a control message.
func (v *villain) say(m rmsg.Control) bool {
	m.Sequence = v.controls
	v.controls++
	return v.post(&roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendInline,
		Inline: m.Put(make([]byte, rmsg.MaxControlLen)),
	})
}

func (v *villain) post(wr *roce.SendWR) bool {
	wr.WRID, wr.Flags = sent, wr.Flags|roce.SendSignaled
	if v.qp.PostSend(wr) != nil {
		return false // it is over
	}
	v.under++
	return true
}

// write writes a frame with a record to a slot of a ring, by a key and with an immediate.
func (v *villain) write(ring *rmsg.Control, slot int, rec rmsg.RecordHeader, imm uint32) bool {
	var w rmsg.FrameWriter
	at := villainFrame + int(v.frames%32)*2048 // those before may not have left
	w.Reset(v.mr.Bytes()[at:][:2048])
	w.Append(&rec)
	n := len(w.Finish(&rmsg.FrameHeader{Epoch: ring.ID, Sequence: v.frames}))
	v.frames++
	return v.post(&roce.SendWR{
		Opcode: roce.OpWriteImm, Imm: imm, SGList: []roce.SGE{v.mr.SGE(at, n)},
		RemoteAddr: ring.Addr + uint64(slot)*ring.Len, RKey: ring.RKey,
	})
}

// frame writes a frame to the slot that is next.
func (v *villain) frame(rec rmsg.RecordHeader) bool {
	ring := &v.last[rmsg.TypeAdvert]
	slot := int(v.frames) % int(ring.Number)
	return v.write(ring, slot, rec, rmsg.ImmediateOf(0, ring.ID, uint16(slot)).Uint32())
}

// once says something at the beginning, behind the acknowledgement of its slots.
func once(do func(v *villain) bool) func(v *villain) bool {
	return func(v *villain) bool {
		v.step++
		switch v.step {
		case 1:
			return v.say(rmsg.Control{
				Type: rmsg.TypeAdvertAck, ID: v.last[rmsg.TypeAdvert].ID,
			})
		case 2:
			return do(v)
		}
		return false
	}
}

// stageSizes are the lengths of the messages of the good peer.
var stageSizes = []int{64, 1000, 20_000, 300_000, 64, 64, 5000, 100_000}

// line is the text of message n of the good peer.
func line(n int) []byte {
	b := make([]byte, stageSizes[n%len(stageSizes)])
	for i := range b {
		b[i] = byte(i*3 + i>>8 + n)
	}
	return b
}

// post sends the next message of the good peer.
func (s *stage) post(c *rmsg.Conn, m *rmsg.Send) {
	m.Pieces, m.Tag = [][]byte{line(s.next)}, uint64(s.next)
	s.next++
	must(s.t, c.Send(s.clock.Now(), m))
}

// expect posts a receive of the hub for the good peer.
func (s *stage) expect(r *rmsg.Receive) {
	if r.Pieces == nil {
		r.Pieces = [][]byte{make([]byte, 300_000)}
	}
	r.From = s.joined.core
	must(s.t, s.hub.machine.Receive(s.clock.Now(), r))
}

// sent is told of a message that is complete.
func (s *stage) sent(o *owner, m *rmsg.Send) {
	if o == s.good {
		must(s.t, m.Err)
		s.post(m.User.(*joint).core, m)
	}
}

// received is told of a message that the hub has.
func (s *stage) received(r *rmsg.Receive) {
	if r.Source != s.joined.core {
		return // of the villain, and of no use
	}
	must(s.t, r.Err)
	if !bytes.Equal(r.Pieces[0][:r.Length], line(int(r.SentTag))) {
		s.t.Fatalf("message %d of the good peer is another", r.SentTag)
	}
	s.came++
	s.expect(r)
}

// over is told that a connection is.
func (s *stage) over(j *joint, err error) {
	if j != s.threat {
		s.t.Fatalf("the good connection ends: %v", err)
	}
	s.ends = append(s.ends, err)
	delete(s.hub.joints, j.qp.QPN())
	j.qp.Close()
	s.bad.qp.Close()
	must(s.t, j.control.Deregister())
	if s.threaten(); s.react != nil {
		s.react(s)
	}
}
