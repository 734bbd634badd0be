// Package cc decides how fast a queue pair may send.
//
// There is one rate, in kbit/s of frames, and one place that holds requests to it:
// the Pacer. Whoever limits a queue pair (today the RATE_LIMIT attribute) does so by
// that rate, so two limits cannot work against each other with timers of their own.
//
// The package knows frames by their length and time by what is passed in; it does
// not know packets, PSNs or queue pairs, and imports clock alone. A Pacer belongs to
// the progress lock of its queue pair.
package cc
