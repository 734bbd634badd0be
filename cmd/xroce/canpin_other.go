//go:build !linux

package main

// canPin returns false: other systems cannot keep a thread on a CPU.
func canPin(int) bool { return false }
