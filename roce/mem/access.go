package mem

import "strings"

// Access is a set of rights and properties of a region, with the values of enum
// ibv_access_flags. The REMOTE_* and FLUSH_* ones are also those of queue pairs.
type Access uint32

// The access flags. Reading locally is always allowed.
const (
	LocalWrite   Access = 1 << 0
	RemoteWrite  Access = 1 << 1
	RemoteRead   Access = 1 << 2
	RemoteAtomic Access = 1 << 3
	// MWBind lets memory windows be bound to the region.
	MWBind Access = 1 << 4
	// ZeroBased makes addresses offsets from the first byte.
	ZeroBased Access = 1 << 5
	// OnDemand leaves pages to be brought in when they are accessed. Only memory
	// with a Pager may have it, and must.
	OnDemand Access = 1 << 6
	// HugeTLB says that all pages of an OnDemand region are huge.
	HugeTLB Access = 1 << 7
	// FlushGlobal lets the peer wait until what it wrote is globally visible.
	FlushGlobal Access = 1 << 8
	// FlushPersistent lets the peer wait until what it wrote is persistent. Only
	// a region of RegisterPersistent may have it.
	FlushPersistent Access = 1 << 9
	// RelaxedOrdering allows data to be placed in any order. Accepted, but data
	// is placed in order all the same.
	RelaxedOrdering Access = 1 << 20
	// Invalidatable lets LOCAL_INV and a peer's SEND with invalidate take the key
	// out of use. It is a flag of this stack, in a bit that verbs leaves alone:
	// verbs says it by how the region was made.
	Invalidatable Access = 1 << 31
)

const (
	accessKnown = LocalWrite | RemoteWrite | RemoteRead | RemoteAtomic | MWBind | ZeroBased |
		OnDemand | HugeTLB | FlushGlobal | FlushPersistent | RelaxedOrdering | Invalidatable
	// localRead is what every region grants and no window does. No flag asks for
	// it: an access that asks for nothing else does.
	localRead Access = 1 << 30
	// remote are the rights of peers, and writes what changes memory.
	remote = RemoteWrite | RemoteRead | RemoteAtomic | FlushGlobal | FlushPersistent
	writes = LocalWrite | RemoteWrite | RemoteAtomic
	// accessOptional is the range of flags that are dropped in silence when not
	// supported (IBV_ACCESS_OPTIONAL_RANGE).
	accessOptional Access = (1<<10 - 1) << 20
)

var accessNames = [...]struct {
	flag Access
	name string
}{
	{LocalWrite, "LOCAL_WRITE"},
	{RemoteWrite, "REMOTE_WRITE"},
	{RemoteRead, "REMOTE_READ"},
	{RemoteAtomic, "REMOTE_ATOMIC"},
	{MWBind, "MW_BIND"},
	{ZeroBased, "ZERO_BASED"},
	{OnDemand, "ON_DEMAND"},
	{HugeTLB, "HUGETLB"},
	{FlushGlobal, "FLUSH_GLOBAL"},
	{FlushPersistent, "FLUSH_PERSISTENT"},
	{RelaxedOrdering, "RELAXED_ORDERING"},
	{Invalidatable, "INVALIDATABLE"},
}

// needRead is what an access needs beyond the flags it names.
func needRead(need Access) Access {
	if need&remote == 0 {
		return localRead
	}
	return 0
}

// String lists the flags as verbs spells them.
func (a Access) String() string {
	if a == 0 {
		return "LOCAL_READ"
	}
	var names []string
	for _, n := range accessNames {
		if a&n.flag != 0 {
			names = append(names, n.name)
		}
	}
	if a&^accessKnown != 0 {
		names = append(names, "UNKNOWN")
	}
	return strings.Join(names, "|")
}
