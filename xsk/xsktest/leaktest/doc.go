// Package leaktest finds goroutines that tests leave behind.
//
// It asks goleak, which gives what is about to end less than half a second. On a machine that is
// busy a goroutine may be off for longer than that between its last word and its end, so it is
// asked again, for some seconds: what was left for good is still there then.
package leaktest
