package mem

// A Fault is the reason why an access was refused, OK when it was not.
type Fault uint8

// The faults, in the order in which they are checked.
const (
	OK              Fault = iota
	FaultNoKey            // no region has this key
	FaultDomain           // the region belongs to another protection domain
	FaultParty            // the window belongs to another queue pair
	FaultInvalid          // the region was invalidated, the window is not bound
	FaultRights           // the region does not grant the access
	FaultChanged          // the key was changed while the message was under way
	FaultOutOfRange       // the bytes are not all inside the region
	FaultMisaligned       // an atomic access that is not on 8 bytes
	FaultSync             // the memory could not be made persistent
	FaultPage             // pages are absent and have been asked for: try again
	FaultUnmapped         // the process has no such memory, or may not write it
	FaultBusy             // windows are bound to the region, or layouts refer to it
)

var faultNames = [...]string{
	"ok", "no such key", "other protection domain", "other queue pair", "region is invalid",
	"access not granted", "key was changed", "out of range", "not aligned to 8 bytes",
	"not persistent", "page is absent", "memory is not mapped", "region is in use",
}

// String returns the fault in words.
func (f Fault) String() string {
	if int(f) >= len(faultNames) {
		return "unknown fault"
	}
	return faultNames[f]
}
