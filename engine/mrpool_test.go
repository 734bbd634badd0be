package engine_test

import (
	"errors"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
)

// TestMRPool: regions of a pool have keys of their own each time, count for their domain while they
// are registered, and are listed.
func TestMRPool(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	dev := openPort(t, network, 0, engine.Options{Direct: true})
	var pool engine.MRPool
	pd, other := dev.AllocPD(), dev.AllocPD()
	keys := map[uint32]bool{}
	for i := range 20 {
		of, b := pd, make([]byte, 100+i)
		if i%2 == 1 {
			of = other
		}
		m, err := pool.RegMR(dev, of, b, mem.LocalWrite)
		if err != nil {
			t.Fatal(err)
		}
		if keys[m.LKey()] || m.PD() != of || &m.Bytes()[0] != &b[0] || m.Len() != uint64(len(b)) {
			t.Errorf("key %#x, %d bytes", m.LKey(), m.Len())
		}
		keys[m.LKey()] = true
		if err := of.Close(); !errors.Is(err, engine.ErrBusy) {
			t.Errorf("the domain of a region was closed: %v", err)
		}
		if r := dev.Resources(100); r.Total.MR != 1 || r.MRs[0].Len != m.Len() {
			t.Errorf("listed are %+v", r.MRs)
		}
		if err := m.Release(); err != nil {
			t.Fatal(err)
		}
		if r := dev.Resources(100); r.Total.MR != 0 || m.Bytes() != nil {
			t.Errorf("listed are %+v, the memory is held: %v", r.MRs, m.Bytes() != nil)
		}
	}
	if err := errors.Join(pd.Close(), other.Close()); err != nil {
		t.Error(err)
	}
	if _, err := pool.RegMR(dev, pd, make([]byte, 1), 0); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("a domain that is closed: %v", err)
	}
}

// TestMRPoolOfSlices: a region of a pool is of one slice or of several, and holds nothing between.
func TestMRPoolOfSlices(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	dev := openPort(t, network, 0, engine.Options{Direct: true})
	var pool engine.MRPool
	pd := dev.AllocPD()
	one, several := make([]byte, 10), [][]byte{make([]byte, 20), nil, make([]byte, 30)}
	keys := map[uint32]bool{}
	for range 3 {
		m, err := pool.RegSG(dev, pd, several, mem.LocalWrite)
		if err != nil {
			t.Fatal(err)
		}
		if m.Len() != 50 || m.Addr() != 0 || m.Bytes() != nil || keys[m.LKey()] {
			t.Errorf("%d bytes at %#x, key %#x", m.Len(), m.Addr(), m.LKey())
		}
		keys[m.LKey()] = true
		if err := m.Release(); err != nil {
			t.Fatal(err)
		}
		if m.Len() != 0 {
			t.Errorf("%d bytes are held", m.Len())
		}
		if m, err = pool.RegMR(dev, pd, one, mem.LocalWrite); err != nil {
			t.Fatal(err)
		}
		if m.Len() != 10 || &m.Bytes()[0] != &one[0] || keys[m.LKey()] {
			t.Errorf("%d bytes, key %#x", m.Len(), m.LKey())
		}
		keys[m.LKey()] = true
		if err := m.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dev.RegSG(pd, several, mem.RemoteWrite); !errors.Is(err, mem.ErrAccess) {
		t.Error(err)
	}
	if err := pd.Close(); err != nil {
		t.Error(err)
	}
}

// TestMRPoolReleasedTwice: a region that was given back twice is had by one afterwards, not by two.
func TestMRPoolReleasedTwice(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	dev := openPort(t, network, 0, engine.Options{Direct: true})
	var pool engine.MRPool
	pd := dev.AllocPD()
	m, err := pool.RegMR(dev, pd, make([]byte, 100), mem.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Release(), m.Release()); err != nil {
		t.Fatal(err)
	}
	one, err := pool.RegMR(dev, pd, make([]byte, 100), mem.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	other, err := pool.RegMR(dev, pd, make([]byte, 100), mem.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	if one == other {
		t.Error("two have one region")
	}
	if err := errors.Join(one.Release(), other.Release(), pd.Close()); err != nil {
		t.Error(err)
	}
}
