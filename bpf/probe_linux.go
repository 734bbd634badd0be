package bpf

import "errors"

// Probe reports whether this thread can load the program on this kernel, by
// loading it and throwing it away. It touches no interface. The error is one
// of the probe itself, not the answer no.
func Probe() (Support, error) {
	missing, err := missingCaps()
	if err != nil {
		return Support{}, err
	}
	var objs xdpObjects
	if err := load(&objs, 1); err != nil {
		return Support{Cause: err, Missing: missing}, nil
	}
	err = errors.Join(objs.xdpPrograms.Close(), objs.xdpMaps.Close())
	return Support{Load: true, Missing: missing}, err
}
