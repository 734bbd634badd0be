// Package progress is the line that tells people how something long goes. It writes to
// whom it is told and reads the clock that it is given; nothing in it is for concurrent
// use.
package progress
