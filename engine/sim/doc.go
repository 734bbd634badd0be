// Package sim is a network in memory for the production engine: any number of
// ports joined by an Ethernet that loses, duplicates, reorders, corrupts and
// delays frames as its seed decides.
//
// With a VirtualClock a run is deterministic: drive the devices in direct mode,
// one after the other, and when none has anything to do advance the clock to
// the earliest of Network.NextArrival and the devices' deadlines. With the
// machine's clock the same network carries a live demonstration.
package sim
