// Package heap measures in tests what is held in memory.
package heap
