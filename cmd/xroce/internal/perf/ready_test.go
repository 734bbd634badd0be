package perf

import (
	"errors"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/oob/perftest"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
)

// TestReady: what is wrong at this end alone is found without a peer, and what is right has its
// memory then.
func TestReady(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	must(t, err)
	dev := device(t, network, 1, engine.Options{}) // with an MTU of 4200, its second GID of IPv4
	group := wire.GID{0: 0xff, 1: 0x15, 15: 1}
	for _, tt := range []struct {
		name  string
		typ   roce.QPType
		size  int
		sized bool
		other func(*Config)
		part  int // bytes of the memory for a message, 0 where this end is wrong
	}{
		{"usual", roce.TypeRC, 8192, true, nil, 8192},
		{"datagrams", roce.TypeUD, 65536, false, nil, 4096 + grhLen},
		{"their size", roce.TypeUD, 4097, true, nil, 0},
		{"with -m", roce.TypeUD, 4096, true, func(c *Config) { c.MTU = wire.MTU1024 }, 0},
		{"frames", roce.TypeRawPacket, 65536, false, nil, 4214},
		{"their size", roce.TypeRawPacket, 59, true, nil, 0},
		{"no GID", roce.TypeRC, 1, true, func(c *Config) { c.GIDIndex = 2 }, 0},
		{"group", roce.TypeUD, 1, true, func(c *Config) { c.Group, c.GIDIndex = group, 0 }, 4096},
		{"its IP", roce.TypeUD, 1, true, func(c *Config) { c.Group, c.GIDIndex = group, 1 }, 0},
		{"too much", roce.TypeRC, 4 << 20, true, func(c *Config) { c.QPs = 16384 }, 0},
	} {
		o := Options{Config: brief(Test{Verb: Send}), Sized: tt.sized}
		if o.Type, o.Size = tt.typ, tt.size; tt.other != nil {
			tt.other(&o.Config)
		}
		err := o.Ready(dev)
		want := 2 * layout{line: ownSystem.CacheLine}.aligned(tt.part)
		switch {
		case tt.part == 0:
			if !errors.Is(err, roce.ErrInvalid) || o.region != nil {
				t.Errorf("%s %d, %s: %v", tt.typ, tt.size, tt.name, err)
			}
		case err != nil:
			t.Errorf("%s %d, %s: %v", tt.typ, tt.size, tt.name, err)
		case len(o.region.memory) != want || o.region.mr.Len() != uint64(want) || o.Size != tt.size:
			t.Errorf("%s %d, %s: %d bytes", tt.typ, o.Size, tt.name, len(o.region.memory))
		}
		o.Release()
		o.Release()
	}
	if left := dev.Resources(1).Total; left != (engine.ResourceCount{}) {
		t.Errorf("left: %+v", left)
	}
}

// TestReadyMemoryIsUsed: the memory that was made before is that of the test, but where the peer's
// machine asks for more: then there is more, and the other is given back.
func TestReadyMemoryIsUsed(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	must(t, err)
	dev := device(t, network, 1, engine.Options{})
	large := perftest.System{Cycle: 65536, CacheLine: 128}
	for _, tt := range []struct {
		size, then int // of messages, before and when the path MTU is known
		system     perftest.System
		same       bool
		length     int // of the memory
	}{
		{8192, 8192, ownSystem, true, 2 * 8192},
		{8192, 1024, ownSystem, true, 2 * 4096},
		{8192, 8192, large, false, 2 * 65536},
		{65536, 65536, large, true, 2 * 65536},
	} {
		o := Options{Config: brief(Test{Verb: Write})}
		o.Size = tt.size
		must(t, o.Ready(dev))
		before := o.region.mr
		o.Size = tt.then
		e, err := newEnd(dev, &o.Config, tt.system, wire.MTU1024, 0, o.region)
		must(t, err)
		if got := e.mr == before; got != tt.same || len(e.memory) != tt.length {
			t.Errorf("%+v: %d bytes, the same: %t", tt, len(e.memory), got)
		}
		if n := dev.Resources(1).Total.MR; n != 1 {
			t.Errorf("%+v: %d regions", tt, n)
		}
		e.close()
		o.Release()
	}
	if n := dev.Resources(1).Total.MR; n != 0 {
		t.Errorf("%d regions are left", n)
	}
}
