// Package crowd says who gives way where places are few and anybody may come: a stranger who
// wants many drives out his own.
//
// Those who hold places, what they hold them for and when they are made to leave are the
// caller's. It keeps nothing, reads no clock and starts no goroutine.
package crowd
