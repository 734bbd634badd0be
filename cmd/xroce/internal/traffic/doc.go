// Package traffic sends the frames of package gen over a link, and counts those that come from
// one: what xroce pktgen and xroce sink do.
//
// A Sender sends by a schedule, in batches. A Sink counts what comes; Collect runs it over a
// link until all flows have said that they are over. Both allocate nothing a packet.
//
// Reading the clocks of the machine is behind Clock, so that tests bring their own time.
package traffic
