// Package crowd says who gives way where places are few and anybody may come: a stranger who
// wants many drives out his own.
//
// What places are for is the caller's, and so is to make those leave who are to give way. It reads
// no clock and starts no goroutine.
package crowd
