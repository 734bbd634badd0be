//go:build !linux

package affinity

// Pin does nothing: other systems have no call for it, or none that binds.
func Pin(int) {}
