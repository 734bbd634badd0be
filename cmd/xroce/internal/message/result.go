package message

import (
	"xroce/cmd/xroce/internal/perf"
	"xroce/engine/msg"
	rmsg "xroce/roce/msg"
)

// A Result is what a test came to, of all connections.
type Result struct {
	// Latency is of a client, in microseconds: of RPC the round trip, of Pingpong half of it.
	Latency *perf.Latency
	Rate    *Rate           // of Stream and RPC; of a server of Stream what it saw
	Ways    []Way           // of the messages of this end
	Rails   []msg.RailState // a device each: of all connections, before they were closed
}

// A Rate is how fast messages went.
type Rate struct {
	Peak    float64 // messages a second of the fastest part, 0 where that is not known
	Average float64
}

// A Way is how messages of this end travelled.
type Way struct {
	Protocol rmsg.Protocol
	Why      rmsg.Reason
	Messages int
}

// result puts together what the connections have measured.
func (r *run) result() *Result {
	res := &Result{Ways: r.ways(), Rails: r.rails}
	c := &r.config
	if c.Server && c.Test != Stream {
		return res
	}
	if c.Test != Stream {
		res.Latency = r.latency()
	}
	if c.Test == Pingpong {
		return res
	}
	res.Rate = &Rate{}
	first := r.links[0]
	begin, end := first.begin, first.end
	for _, l := range r.links {
		if l.begin.Before(begin) {
			begin = l.begin
		}
		if l.end.After(end) {
			end = l.end
		}
		res.Rate.Peak += l.peak
	}
	messages := c.Iters * c.Peers
	if c.Server {
		messages -= c.Peers // it counts from the first one that is here
	}
	res.Rate.Average = float64(messages) / max(end.Sub(begin).Seconds(), 1e-9)
	return res
}

// railStates adds up what each rail is in all connections: up when it is in all of them.
func (r *run) railStates() []msg.RailState {
	all := r.links[0].conn.Rails()
	for _, l := range r.links[1:] {
		for i, s := range l.conn.Rails() {
			all[i].Up = all[i].Up && s.Up
			all[i].Usage.Add(s.Usage)
		}
	}
	return all
}

// latency is that of the calls of all connections.
func (r *run) latency() *perf.Latency {
	var samples []float64
	for _, l := range r.links {
		samples = append(samples, l.samples...)
	}
	if r.config.Test == Pingpong {
		for i := range samples {
			samples[i] /= 2
		}
	}
	l := perf.Summarize(samples, perf.SamplesNone)
	return &l
}

// ways counts how the messages of this end travelled.
func (r *run) ways() []Way {
	var list []Way
	for p := range r.links[0].ways {
		for why := range r.links[0].ways[p] {
			n := 0
			for _, l := range r.links {
				n += l.ways[p][why]
			}
			if n > 0 {
				list = append(list, Way{rmsg.Protocol(p), rmsg.Reason(why), n})
			}
		}
	}
	return list
}
