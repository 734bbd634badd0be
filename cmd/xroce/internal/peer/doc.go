// Package peer makes one end of a reliable connection as the commands need it:
// a QP with its protection domain and completion queue, the choice of a GID
// that fits the other end, and the move to RTS.
package peer
