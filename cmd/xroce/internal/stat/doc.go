// Package stat reads counters twice and says what happened between: rates of devices and of
// their queue pairs, drops by reason.
//
// A Sample is what processes said when they were asked; Since makes a Change of two. All of it is
// plain data, of its caller.
package stat
