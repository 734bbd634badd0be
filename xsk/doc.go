// Package xsk moves Ethernet frames between a queue of a network device and user
// space through an AF_XDP socket.
package xsk
