package demo

import (
	"xroce/engine"
	"xroce/xsk"
	"xroce/xsk/vethpair"
)

// namespaces makes a cable of two network namespaces joined by a veth pair with so many queues.
func namespaces(queues int) (*cable, error) {
	// What a demonstration left that was killed.
	if _, err := vethpair.Sweep(); err != nil {
		return nil, err
	}
	o := vethpair.Options{MTU: mtu, Queues: queues}
	if queues > 1 {
		o.Scatter = vethpair.ScatterFlows
	}
	p, err := vethpair.New(o)
	if err != nil {
		return nil, err
	}
	w := &cable{
		hostsAre: "two network namespaces joined by a veth pair",
		open: func(host int, o engine.Options) (d *engine.Device, err error) {
			if o.Mode == xsk.ModeAuto {
				o.Mode = xsk.ModeCopy // what every driver can
			}
			err = p.Do(sides[host], func() error {
				d, err = engine.Open(vethpair.IfName, o)
				return err
			})
			return d, err
		},
		close: p.Close,
		remove: func() []string {
			return []string{"ip netns del " + p.A.Namespace, "ip netns del " + p.B.Namespace}
		},
	}
	w.lossy = func(share float64, seed uint64) (*cable, *loss, error) {
		return veth{p, queues}.lossy(w, share, seed)
	}
	return w, nil
}
