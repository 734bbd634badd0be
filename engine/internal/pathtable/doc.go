// Package pathtable knows which users go to which destination, so that a change on
// the way costs as much as there are destinations, whatever the number of users, and
// one that changes no path does not stop any user. The engine's users are its connected
// queue pairs.
//
// A Table has a lock of its own, which is the last to be taken: no method calls
// a function of the caller. It resolves nothing and has no goroutine.
package pathtable
