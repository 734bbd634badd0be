package roce_test

import (
	"xroce/roce"
	"xroce/roce/wire"
)

// A rally is what the ends of a relay post. The first end opens with work that is under way at
// once. Each end answers, one work request at a time, when it owes the other one a response. On
// what has one packet and room the acknowledge rides that is due; it goes behind the first packet
// of anything else.
type rally struct {
	opens   []work
	answers [2][]work
}

// post has an end post the next work request that it is to.
func (r *relay) post(end int) {
	must(r.t, r.p.ends[end].qp.PostSend(&r.due[end][r.next[end]]))
	r.next[end]++
}

// answer has each end that owes a response post what it answers next. What an acknowledge can ride
// on waits for one: the data of a READ goes before.
func (r *relay) answer() {
	for end, e := range r.p.ends {
		if r.next[end] == len(r.due[end]) || !e.qp.Responding() {
			continue
		}
		if acked(&r.p.packet) || !rideable(&r.due[end][r.next[end]]) {
			r.post(end)
		}
	}
}

// acked reports whether a mere acknowledge answers a packet.
func acked(p *wire.Packet) bool {
	return p.BTH.AckReq && p.Spec.Class&(wire.ClassSend|wire.ClassWrite) != 0
}

// rideable reports whether an acknowledge can ride on a work request.
func rideable(wr *roce.SendWR) bool {
	switch wr.Opcode {
	case roce.OpSend, roce.OpSendImm, roce.OpWrite, roce.OpWriteImm:
		return wr.SGList[0].Length <= mostBesideAck
	}
	return false
}

// goOn posts the next answer though nobody owes anything any more: one response may be for several
// requests, and where frames are lost it is for more of them. It reports whether there was one.
func (r *relay) goOn() bool {
	for end, due := range r.due {
		if r.next[end] < len(due) {
			r.post(end)
			return true
		}
	}
	return false
}

// mostBesideAck is how long a payload is at most that leaves room for an acknowledge: a path MTU of
// 256 bytes less an AETH and an APSN.
const mostBesideAck = 256 - 8

// carriers are works of one packet that an acknowledge can ride on: one of each opcode, from none
// to as many bytes as leave room for it.
var carriers = [...]work{
	{roce.OpSend, 8},
	{roce.OpWrite, mostBesideAck},
	{roce.OpSendImm, 0},
	{roce.OpWriteImm, 1},
}

// carrier is one of carriers.
func carrier(i int) work { return carriers[i%len(carriers)] }

// rides reports whether acknowledges ride.
func (k linkKind) rides() bool { return k.ext&roce.ExtPiggybackAck != 0 }

// alone is a rally about one work request. Where acknowledges ride, it is what the second end says
// first in a conversation of otherwise carriers, beginning with that of a number.
func (k linkKind) alone(w work, i int) rally {
	if !k.rides() {
		return rally{opens: []work{w}}
	}
	return rally{
		opens:   []work{carrier(i)},
		answers: [2][]work{{carrier(i + 1), carrier(i + 3)}, {w, carrier(i + 2)}},
	}
}

// pipelines are work requests that are under way at once.
var pipelines = [][]work{
	{
		{roce.OpSend, 300},
		{roce.OpWrite, 700},
		{roce.OpRead, 600},
		{roce.OpFetchAdd, 8},
		{roce.OpSendInv, 10},
		{roce.OpWriteImm, 257},
		{roce.OpRead, 1},
		{roce.OpSend, 0},
	},
	{
		{roce.OpRead, 1000},
		{roce.OpSendImm, 5},
		{roce.OpAtomicWrite, 8},
		{roce.OpCmpSwap, 8},
		{roce.OpFlush, 8},
		{roce.OpSendInv, 513},
		{roce.OpFetchAdd, 8},
		{roce.OpWrite, 0},
	},
	{
		{roce.OpWrite, 1},
		{roce.OpSend, 1},
		{roce.OpSendInv, 1},
		{roce.OpSendInv, 1},
		{roce.OpWrite, 1},
		{roce.OpSendImm, 1},
		{roce.OpWriteImm, 1},
		{roce.OpSend, 1},
	},
	{
		{roce.OpRead, 300},
		{roce.OpRead, 300},
		{roce.OpFetchAdd, 8},
		{roce.OpFetchAdd, 8},
		{roce.OpRead, 8},
		{roce.OpCmpSwap, 8},
		{roce.OpRead, 300},
		{roce.OpSend, 300},
	},
}

// pipeline is a rally about one of pipelines. Where acknowledges ride, both ends answer, too, with
// what they can ride on and what they cannot.
func (k linkKind) pipeline(i int) rally {
	x := rally{opens: k.only(pipelines[i])}
	if k.rides() {
		x.answers = [2][]work{
			{carrier(i)},
			{carrier(i + 1), {roce.OpSendInv, 300}, carrier(i + 2), {roce.OpRead, 300}},
		}
	}
	return x
}
