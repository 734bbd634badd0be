package mem

import "strings"

// Access is a set of rights, with the values of enum ibv_access_flags.
type Access uint32

// The rights of regions and of queue pairs. Reading locally is always allowed.
const (
	LocalWrite   Access = 1 << 0
	RemoteWrite  Access = 1 << 1
	RemoteRead   Access = 1 << 2
	RemoteAtomic Access = 1 << 3
)

const accessKnown = LocalWrite | RemoteWrite | RemoteRead | RemoteAtomic

var accessNames = [...]string{"LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC"}

// String lists the rights as verbs spells them.
func (a Access) String() string {
	if a == 0 {
		return "LOCAL_READ"
	}
	var names []string
	for i, name := range accessNames {
		if a&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if a&^accessKnown != 0 {
		names = append(names, "UNKNOWN")
	}
	return strings.Join(names, "|")
}
