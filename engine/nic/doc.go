// Package nic asks a network card which of its queues packets come in on, and what it
// does to them before that: channels, receive-side scaling, flow rules, offloads,
// interrupts. Read gathers it in a Card, which is plain data.
//
// Most of it comes by the ioctl of ethtool (include/uapi/linux/ethtool.h): by
// safchain/ethtool where that has it, else by the one call of sys_linux.go. What a driver
// does not tell is zero or nil, and Card says which.
//
// Functions run in the network namespace of the calling thread and change nothing.
package nic
