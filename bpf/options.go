package bpf

import "fmt"

// A Mode is where in the kernel the program runs.
type Mode uint8

// The modes.
const (
	Auto    Mode = iota // Native, and Generic when the driver refuses
	Native              // in the driver, before the kernel makes an skb
	Generic             // in the stack, on any device, after the copy into an skb
)

// String returns "auto", "native" or "generic".
func (m Mode) String() string {
	switch m {
	case Auto:
		return "auto"
	case Native:
		return "native"
	case Generic:
		return "generic"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Options say how to attach. The zero value is right for most.
type Options struct {
	// Mode is where the program shall run.
	Mode Mode

	// Queues is the number of receive queues that sockets can be registered
	// for; 0 means as many as the device can ever have.
	Queues int
}

// Support says what this thread may do with the program on this kernel.
type Support struct {
	// Load reports whether the program was loaded and its maps were made. Probe
	// throws both away again.
	Load bool

	// Cause is why Load is false, with the kernel's errno in it.
	Cause error

	// Missing lists the capabilities needed and not held: CAP_BPF, CAP_NET_ADMIN.
	Missing []string
}
