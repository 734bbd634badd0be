// Package lab is what the cases are run in: the VM with Soft-RoCE, a network namespace
// for xroce, the cable between them, and the programs at either end while they run.
//
//	process.go  a program on this machine
//	end.go      one of the two programs of a case, here or in a VM
//	mtu.go      the MTU of a VM's interface
//	program.go  builds xroce
//	capture.go  the packets that are kept, which tshark reads in the end
//	lab.go      all of it
//	pair.go     two VMs on a cable, for what Soft-RoCE says to itself
//	prepare.go  installs what this machine lacks
//
// A Lab needs root, makes a tap device and a namespace, and removes them with Close. It
// belongs to one goroutine; processes and ends may be waited for by several.
package lab
