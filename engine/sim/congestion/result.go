package congestion

import (
	"slices"

	"xroce/roce"
)

// A Sample is the state of the network at a time.
type Sample struct {
	At    roce.Time `json:"ns"`
	Queue int       `json:"queue_bytes"`  // that wait for the link of the receiver
	Rates []float64 `json:"rates_gbits"`  // of each flow at the receiver since the last sample
	Limit []float64 `json:"limits_gbits"` // that congestion control sets, 0 for none
	Lost  uint64    `json:"frames_lost"`  // since the beginning
}

// A Phase is the time from one change of who sends to the next.
type Phase struct {
	From   roce.Time `json:"from_ns"`
	To     roce.Time `json:"to_ns"`
	Flows  int       `json:"flows"`
	Steady Measures  `json:"steady"` // from 10 ms after its beginning on
}

// Measures are what congestion control is judged by, over some time.
type Measures struct {
	Use      float64 `json:"use"`       // share of the bottleneck that was used
	Goodput  float64 `json:"goodput"`   // share of it that completed requests had, with headers
	Jain     float64 `json:"jain"`      // index of fairness of what flows completed, 0 to 1
	QueueMax int     `json:"queue_max"` // bytes
	Queue    float64 `json:"queue_mean"`
	Lost     uint64  `json:"frames_lost"`
}

// The bars that every phase has to meet.
const (
	BarUse   = 0.90 // of the bottleneck, at least, by frames and by what was completed
	BarJain  = 0.95 // at least
	BarQueue = kmax // bytes, not reached
	BarLost  = 0    // frames, once the flows have settled
)

// The names of the bars, and of a run in which a sender failed.
const (
	BarNameUse     = "use"
	BarNameGoodput = "goodput"
	BarNameJain    = "jain"
	BarNameQueue   = "queue"
	BarNameLost    = "lost"
	BarNameFailed  = "failed"
)

// Missed returns the names of the bars that are not met.
func (m *Measures) Missed() (names []string) {
	for _, bar := range []struct {
		name string
		met  bool
	}{
		{BarNameUse, m.Use >= BarUse},
		{BarNameGoodput, m.Goodput >= BarUse},
		{BarNameJain, m.Jain >= BarJain},
		{BarNameQueue, m.QueueMax < BarQueue},
		{BarNameLost, m.Lost <= BarLost},
	} {
		if !bar.met {
			names = append(names, bar.name)
		}
	}
	return names
}

// A Result is what came of a run.
type Result struct {
	Name     string            `json:"scenario"`
	About    string            `json:"about"`
	Seed     uint64            `json:"seed"`
	Phases   []Phase           `json:"phases"`
	Counters map[string]uint64 `json:"counters"` // of all hosts together, those that are not 0
	Frames   uint64            `json:"frames"`
	Marked   uint64            `json:"frames_marked"`
	Lost     uint64            `json:"frames_lost"`
	Ended    []string          `json:"ended"` // senders whose queue pair failed, and why
	Samples  []Sample          `json:"samples"`
}

// Missed returns the names of the bars that some phase does not meet.
func (r *Result) Missed() (names []string) {
	for i := range r.Phases {
		names = append(names, r.Phases[i].Steady.Missed()...)
	}
	if len(r.Ended) > 0 {
		names = append(names, BarNameFailed)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Unknown returns those of them that the scenario is not known to miss.
func (r *Result) Unknown(s *Scenario) (names []string) {
	for _, name := range r.Missed() {
		if !slices.Contains(s.Misses, name) {
			names = append(names, name)
		}
	}
	return names
}

// jain is the index of fairness (Jain, Chiu and Hawe, 1984): 1 when all have the same.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}
