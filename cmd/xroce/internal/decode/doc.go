// Package decode prints the packets of a capture for xroce decode: a line each, with every field of
// every header, or as JSON. What strangers wrote into a packet or a file cannot command a terminal.
//
// A Printer belongs to one caller at a time.
package decode
