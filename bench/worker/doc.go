// Package worker is what the harness and the measured processes say to each
// other.
//
// Each thing measured is a process of its own: a library that leaks, panics or
// keeps a queue busy so harms one number and not the next. A worker takes its
// Options as flags, opens its sockets, prints "ready", waits for a line on
// standard input, works for the warm-up and the window, and prints one Report as
// a line of JSON. The C peers under bench/cpeer speak the same protocol with the
// same flags.
package worker
