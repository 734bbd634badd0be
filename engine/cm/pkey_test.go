package cm_test

import (
	"errors"
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
	rcm "xroce/roce/cm"
)

// partitioned makes two hosts that share some partitions, in tables of another order: the
// second and the third of the first host are the third and the first of the other.
func partitioned(t *testing.T, o cm.Options) [2]*host {
	t.Helper()
	_, hosts := newWorldOf(t, o, [2]engine.Options{
		{PKeys: roce.PKeyTable{0x8001, 0x8005, 0x0006, 0x0007}},
		{PKeys: roce.PKeyTable{0x8006, 0x0007, 0x8005, 0x8009}},
	}, func(s *surroundings) engine.Host { return s })
	return hosts
}

// TestConnectInAPartition connects in each partition that is shared, by its index here: the
// other end finds the index in its own table. Messages of the manager are in the partition, too,
// so no other has to be common.
func TestConnectInAPartition(t *testing.T) {
	hosts := partitioned(t, quick)
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 4791)
	s := b.serve(t, to)
	for _, c := range []struct{ dial, answer uint16 }{{1, 2}, {2, 0}} {
		setup := a.setup()
		setup.PKeyIndex, setup.AckTimeout = c.dial, easyTimeout
		conn, err := a.manager.Dial(within(t, testTimeout), to, setup)
		must(t, err)
		peer := s.conn(t)
		if i, j := conn.QP().Query().PKeyIndex, peer.QP().Query().PKeyIndex; i != c.dial ||
			j != c.answer {
			t.Errorf("at %d and %d, want %d and %d", i, j, c.dial, c.answer)
		}
		say(t, a, b, conn, "in a partition")
		say(t, b, a, peer, "and back")
		must(t, conn.Close())
		must(t, peer.Close())
	}
}

// TestNoCommonPartition: nobody hears a port that is not in the partition, or a limited member
// as the other is.
func TestNoCommonPartition(t *testing.T) {
	once := quick
	once.Machine.MaxRetries = 1
	hosts := partitioned(t, once)
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 4791)
	b.serve(t, to)
	setup := a.setup()
	for _, index := range []uint16{0, 3} {
		setup.PKeyIndex = index
		_, err := a.manager.Dial(within(t, testTimeout), to, setup)
		if !errors.Is(err, cm.ErrTimeout) {
			t.Errorf("at %d: %v", index, err)
		}
	}
	setup.PKeyIndex = 4
	_, err := a.manager.Dial(within(t, testTimeout), to, setup)
	if !errors.Is(err, rcm.ErrInvalid) {
		t.Errorf("beyond the table: %v", err)
	}
}
