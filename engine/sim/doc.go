// Package sim is a network in memory for the production engine: any number of
// ports joined by an Ethernet that does to frames what its Faults and Rules
// say, in each direction on its own, as its seed decides.
//
// With a VirtualClock a run is deterministic: drive the devices in direct mode,
// one after the other, and when none has anything to do advance the clock to
// the earliest of Network.NextArrival and the devices' deadlines. With the
// machine's clock the same network carries a live demonstration.
//
// Every frame is accounted for: see Counts. An observer sees all that happens
// to each. Package trial runs whole campaigns of seeds on such networks.
//
// A Network, its ports and clocks are safe for concurrent use: a network has one lock,
// under which an observer is called, which must not call back. It owns the frames that are
// on the way. Nothing is read or written outside of the process.
package sim
