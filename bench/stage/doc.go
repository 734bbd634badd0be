// Package stage builds the place where workers are measured: two network
// namespaces joined by a veth pair, each with its processor.
//
// What copy mode needs to lose nothing is set here, the same for everyone who
// comes on the stage: a pfifo queueing discipline on both ends, which makes a
// full veth ring hold the sender back instead of dropping, and for throughput
// threaded NAPI at end B, on the processor of its reader. Latency is measured
// without threads, because the thread would have to push a spinning reader aside.
//
// Everything has names of its own and is removed by Close.
package stage
