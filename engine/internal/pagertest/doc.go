// Package pagertest gives tests memory that they may unmap, move and map again.
//
// The kernel gives an address that a test unmapped to whoever maps memory next: the Go
// runtime, the C library, the race detector. A test that expects nothing there, writes
// there or unmaps it once more then does so to memory of theirs. So memory of this
// package is far from where the kernel puts what asks for no address, and never comes
// back: an address is used by one test alone, whatever becomes of it.
//
// It maps memory and does no other I/O. All functions are safe for concurrent use.
package pagertest
