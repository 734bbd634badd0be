package engine

import "xroce/engine/host"

// ReadPort describes an interface of the thread's network namespace, with its VLANs,
// as Open would. It needs no privilege.
func ReadPort(index int) (Port, error) { return host.ReadPort(index) }
