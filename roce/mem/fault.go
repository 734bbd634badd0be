package mem

// A Fault is the reason why an access was refused, OK when it was not.
type Fault uint8

// The faults, in the order in which they are checked.
const (
	OK              Fault = iota
	FaultNoKey            // no region has this key
	FaultDomain           // the region belongs to another protection domain
	FaultInvalid          // the region was invalidated
	FaultRights           // the region does not grant the access
	FaultOutOfRange       // the bytes are not all inside the region
	FaultMisaligned       // an atomic access that is not on 8 bytes
	FaultSync             // the memory could not be made persistent
)

var faultNames = [...]string{
	"ok", "no such key", "other protection domain", "region is invalid",
	"access not granted", "out of range", "not aligned to 8 bytes", "not persistent",
}

// String returns the fault in words.
func (f Fault) String() string {
	if int(f) >= len(faultNames) {
		return "unknown fault"
	}
	return faultNames[f]
}
