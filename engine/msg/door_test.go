package msg_test

import (
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
	rmsg "xroce/roce/msg"
)

// A door is where the villain of a stage asks for connections with hellos, and the hub answers
// each: a pair of queue pairs, in the place of the managers of connections.
type door struct {
	stage *stage
	hub   *engine.QP
	bad   *engine.QP
	room  [2]*engine.MR // of the hub, and of the villain: what is said and what is heard
	said  int
	heard int // answers
	busy  int // what the villain has said and is not answered
}

// doorBytes is the memory at each end of a door: to say something, and to hear it.
const doorBytes = 2 * rmsg.HelloLen

// knock has the villain ask for connections with one hello after the other. Behind each answer it
// asks again.
func (s *stage) knock(hellos []rmsg.Hello) {
	d := &door{stage: s}
	ends := [2]*seat{s.hub.seat, s.bad.seat}
	var qps [2]*engine.QP
	var infos [2]engine.Endpoint
	for i, x := range ends {
		pd := x.dev.AllocPD()
		qps[i], infos[i] = x.newQP(pd, 0)
		var err error
		d.room[i], err = x.dev.AllocMR(pd, doorBytes, mem.LocalWrite)
		must(s.t, err)
	}
	d.hub, d.bad = qps[0], qps[1]
	s.connect(d.hub, d.bad, infos[0], infos[1])
	must(s.t, d.listen(0))
	s.door = d
	s.bad.act = func(v *villain) bool {
		if d.busy > 0 {
			return false
		}
		must(s.t, d.listen(1))
		h := hellos[d.said%len(hellos)]
		d.said++
		d.busy++
		h.Put(d.room[1].Bytes()[:rmsg.HelloLen])
		must(s.t, d.say(1))
		return true
	}
}

// end is the queue pair at one end: 0 is the hub.
func (d *door) end(i int) *engine.QP { return [2]*engine.QP{d.hub, d.bad}[i] }

// listen waits for what the other end says.
func (d *door) listen(i int) error {
	return d.end(i).PostRecv(&roce.RecvWR{
		SGList: []roce.SGE{d.room[i].SGE(rmsg.HelloLen, rmsg.HelloLen)},
	})
}

// say tells the other end what is in the room.
func (d *door) say(i int) error {
	return d.end(i).PostSend(&roce.SendWR{
		WRID: sent, Opcode: roce.OpSend, Flags: roce.SendSignaled,
		SGList: []roce.SGE{d.room[i].SGE(0, rmsg.HelloLen)},
	})
}

// answer has the hub hear a hello, and refuse it or not, which takes it as long as a connection.
func (d *door) answer(o *owner, wc *roce.Completion) {
	t := d.stage.t
	must(t, wc.Err())
	if wc.Opcode != roce.WCRecv {
		return
	}
	o.busy += costOfConnection
	ours := hello()
	_, err := o.machine.Hear(ours, d.room[0].Bytes()[rmsg.HelloLen:])
	if err == nil {
		t.Fatal("a hello that nobody speaks is taken")
	}
	ours.Status = rmsg.Refusal(err)
	ours.Put(d.room[0].Bytes()[:rmsg.HelloLen])
	must(t, d.listen(0))
	must(t, d.say(0))
}

// answered has the villain read the refusal.
func (d *door) answered(wc *roce.Completion) {
	t := d.stage.t
	must(t, wc.Err())
	if wc.Opcode != roce.WCRecv {
		return
	}
	h, err := rmsg.ParseHello(d.room[1].Bytes()[rmsg.HelloLen:])
	must(t, err)
	if h.Status == rmsg.StatusOK || h.Version != rmsg.Version {
		t.Fatalf("a hello that nobody speaks is answered with %v", &h)
	}
	d.heard++
	d.busy--
}

// strangeHellos are hellos with one field wrong each, the version first.
func strangeHellos() []rmsg.Hello {
	var list []rmsg.Hello
	for _, change := range []func(h *rmsg.Hello){
		func(h *rmsg.Hello) { h.Version, h.MinVersion = 3, 2 },
		func(h *rmsg.Hello) { h.Version, h.MinVersion = 0, 0 },
		func(h *rmsg.Hello) { h.Version, h.MinVersion = 255, 255 },
		func(h *rmsg.Hello) { h.Required = 1 << 15 },
		func(h *rmsg.Hello) { h.Status = rmsg.StatusBusy },
	} {
		h := hello()
		change(h)
		list = append(list, *h)
	}
	return list
}
