package lab

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/softroce"
)

// A Pair is two Soft-RoCE hosts on a cable. The first one has our addresses.
type Pair struct {
	VMs   [2]*softroce.VM
	Cable *softroce.Cable // between the two
	mtu   int             // of both interfaces
}

// OpenPair boots both. Nothing is left of a failed try.
func OpenPair(ctx context.Context, image softroce.Image) (*Pair, error) {
	p := &Pair{mtu: cases.InterfaceMTU(1024)}
	var booting sync.WaitGroup
	var errs [2]error
	for i, addrs := range [...][]netip.Prefix{cases.OurAddrs, cases.TheirAddrs} {
		booting.Go(func() {
			p.VMs[i], errs[i] = softroce.Boot(ctx, image, softroce.Config{
				Number: uint8(3 + i), MTU: p.mtu, Addrs: addrs,
			})
		})
	}
	booting.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.Cable = softroce.NewCable(p.VMs[0].Port(), p.VMs[1].Port())
	return p, nil
}

// Hosts are both.
func (p *Pair) Hosts() []Host {
	return []Host{{p.VMs[0], &p.mtu}, {p.VMs[1], &p.mtu}}
}

// SetMTU gives both an MTU.
func (p *Pair) SetMTU(ctx context.Context, mtu int) error {
	if mtu == p.mtu {
		return nil
	}
	for _, vm := range p.VMs {
		if err := setMTUIn(ctx, vm, mtu); err != nil {
			return err
		}
	}
	p.mtu = mtu
	return nil
}

// Close removes both.
func (p *Pair) Close() error {
	var err error
	if p.Cable != nil {
		err = p.Cable.Close()
	}
	for _, vm := range p.VMs {
		if vm != nil {
			err = errors.Join(err, vm.Close())
		}
	}
	return err
}
