package engine_test

import (
	"errors"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
)

// TestRegPart: a part of a region counts for its own domain, is listed, and keeps the region from
// being changed until it is released; then its memory serves for another.
func TestRegPart(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	dev := openPort(t, network, 0, engine.Options{Direct: true})
	other := openPort(t, network, 1, engine.Options{Direct: true})
	var pool engine.MRPool
	owner, pd := dev.AllocPD(), dev.AllocPD()
	mr, err := dev.RegMR(owner, make([]byte, 100), mem.LocalWrite)
	must(t, err)
	keys := map[uint32]bool{}
	for i := range uint64(3) {
		part, err := pool.RegPart(mr, pd, mr.Addr()+i, 10, mem.RemoteRead)
		must(t, err)
		if keys[part.RKey()] || part.Addr() != mr.Addr()+i || part.Len() != 10 || part.PD() != pd {
			t.Errorf("key %#x: %d bytes at %#x", part.RKey(), part.Len(), part.Addr())
		}
		keys[part.RKey()] = true
		if err := mr.Deregister(); !errors.Is(err, engine.ErrBusy) {
			t.Errorf("the region is deregistered: %v", err)
		}
		if err := pd.Close(); !errors.Is(err, engine.ErrBusy) {
			t.Errorf("the domain is closed: %v", err)
		}
		if n := dev.Resources(0).Total.MR; n != 2 {
			t.Errorf("%d regions", n)
		}
		must(t, part.Release())
		whole, err := pool.RegMR(dev, pd, make([]byte, 5), 0)
		must(t, err)
		must(t, whole.Release())
	}
	if _, err := pool.RegPart(mr, pd, mr.Addr(), 101, 0); !errors.Is(err, mem.ErrPart) {
		t.Errorf("more than there is: %v", err)
	}
	_, err = pool.RegPart(mr, other.AllocPD(), mr.Addr(), 1, 0)
	if !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("a domain of another device: %v", err)
	}
	if !mr.Of(dev) || mr.Of(other) {
		t.Error("it is of another device")
	}
	must(t, mr.Hold(mr.Addr(), 100, true))
	if err := mr.Deregister(); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("a region that is held is deregistered: %v", err)
	}
	mr.LetGo()
	must(t, errors.Join(mr.Deregister(), owner.Close(), pd.Close()))
	if _, err := pool.RegPart(mr, dev.AllocPD(), 0, 1, 0); !errors.Is(err, mem.ErrNotRegistered) {
		t.Errorf("a region that is gone: %v", err)
	}
}

// BenchmarkRegister is what it takes to give a key to memory and take it back: plain memory, and a
// part of a region that is registered.
func BenchmarkRegister(b *testing.B) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	if err != nil {
		b.Fatal(err)
	}
	dev := openPort(b, network, 0, engine.Options{Direct: true})
	var pool engine.MRPool
	memory := make([]byte, 1<<20)
	pd := dev.AllocPD()
	mr, err := dev.RegMR(dev.AllocPD(), memory, mem.LocalWrite)
	if err != nil {
		b.Fatal(err)
	}
	for name, register := range map[string]func() (*engine.MR, error){
		"memory": func() (*engine.MR, error) {
			return pool.RegMR(dev, pd, memory, mem.RemoteRead)
		},
		"part": func() (*engine.MR, error) {
			return pool.RegPart(mr, pd, mr.Addr(), 1<<20, mem.RemoteRead)
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m, err := register()
				if err == nil {
					err = m.Release()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
