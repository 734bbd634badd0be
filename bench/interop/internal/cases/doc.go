// Package cases is what a run against Soft-RoCE consists of: which programs xroce meets,
// in which roles, over which addresses and path MTUs, with which faults; the command
// lines of both ends; and what came of it.
//
//	case.go       a Case and its name
//	outcome.go    what came of one
//	address.go    the addresses and MTUs of the two ends
//	tool.go       a program in the VM with its counterpart of ours
//	rounds.go     how many messages a case has
//	tools.go      all programs
//	lines.go      the command lines of a case
//	scenarios.go  the cases whose packets are compared with those of Soft-RoCE
//	card.go       the cases of xroce on a card, in a VM
//	reset.go      those in which the card is reset
//	plan.go       all cases
//	short.go      the part of them that continuous integration runs
//
// All of it is tables and text: nothing is run here, and nothing changes after start.
package cases
