// Package congestion puts congestion control on trial: production devices on a simulated
// network whose bottleneck is the link of one receiver, under virtual time.
//
// A Scenario says who sends when, and with what. Run runs it from a seed and returns what
// happened: the rate of each flow and the queue of the switch over time, and for each phase,
// the time between two changes of who sends, the measures that congestion control is judged
// by. The same seed gives the same Result.
//
//	sender 1 ──40 Gb/s──┐
//	sender 2 ──40 Gb/s──┤ switch ──40 Gb/s── receiver
//	   ...              │    └ queue: lost when full, marked from KMin on
//	sender n ──40 Gb/s──┘
//
// The senders WRITE as much as they can. xroce sim --congestion is the way in, and
// docs/congestion.md has what came of it. A run belongs to one goroutine, keeps nothing when it is
// over, and reads and writes nothing outside of the process.
package congestion
