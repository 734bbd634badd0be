// Package peer makes one end of a reliable connection as the commands need it:
// a QP with its protection domain and completion queue, the choice of a GID
// that fits the other end, and the move to RTS; and how long one waits for the other.
//
// It uses the device that it is given and makes the objects of an end there, which its
// owner closes. An end is for one goroutine.
package peer
