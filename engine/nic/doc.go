// Package nic asks a network card which of its queues packets come in on, and what it
// does to them before that: channels, receive-side scaling, flow rules, offloads,
// interrupts. Read gathers it in a Card, which is plain data, and Steer makes flow rules
// that bring RoCE packets to one queue, and removes them.
//
// Most of it comes by the ioctl of ethtool (include/uapi/linux/ethtool.h): by
// safchain/ethtool where that has it, else by the one call of sys_linux.go. What a driver
// does not tell is zero or nil, and Card says which.
//
// Rules of others are never changed. Those of ours are written down in a file before they
// are made, so that the next process on the interface removes them after a crash. Functions
// run in the network namespace of the calling thread; a Steering is for one goroutine at a
// time.
package nic
