package tunnel

import (
	"fmt"
	"net/netip"

	"xroce/encap/inner"
	"xroce/roce"
)

// A Mark is what networks go by when they have too much to carry. The zero Mark leaves the DSCP of
// each datagram, over UD, and 0 over RC and UC, whose connections have one for all of them.
type Mark struct {
	// DSCP is that of all packets, 0 to 63, when Fixed is set (RFC 2983, pipe model). What is in
	// the datagrams stays there.
	DSCP  uint8
	Fixed bool
	// Priority is that of the VLAN tags (PCP), 0 to 7: peers must be at the other end of a VLAN.
	Priority uint8
}

// Bounds of a Mark.
const (
	maxDSCP     = 63
	maxPriority = 7
)

// check says what is wrong with a mark.
func (m Mark) check(over Over) error {
	switch {
	case m.DSCP > maxDSCP:
		return fmt.Errorf("tunnel: a DSCP of %d is not in 0..%d", m.DSCP, maxDSCP)
	case m.Priority > maxPriority:
		return fmt.Errorf("tunnel: a priority of %d is not in 0..%d", m.Priority, maxPriority)
	case m.Fixed && over == OverNative:
		return fmt.Errorf("tunnel: native packets have no DSCP: ud, rc and uc have")
	}
	return nil
}

// of is the traffic class of packets around a datagram of a class. The ECN field is that of the
// datagram, which the other end takes what became of it from (RFC 6040).
func (m Mark) of(class uint8) uint8 {
	if !m.Fixed {
		return class
	}
	return m.DSCP<<2 | class&inner.CE
}

// checkTag is an error when there is a priority, and no VLAN tag to have it on the way to a peer.
func (t *Tunnel) checkTag(to netip.Addr) error {
	if t.config.Mark.Priority == 0 {
		return nil
	}
	index, err := t.dev.SourceGID(to)
	if err != nil {
		return err
	}
	from, err := t.dev.QueryGID(index)
	if err == nil && from.VLAN == 0 {
		err = fmt.Errorf("tunnel: %s is in no VLAN from here, and the priority is of VLAN tags",
			to)
	}
	return err
}

// marked is an address handle with the priority.
func (t *Tunnel) marked(ah *roce.AH) (*roce.AH, error) {
	if t.config.Mark.Priority == 0 {
		return ah, nil
	}
	path := ah.Path()
	path.Tags = path.Tags.WithPriority(t.config.Mark.Priority)
	return t.pd.NewAH(path)
}
