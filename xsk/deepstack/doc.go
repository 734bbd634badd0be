// Package deepstack makes room on the stack of a goroutine before it calls a library that hands
// addresses of its own variables to the kernel as numbers. A stack that has to grow moves, and such
// numbers do not move with it: the kernel then reads, and writes, where the variables were. That of
// ethtool (github.com/safchain/ethtool) does it: in one of 25 goroutines that ask for the features
// of an interface they came back as none.
package deepstack
