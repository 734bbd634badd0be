// Command example is a program outside of xroce that uses it as a library: two devices on
// a simulated network, a reliable connection between them, a SEND and a WRITE across.
//
// It is a module of its own, as a user's program is, so that continuous integration finds
// what only works inside of ours. It needs no root and no network interface;
// engine.Open in place of engine.OpenLink gives a device on one.
package main
