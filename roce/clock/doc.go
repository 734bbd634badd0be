// Package clock is time as the pure floor knows it: a number that is passed in.
//
// Everything below and above the transport that has a deadline (pacing, loss
// recovery, queue pairs, the connection manager) counts in it, so it lies below
// them all and imports nothing. Nobody here reads a clock: the caller does, and a
// simulator or a replayed capture passes whatever time it likes.
//
// All of it is values and may be used by any goroutine.
package clock
