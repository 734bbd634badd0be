// Package perfdump is the file that `xroce perf --dump` writes: all registered memory
// of a test, before its first message and after its last one, with what is where. The
// command writes it, and bench/interop reads it to compare the bytes on the wire with
// that memory. It is a package of its own because neither may import the other's inside.
//
// It does no I/O but through the io.Reader and io.Writer that it is handed, and holds
// no state: a Dump belongs to whoever made it and is not for concurrent use.
package perfdump
