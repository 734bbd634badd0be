// Package demo shows the stack at work on one machine: two hosts, every
// operation at several sizes with every byte compared, a file copied, the
// packets captured and read back, and what it is worth in
// messages and bits a second.
//
// With root and AF_XDP the two hosts are network namespaces joined by a virtual
// cable; without, they are joined by the simulated network. Everything that the
// demonstration makes is gone when Run returns, however it returns.
//
// It makes namespaces, devices and temporary files, all its own; what it found
// is a Report. Each host has a goroutine of its own where both work at once.
package demo
