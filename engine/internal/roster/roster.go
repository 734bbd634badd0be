package roster

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"xroce/engine"
)

// A Device is a device with the name that it is shown by.
type Device struct {
	*engine.Device
	name string
}

// Name is that of the interface or, where another device has that name, one with a number: eth0#2.
// It is UTF-8, which JSON and Prometheus ask for, and Linux of the name of an interface does not.
func (d Device) Name() string { return d.name }

// A Roster is the devices that are open, of those that were added. The zero value has none. It is
// safe for concurrent use.
type Roster struct {
	mu      sync.Mutex
	devices []Device
}

// Add takes in a device until it fails or is closed, and so long it keeps its name. The number in
// that is the lowest that is free, from 2 on.
func (r *Roster) Add(d *engine.Device) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget()
	first := strings.ToValidUTF8(d.Name(), "\ufffd")
	name := first
	for n := 2; r.has(name); n++ {
		name = fmt.Sprintf("%s#%d", first, n)
	}
	r.devices = append(r.devices, Device{d, name})
}

// Open are the devices that are open, in the order in which they were added.
func (r *Roster) Open() []Device {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget()
	return slices.Clone(r.devices)
}

// forget forgets all devices that are not open. The lock is held.
func (r *Roster) forget() { r.devices = slices.DeleteFunc(r.devices, Device.Failed) }

// has reports whether a device has a name. The lock is held.
func (r *Roster) has(name string) bool {
	return slices.ContainsFunc(r.devices, func(d Device) bool { return d.name == name })
}
