package roce_test

import (
	"fmt"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// mustPlay plays a rally and wants it to come out right.
func (r *relay) mustPlay(x rally, what string, f faultFunc) [2]int {
	r.t.Helper()
	sent, err := r.play(x, f)
	if err != nil {
		r.t.Fatalf("%v, %s: %v", x, what, err)
	}
	return sent
}

// A sentFrame is the nth frame, counted from 0, that an end sends.
type sentFrame struct{ end, n int }

// clean plays a rally without faults. It returns how many frames each end sent, and how long those
// are that an acknowledge rode on. There is one in each rally, where they ride: without it, faults
// would show nothing of them.
func (r *relay) clean(x rally) (sent [2]int, rode map[sentFrame]int) {
	r.t.Helper()
	rode = make(map[sentFrame]int)
	again := r.again()
	sent = r.mustPlay(x, "no fault", func(from, nth int, frame []byte) fault {
		if op := wire.Opcode(frame[frameBTH]); op.Spec().Has(wire.HasAPSN) {
			rode[sentFrame{from, nth}] = len(frame)
			r.rode[op]++
		}
		return fault{}
	})
	if r.kind.rides() != (len(rode) > 0) {
		r.t.Fatalf("%v: acknowledges rode on %d packets", x, len(rode))
	}
	if n := r.again() - again; n != 0 {
		r.t.Fatalf("%v: %d packets were sent again, though none was lost", x, n)
	}
	return sent, rode
}

// again is how many packets both ends have sent again.
func (r *relay) again() (n uint64) {
	for _, e := range r.p.ends {
		n += e.count[counter.Retransmits]
	}
	return n
}

// oneFault lets one frame of an end have a fault.
func oneFault(end, n int, f fault) faultFunc {
	return func(from, nth int, _ []byte) fault {
		if from == end && nth == n {
			return f
		}
		return fault{}
	}
}

// singleFaults are what is done to each frame alone: it is lost, comes twice, comes again
// when all is done, or is damaged.
var singleFaults = []struct {
	name string
	f    fault
}{
	{"lost", fault{Drop: true}},
	{"twice", fault{Dup: true}},
	{"again late", fault{Dup: true, Delay: 20 * roce.Millisecond}},
	{"damaged", fault{Flip: 1 + 8*(frameBTH+13) + 5}},
}

// eachSingle does each of singleFaults to each frame of a rally.
func (r *relay) eachSingle(x rally) (plays int) {
	r.t.Helper()
	clean, _ := r.clean(x)
	for end, frames := range clean {
		for n := range frames {
			for _, k := range singleFaults {
				r.mustPlay(x, fmt.Sprintf("frame %d of end %d %s", n, end, k.name),
					oneFault(end, n, k.f))
				plays++
			}
		}
	}
	return plays
}

// pairFaults are what is done to each two frames.
var pairFaults = []struct {
	name string
	f    [2]fault
}{
	{"lost, lost", [2]fault{{Drop: true}, {Drop: true}}},
	{"lost, twice", [2]fault{{Drop: true}, {Dup: true}}},
	{"twice, lost", [2]fault{{Dup: true}, {Drop: true}}},
}

// eachPair does each of pairFaults to each two frames of a rally, of either end, of the
// first try and of those that are sent again.
func (r *relay) eachPair(x rally) (plays int) {
	r.t.Helper()
	var all []sentFrame
	clean, _ := r.clean(x)
	for end, frames := range clean {
		for n := range 2*frames + 1 {
			all = append(all, sentFrame{end, n})
		}
	}
	for i, a := range all {
		for _, b := range all[:i] {
			for _, k := range pairFaults {
				what := fmt.Sprintf("frames %v and %v %s", a, b, k.name)
				r.mustPlay(x, what, func(from, nth int, _ []byte) fault {
					switch (sentFrame{from, nth}) {
					case a:
						return k.f[0]
					case b:
						return k.f[1]
					}
					return fault{}
				})
				plays++
			}
		}
	}
	return plays
}

// eachBit turns over each bit of each packet of a rally that an acknowledge rides on.
func (r *relay) eachBit(x rally) (plays int) {
	r.t.Helper()
	_, rode := r.clean(x)
	for frame, size := range rode {
		for bit := range 8 * size {
			r.mustPlay(x, fmt.Sprintf("bit %d of frame %v", bit, frame),
				oneFault(frame.end, frame.n, fault{Flip: 1 + bit}))
			plays++
		}
	}
	return plays
}
