package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"xroce/bench/softroce"
)

// A pair is two Soft-RoCE hosts on a cable. The first one has our addresses.
type pair struct {
	mtu   int // of both interfaces
	vms   [2]*softroce.VM
	cable *softroce.Cable
}

// openPair boots both.
func openPair(ctx context.Context, image softroce.Image) (*pair, error) {
	p := &pair{mtu: interfaceMTU(1024)}
	var booting sync.WaitGroup
	var errs [2]error
	for i, addrs := range [...][]netip.Prefix{ourAddrs, theirAddrs} {
		booting.Go(func() {
			p.vms[i], errs[i] = softroce.Boot(ctx, image, softroce.Config{
				Number: uint8(3 + i), MTU: p.mtu, Addrs: addrs,
			})
		})
	}
	booting.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.cable = softroce.NewCable(p.vms[0].Port(), p.vms[1].Port())
	return p, nil
}

// setMTU gives both an MTU.
func (p *pair) setMTU(ctx context.Context, mtu int) error {
	if mtu == p.mtu {
		return nil
	}
	for _, vm := range p.vms {
		if err := setMTUIn(ctx, vm, mtu); err != nil {
			return err
		}
	}
	p.mtu = mtu
	return nil
}

func (p *pair) close() error {
	var err error
	if p.cable != nil {
		err = p.cable.Close()
	}
	for _, vm := range p.vms {
		if vm != nil {
			err = errors.Join(err, vm.Close())
		}
	}
	return err
}

// talk runs a case between the two, the first one in our role.
func (p *pair) talk(ctx context.Context, t *tool, c Case) (wrong, output string) {
	servesAt, other := p.vms[1], p.vms[0]
	if c.Role == weServe {
		servesAt, other = other, servesAt
	}
	serve, call := t.reference(c)
	var ends [2]end
	defer func() {
		for _, e := range ends {
			if e.done != nil {
				output += fmt.Sprintf("--- %s\n%s\n", e.name, strings.TrimSpace(e.output()))
			}
		}
	}()
	server, listener, err := inVM(servesAt, "server", serve)
	if err != nil {
		return err.Error(), ""
	}
	ends[0] = server
	if err := awaitListener(ctx, servesAt, t, c, listener); err != nil {
		server.stop()
		<-server.done
		return err.Error(), ""
	}
	if ends[1], _, err = inVM(other, "client", call); err != nil {
		return err.Error(), ""
	}
	if c.Fault == refused {
		return turnedAway(ctx, ends), ""
	}
	return finish(ctx, ends), ""
}
