package engine

import "xroce/roce/wire"

// GIDs lists the GID table that a device on this port has. Index 0 is
// link-local.
func (p Port) GIDs() []wire.GID { return gidTable(p) }
