// Package sched says which of many objects is served next: by deficit round robin
// (DRR) among those that have something to send, and by a hierarchical timer wheel
// (Wheel) among those that wait for a time.
//
// What is scheduled embeds an Entity, a TimerNode, or both: the lists are linked
// through them. So nothing is ever full, nothing is allocated, and each operation
// costs the same however many objects there are. The package knows nothing of what
// it schedules, does no I/O and reads no clock.
//
// Nothing here is safe for concurrent use: the owner of a DRR or of a Wheel, which is
// a queue of the engine, calls it under its own lock. That lock guards the entities
// and nodes as well.
package sched
