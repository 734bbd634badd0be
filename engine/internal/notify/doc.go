// Package notify tells those who wait that events are there to be taken: a goroutine
// through a channel, a thread in poll(2) through an eventfd, which Linux alone has.
//
// A Signal only counts. Whoever owns it keeps the events, holds a lock of its own
// when it calls the signal, and closes it. The package starts no goroutine and never
// blocks.
package notify
