package main

import (
	"strings"

	"xroce/cmd/xroce/internal/message"
	"xroce/engine"
	rmsg "xroce/roce/msg"
)

// A msgReport tells what came of a test of messages.
type msgReport struct {
	config  message.Config
	machine rmsg.Config
	devices []*engine.Device // a rail each
	peer    string           // address and port
}

// msgRuler divides what a test prints, as in perftest.
var msgRuler = strings.Repeat("-", 87) + "\n"

// heading tells what is measured.
func (r *msgReport) heading(printf func(string, ...any)) {
	c, m := &r.config, &r.machine
	data := "compared"
	if c.Unverified {
		data = "not compared"
	}
	printf("%s                    Message %s Test\n", msgRuler, c.Test)
	printf(" Device          : %s\t\tBackend        : %s\n", r.names(),
		r.devices[0].Link().Backend)
	printf(" Peer            : %s\tConnections    : %d\n", r.peer, c.Peers)
	printf(" Protocol        : %s\t\tPolicy         : %s\n", m.Protocol, msgPolicies[m.Policy])
	printf(" Eager limit     : %d[B]\tSlots          : %d\n", m.EagerLimit, m.Slots)
	printf(" Level           : %s\tData           : %s\n", msgLevels[c.Level], data)
	if c.Test != message.Pingpong {
		printf(" Depth           : %d\n", c.Depth)
	}
	if c.Test == message.RPC {
		printf(" Reply           : %d[B]\n", c.Reply)
	}
	printf("%s", msgRuler)
}

// result tells what was measured, in the columns of perftest, and how messages travelled.
func (r *msgReport) result(printf func(string, ...any), res *message.Result) {
	c := &r.config
	if rate := res.Rate; rate != nil {
		bytes := float64(c.Size) / (1 << 20)
		printf(" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n")
		printf(" %-7d    %-10d       %-7.2f            %-7.2f\t\t   %-7.6f\n", c.Size,
			c.Iters*c.Peers, rate.Peak*bytes, rate.Average*bytes, rate.Average/1e6)
	}
	if l := res.Latency; l != nil {
		printf(" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    " +
			"t_avg[usec]    t_stdev[usec]   99%% percentile[usec]   99.9%% percentile[usec] \n")
		printf(" %-7d %d          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f"+
			"\t\t%-7.2f \t\t%-7.2f\n", c.Size, c.Iters*c.Peers, l.Min, l.Max, l.Typical, l.Average,
			l.Stdev, l.P99, l.P999)
	}
	printf("%s", msgRuler)
	for _, w := range res.Ways {
		printf(" %s by %s: %s\n", counted(w.Messages, "message"), w.Protocol, w.Why)
	}
	if len(res.Rails) < 2 {
		return
	}
	for i, rail := range res.Rails {
		up, u := "up", rail.Usage
		if !rail.Up {
			up = "down"
		}
		printf(" Rail %s, %s: %d bytes in slots, %d read, %d written\n", r.devices[i].Name(), up,
			u.FrameBytes, u.Read, u.Written)
	}
}

// names are those of the devices, with commas.
func (r *msgReport) names() string {
	var list []string
	for _, dev := range r.devices {
		list = append(list, dev.Name())
	}
	return strings.Join(list, ",")
}

// A msgDocument is what a test of messages prints with --json.
type msgDocument struct {
	Tool       string          `json:"tool"`
	Test       message.Test    `json:"test"`
	Role       string          `json:"role"` // server or client
	Device     string          `json:"device"`
	Backend    string          `json:"backend"`
	Peer       string          `json:"peer"`
	Size       int             `json:"size"`
	Reply      int             `json:"reply"`
	Iterations int             `json:"iterations"` // over each connection
	Peers      int             `json:"peers"`
	Depth      int             `json:"depth"`
	Level      string          `json:"level"`
	Verified   bool            `json:"verified"`
	Protocol   string          `json:"protocol"` // that was asked for
	Policy     string          `json:"policy"`
	EagerLimit int             `json:"eager_limit"`
	Slots      int             `json:"slots"`
	Ways       []msgWayJSON    `json:"ways"`
	Rails      []msgRailJSON   `json:"rails"`
	Latency    *msgLatencyJSON `json:"latency_usec,omitempty"`
	Rate       *msgRateJSON    `json:"rate,omitempty"`
	// Counters of this end, over all connections, by their names.
	Counters map[string]uint64 `json:"counters"`
}

// A msgWayJSON is how messages of this end travelled.
type msgWayJSON struct {
	Protocol string `json:"protocol"`
	Why      string `json:"why"`
	Messages int    `json:"messages"`
}

// A msgRailJSON is a rail of this end, over all connections, and what this end has sent by it, or
// read. One of which nothing went by may be one that the peer has not.
type msgRailJSON struct {
	Device     string `json:"device"`
	Up         bool   `json:"up"` // at the end of the test, in all connections
	Frames     uint64 `json:"frames"`
	FrameBytes uint64 `json:"frame_bytes"`
	Control    uint64 `json:"control_messages"`
	Read       uint64 `json:"read_bytes"`
	Written    uint64 `json:"written_bytes"`
}

// A msgLatencyJSON has the names of perftest.
type msgLatencyJSON struct {
	Min     float64 `json:"t_min"`
	Max     float64 `json:"t_max"`
	Typical float64 `json:"t_typical"`
	Average float64 `json:"t_avg"`
	Stdev   float64 `json:"t_stdev"`
	P99     float64 `json:"t_99_percentile"`
	P999    float64 `json:"t_99_9_percentile"`
}

// A msgRateJSON is in messages and in bytes a second.
type msgRateJSON struct {
	Peak            float64 `json:"messages_peak"`
	Average         float64 `json:"messages_average"`
	BytesPerSecPeak float64 `json:"bytes_peak"`
	BytesPerSec     float64 `json:"bytes_average"`
}

// document is all of it for programs.
func (r *msgReport) document(res *message.Result, count rmsg.CounterSet) msgDocument {
	c, m := &r.config, &r.machine
	d := msgDocument{
		Tool: "msg", Test: c.Test, Role: role(c.Server), Device: r.names(),
		Backend: r.devices[0].Link().Backend, Peer: r.peer, Size: c.Size, Reply: c.Reply,
		Iterations: c.Iters, Peers: c.Peers, Depth: c.Depth, Level: msgLevels[c.Level],
		Verified: !c.Unverified, Protocol: m.Protocol.String(), Policy: msgPolicies[m.Policy],
		EagerLimit: m.EagerLimit, Slots: m.Slots, Ways: []msgWayJSON{},
		Counters: map[string]uint64{},
	}
	for id, n := range count {
		d.Counters[rmsg.CounterID(id).String()] = n
	}
	for _, w := range res.Ways {
		d.Ways = append(d.Ways, msgWayJSON{w.Protocol.String(), w.Why.String(), w.Messages})
	}
	for i, rail := range res.Rails {
		u := rail.Usage
		d.Rails = append(d.Rails, msgRailJSON{
			r.devices[i].Name(), rail.Up, u.Frames, u.FrameBytes, u.Control, u.Read, u.Written,
		})
	}
	if l := res.Latency; l != nil {
		d.Latency = &msgLatencyJSON{l.Min, l.Max, l.Typical, l.Average, l.Stdev, l.P99, l.P999}
	}
	if rate := res.Rate; rate != nil {
		bytes := float64(c.Size)
		d.Rate = &msgRateJSON{rate.Peak, rate.Average, rate.Peak * bytes, rate.Average * bytes}
	}
	return d
}
