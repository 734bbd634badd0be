//go:build !linux

package engine

// pinThread does nothing: other systems have no call for it, or none that binds.
func pinThread(int) {}
