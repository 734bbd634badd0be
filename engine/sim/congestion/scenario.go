package congestion

import (
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/cc"
)

// The network of every scenario: that of the paper on DCQCN, with its marks.
const (
	lineRate  = 40_000_000_000 // bits per second, of every link
	linkDelay = roce.Microsecond
	queueSize = 2_000_000 // bytes
	kmin      = 5_000
	kmax      = 200_000
	pmax      = 0.01
)

// What it takes to meet all bars with DCQCN: switches that mark twenty times as many, and a
// target that rises twice as fast.
const (
	tunedPMax = 0.2
	tunedAI   = 80_000
)

// settling is how long flows have to share the link after one joins or leaves.
const settling = 10 * roce.Millisecond

// A Flow is one sender.
type Flow struct {
	// From and To are when it sends; To 0 is to the end.
	From, To roce.Time
}

// A Scenario is who sends to one receiver, and how.
type Scenario struct {
	Name, About string
	Config      cc.Config // LineRate is that of the links
	PMax        float64   // of the marks
	Extensions  roce.Extensions
	Flows       []Flow
	End         roce.Time
	// Spray is over how many paths data goes, of which the longest takes SprayBy longer; see
	// sim.Faults. ReorderWindow is what the receiver tolerates of that; see roce.QPConfig.
	Spray         int
	SprayBy       roce.Time
	ReorderWindow uint8
	// Misses are the bars that some phase is known to miss, by the names of Measures.Missed.
	Misses []string
}

// link is the one from the switch to a port.
func (s *Scenario) link() sim.Link {
	return sim.Link{
		Rate: lineRate, Delay: linkDelay, Queue: queueSize, KMin: kmin, KMax: kmax, PMax: s.PMax,
	}
}

// together are flows that send all the time.
func together(n int) []Flow { return make([]Flow, n) }

// joining are flows that come one after the other, and leave in the same order.
func joining(n int, every roce.Time) []Flow {
	flows := make([]Flow, n)
	for i := range flows {
		flows[i].From = roce.Time(i) * every
		if i > 0 {
			flows[i-1].To = roce.Time(n+i-1) * every
		}
	}
	return flows
}

// A method is how flows are controlled, and what is known to be missed with it.
type method struct {
	suffix, about string
	algorithm     cc.Algorithm
	extensions    roce.Extensions
	tuned         bool
	misses        map[string][]string
}

// dcqcnMisses are the bars that DCQCN misses with the published parameters.
var dcqcnMisses = map[string][]string{
	"incast-8": {BarNameQueue}, "incast-32": {BarNameQueue},
	"join-leave": {BarNameUse, BarNameGoodput, BarNameJain},
}

var methods = []method{
	{"dcqcn", "DCQCN, go-back-N", cc.AlgorithmDCQCN, 0, false, dcqcnMisses},
	{
		"dcqcn-sr", "DCQCN, selective repeat", cc.AlgorithmDCQCN, roce.ExtSelectiveRepeat, false,
		dcqcnMisses,
	},
	{"dcqcn-tuned", "DCQCN with other parameters, go-back-N", cc.AlgorithmDCQCN, 0, true, nil},
	{
		"dcqcn-tuned-sr", "DCQCN with other parameters, selective repeat", cc.AlgorithmDCQCN,
		roce.ExtSelectiveRepeat, true, nil,
	},
	{"swift", "Swift, go-back-N", cc.AlgorithmSwift, 0, false, nil},
	{
		"swift-sr", "Swift, selective repeat", cc.AlgorithmSwift, roce.ExtSelectiveRepeat, false,
		nil,
	},
	{"none", "no congestion control, go-back-N", cc.None, 0, false, map[string][]string{
		"incast-8":   {BarNameGoodput, BarNameJain, BarNameQueue, BarNameLost},
		"incast-32":  {BarNameGoodput, BarNameJain, BarNameQueue, BarNameLost, BarNameFailed},
		"join-leave": {BarNameQueue},
	}},
}

// scenario is one of flows with a method.
func (m *method) scenario(name, about string, flows []Flow, end roce.Time) Scenario {
	s := Scenario{
		Name: name + "-" + m.suffix, About: about + "; " + m.about,
		Config: cc.Config{Algorithm: m.algorithm, LineRate: lineRate / 1000}, PMax: pmax,
		Extensions: m.extensions, Flows: flows, End: end, Misses: m.misses[name],
	}
	if m.tuned {
		s.PMax, s.Config.DCQCN.AI = tunedPMax, tunedAI
	}
	return s
}

// Scenarios returns all scenarios, in the order in which they are told.
func Scenarios() []Scenario {
	const ms = roce.Millisecond
	var list []Scenario
	for _, of := range []struct {
		name, about string
		flows       []Flow
		end         roce.Time
	}{
		{"incast-8", "8 senders at once", together(8), 30 * ms},
		{"incast-32", "32 senders at once", together(32), 30 * ms},
		{
			"join-leave", "4 senders come and leave, 20 ms apart",
			joining(4, 20*ms), 140 * ms,
		},
	} {
		for i := range methods {
			list = append(list, methods[i].scenario(of.name, of.about, of.flows, of.end))
		}
	}
	return append(list, sprayed()...)
}

// sprayed are those of one sender whose packets take several paths, which differ by some ten
// frames, to a receiver that tolerates it or not. There are no extensions: so do foreign peers.
func sprayed() (list []Scenario) {
	for _, window := range []uint8{0, 64} {
		m := method{about: "nothing tolerated", misses: map[string][]string{
			"spray-4": {BarNameGoodput},
		}}
		m.suffix = "strict"
		if window != 0 {
			m = method{suffix: "window", about: "64 packets may overtake"}
		}
		s := m.scenario("spray-4", "1 sender over 4 paths", together(1), 20*roce.Millisecond)
		s.Spray, s.SprayBy, s.ReorderWindow = 4, 2*roce.Microsecond, window
		list = append(list, s)
	}
	return list
}

// Find returns the scenario with a name.
func Find(name string) (Scenario, bool) {
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}
