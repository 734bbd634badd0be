// Package dump is what xroce tcpdump does: packets from a Source to lines or to files.
//
// A Source is a device of another process, or an interface of the kernel (Wire). Run takes
// packets from one until it ends, until enough are there, or until it is told to stop. It
// belongs to one goroutine, and so do sinks; only Stop of a source may be called meanwhile.
package dump
