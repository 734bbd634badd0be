package msg_test

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	rmsg "xroce/roce/msg"
)

// A strangerHost is a device whose connections a test plays by verbs.
type strangerHost struct {
	dev     *engine.Device
	manager *cm.Manager
}

func newStrangerHost(t testing.TB, network *sim.Network, n byte) *strangerHost {
	t.Helper()
	port, err := network.NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 0, n}, MTU: 4200,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, n})},
	})
	must(t, err)
	h := &strangerHost{}
	h.dev, err = engine.OpenLink(port, port, engine.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, h.dev.Close()) })
	h.manager, err = cm.Open(h.dev, quick)
	must(t, err)
	t.Cleanup(func() { must(t, h.manager.Close()) })
	return h
}

// A stranger is a peer that says and writes what a test wants.
type stranger struct {
	t        testing.TB
	host     *strangerHost
	conn     *cm.Conn
	pd       *engine.PD
	qp       *engine.QP
	cq       *engine.CQ
	mr       *engine.MR
	controls uint32 // that it has said
	frames   uint32
	heard    []rmsg.Control // and not taken by hear
	done     []roce.Completion
}

// strangerReceives is how many receives a stranger has, of one slot each; behind them is what it
// writes.
const strangerReceives = 256

// hello is what an endpoint says.
func hello() *rmsg.Hello {
	return &rmsg.Hello{
		Version: rmsg.Version, MinVersion: rmsg.MinVersion,
		Capabilities: rmsg.CapabilityGet | rmsg.CapabilityPut | rmsg.CapabilityProvision,
		Service:      rmsg.ServiceEndpoint, Payload: 1024, Slots: 32, Rendezvous: 64,
		Receives: strangerReceives,
	}
}

// dial connects a stranger that says so of itself.
func (h *strangerHost) dial(t testing.TB, at netip.AddrPort, private []byte) (*stranger, error) {
	t.Helper()
	s := &stranger{t: t, host: h}
	s.pd = h.dev.AllocPD()
	var err error
	s.cq, err = h.dev.CreateCQ(4 * strangerReceives)
	must(t, err)
	s.mr, err = h.dev.AllocMR(s.pd, strangerReceives*rmsg.MaxControlLen+1<<20,
		mem.LocalWrite|mem.RemoteRead)
	must(t, err)
	s.conn, err = h.manager.Dial(within(t), at, cm.Setup{
		PD: s.pd, Init: engine.QPInit{
			SendCQ: s.cq, RecvCQ: s.cq, MaxSendWR: strangerReceives,
			MaxRecvWR: strangerReceives, MaxSendSGE: 1, MaxRecvSGE: 1,
			MaxInline: rmsg.MaxControlLen,
		},
		Access: mem.RemoteRead | mem.RemoteWrite, Private: private,
		Prepare: func(qp *engine.QP) error {
			s.qp = qp
			for i := range strangerReceives {
				must(t, s.receive(i))
			}
			return nil
		},
	})
	return s, err
}

// mustDial connects a stranger with a right hello, and waits for its slots.
func (h *strangerHost) mustDial(t testing.TB, at netip.AddrPort) (*stranger, *rmsg.Control) {
	t.Helper()
	private := make([]byte, rmsg.HelloLen)
	hello().Put(private)
	s, err := h.dial(t, at, private)
	must(t, err)
	ring := s.hear(rmsg.TypeAdvert)
	return s, ring
}

func (s *stranger) receive(i int) error {
	return s.qp.PostRecv(&roce.RecvWR{
		WRID:   uint64(i),
		SGList: []roce.SGE{s.mr.SGE(i*rmsg.MaxControlLen, rmsg.MaxControlLen)},
	})
}

// memory is where it may write to, to send it.
func (s *stranger) memory() []byte { return s.mr.Bytes()[strangerReceives*rmsg.MaxControlLen:] }

// sent marks the work request IDs of what is sent.
const sent = 1 << 62

// look waits for completions.
func (s *stranger) look() {
	s.t.Helper()
	var wcs [16]roce.Completion
	n, err := s.cq.Wait(within(s.t), wcs[:])
	must(s.t, err)
	for _, wc := range wcs[:n] {
		if wc.WRID >= sent || wc.Status != roce.StatusSuccess {
			s.done = append(s.done, wc)
			continue
		}
		if wc.Opcode == roce.WCRecv {
			m, err := rmsg.ParseControl(s.mr.Bytes()[wc.WRID*rmsg.MaxControlLen:][:wc.ByteLen])
			must(s.t, err)
			s.heard = append(s.heard, m)
		}
		must(s.t, s.receive(int(wc.WRID)))
	}
}

// hear waits for a control message of a type.
func (s *stranger) hear(want rmsg.Type) *rmsg.Control {
	s.t.Helper()
	for {
		for len(s.heard) > 0 {
			m := s.heard[0]
			s.heard = s.heard[1:]
			if m.Type == want {
				return &m
			}
		}
		s.look()
	}
}

// end waits for the end of a work request, and returns its status.
func (s *stranger) end() roce.Status {
	s.t.Helper()
	for {
		for len(s.done) > 0 {
			wc := s.done[0]
			s.done = s.done[1:]
			if wc.WRID >= sent {
				return wc.Status
			}
		}
		s.look()
	}
}

// say sends a control message.
func (s *stranger) say(m rmsg.Control) {
	s.t.Helper()
	m.Sequence = s.controls
	s.controls++
	must(s.t, s.qp.PostSend(&roce.SendWR{
		WRID: sent, Opcode: roce.OpSend, Flags: roce.SendInline | roce.SendSignaled,
		Inline: m.Put(make([]byte, rmsg.MaxControlLen)),
	}))
	s.end()
}

// frame makes a frame with one message.
func (s *stranger) frame(epoch uint32, data []byte, tag uint64) []byte {
	var w rmsg.FrameWriter
	w.Reset(s.memory())
	payload, _ := w.Append(&rmsg.RecordHeader{
		Type: rmsg.RecordEager, Len: uint32(len(data)), Tag: tag,
	})
	copy(payload, data)
	b := w.Finish(&rmsg.FrameHeader{Epoch: epoch, Sequence: s.frames})
	s.frames++
	return b
}

// write writes a frame, which is at the beginning of its memory, to a slot of a ring.
func (s *stranger) write(ring *rmsg.Control, slot int, b []byte) roce.Status {
	s.t.Helper()
	must(s.t, s.qp.PostSend(&roce.SendWR{
		WRID: sent, Opcode: roce.OpWriteImm, Flags: roce.SendSignaled,
		Imm:        rmsg.ImmediateOf(ring.Class, ring.ID, uint16(slot)).Uint32(),
		SGList:     []roce.SGE{s.mr.SGE(strangerReceives*rmsg.MaxControlLen, len(b))},
		RemoteAddr: ring.Addr + uint64(slot)*ring.Len, RKey: ring.RKey,
	}))
	return s.end()
}

// number is a payload that says which it is.
func number(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// newHub makes an endpoint that listens, with a channel of the connections that it takes.
func newHub(
	t testing.TB, o msg.Options,
) (network *sim.Network, hub *msg.Endpoint, at netip.AddrPort, conns chan *msg.Conn) {
	t.Helper()
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	hub, addr := newNode(t, network, 1, o)
	at = netip.AddrPortFrom(addr, 7471)
	l, err := hub.Listen(at)
	must(t, err)
	conns = make(chan *msg.Conn, 100)
	ctx, done := within(t), make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept(ctx)
			if err != nil {
				return
			}
			conns <- c
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return network, hub, at, conns
}
