// Package perf is the eight benchmarks of perftest, ib_send_bw and its family:
// either end may be one of them.
//
// A run has an end (resources: queue pairs, memory, one completion queue), a
// connector (how the ends find and tell each other, package engine/oob/perftest
// over TCP) and a loop (what is measured):
//
//	                client                          server
//	send bandwidth  posts SENDs (stream.go)         receives (stream.go), or both with -b
//	write, read,    posts WRITEs, READs, atomics    answers, without a loop of its own;
//	atomic bw       (stream.go)                     posts, too, with -b
//	send latency    SEND there and back (pingpong.go)
//	write latency   WRITE there and back; each end watches the last byte change
//	read, atomic    one at a time (pingpong.go)     answers
//	latency
//
// The loops poll, allocate nothing for a message and read the clock once for each.
// While an end waits for the other on the connection it still drives its device:
// the peer may need an acknowledgement again.
//
// Nothing waits for ever for the peer (watchdog.go), and work that failed is an error of
// the end where it failed. Two ends of ours compare what both must have been told alike
// before they begin (plan.go). A result is told when the exchange has come to its end.
//
// What is printed, which steps the exchange takes, and how results come from
// samples is that of perftest 4.5 (src/perftest_parameters.c,
// src/perftest_resources.c).
//
// A run drives its device on the goroutine that called it and uses the connections that it
// is handed; another goroutine waits for what the peer says there, or listens. It opens no
// file: a dump is kept in memory for the caller.
package perf
