package peer

import (
	"fmt"
	"net"
	"net/netip"

	"xroce/roce"
	"xroce/roce/wire"
)

// AutoGID lets ChooseGID look for a GID.
const AutoGID = -1

// ChooseGID decides under which address this end is reached. An index takes
// that entry of the device's table. AutoGID takes the GID of the local address
// of the TCP connection when the device has it, else the first routable one.
// When the other end's GID is already known, the choice is among those that
// can reach it: IPv4 from IPv4, IPv6 from IPv6.
func (e *End) ChooseGID(index int, conn net.Conn, remote *wire.GID) error {
	if index == AutoGID {
		var err error
		if index, err = chooseGID(e.Dev.GIDs(), localAddr(conn), remote); err != nil {
			return fmt.Errorf("%s: %w", e.Dev.Name(), err)
		}
	}
	local, err := e.Dev.Endpoint(e.QP, index)
	if err != nil {
		return err
	}
	e.Local, e.SGIDIndex = local, index
	return nil
}

func chooseGID(table []wire.GID, local netip.Addr, remote *wire.GID) (int, error) {
	fits := func(g wire.GID) bool { return remote == nil || g.IsIPv4() == remote.IsIPv4() }
	best := -1
	for i, g := range table {
		if g.IsZero() || !fits(g) { // zero: an address that was removed
			continue
		}
		if local.IsValid() && g == wire.GIDFromAddr(local) {
			return i, nil
		}
		if best < 0 || table[best].IsLinkLocal() && !g.IsLinkLocal() {
			best = i
		}
	}
	if best < 0 {
		return 0, fmt.Errorf("%w: no GID reaches %s: give the interface an address of that "+
			"family (ip address add), or choose with --gid-index", roce.ErrInvalid, remote)
	}
	return best, nil
}

// localAddr is the local address of a TCP connection, zero for any other.
func localAddr(conn net.Conn) netip.Addr {
	if conn == nil {
		return netip.Addr{}
	}
	tcp, ok := conn.LocalAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap()
}
