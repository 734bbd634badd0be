package perf

import (
	"context"
	"fmt"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/oob/perftest"
)

// fillRate is how many bytes of its memory a peer registers and fills in a second at least: a
// tenth of what a slow machine does.
const fillRate = 64 << 20

// fillTime is how long a peer may take to make its memory, which is as large as ours.
func (l layout) fillTime() time.Duration {
	return time.Duration(float64(l.size()) / fillRate * float64(time.Second))
}

// setup learns what the peer is and connects, in limited time. That is the peer's: it does not pass
// while this end makes its own memory, and there is more of it for memory that takes long to make
// at the other end.
func (r *run) setup(ctx context.Context, dev *engine.Device) error {
	begun := time.Now()
	err := r.within(ctx, r.dog.setup, 0, func(context.Context) error { return r.agree(dev) })
	if err != nil {
		return err
	}
	spent := time.Since(begun)
	if err := r.equip(dev); err != nil {
		return err
	}
	r.dog.filling = r.at.fillTime()
	defer func() { r.dog.filling = 0 }()
	err = r.within(ctx, r.dog.setup+r.dog.filling, spent, func(ctx context.Context) error {
		if m, ok := r.via.(*Managed); ok && r.cfg.Managed {
			if err := r.join(ctx, m); err != nil {
				return err
			}
		}
		return r.meet(ctx)
	})
	if err != nil {
		r.close()
		return err
	}
	r.info.Outstanding = r.outstanding()
	r.tell.Agreed(&r.info)
	return nil
}

// outstanding is how many READs and atomics there are at a time: what was asked for at the end that
// has less. The tool's client takes that of the server alone.
func (r *run) outstanding() int {
	most := r.outReads
	if r.cfg.passive() && !r.plans {
		return most
	}
	for i := range r.remote {
		most = min(most, int(r.remote[i].OutReads))
	}
	return most
}

// within does a part of the setup, in a time of which some is spent.
func (r *run) within(
	ctx context.Context, most, spent time.Duration, do func(ctx context.Context) error,
) error {
	late := fmt.Errorf("%w within %s", errSetup, most.Round(time.Millisecond))
	within, cancel := context.WithTimeoutCause(ctx, most-spent, late)
	defer cancel()
	stop := interrupts(within, r.via)
	err := do(within)
	if !stop() {
		return context.Cause(within)
	}
	return err
}

// agree learns what the peer is.
func (r *run) agree(dev *engine.Device) error {
	c := &r.info.Config
	var err error
	r.info.RemoteVersion, r.plans, err = r.via.Versions(perftest.OurVersion, !r.asTool)
	if err != nil {
		return err
	}
	if r.system, err = r.via.System(ownSystem); err != nil {
		return err
	}
	if r.info.PathMTU, err = r.via.MTU(c.localMTU(dev)); err != nil {
		return err
	}
	if err := c.fit(dev, r.info.PathMTU, r.sized); err != nil {
		return err
	}
	if r.plans {
		if err := r.comparePlans(); err != nil {
			return err
		}
	}
	if m, ok := r.via.(*Managed); ok && c.Managed {
		r.info.GID, err = m.gid()
		return err
	}
	r.info.GID, err = chooseGID(dev, c)
	return err
}

// equip makes this end, for which the peer waits.
func (r *run) equip(dev *engine.Device) (err error) {
	if r.fills != nil {
		r.fills()
	}
	c := &r.info.Config
	r.end, err = newEnd(dev, c, r.system, r.info.PathMTU, r.info.GID, r.ready)
	if err != nil {
		return err
	}
	if r.dump != nil {
		if err := beginDump(r.dump, r.end); err != nil {
			r.close()
			return err
		}
	}
	if r.plans {
		r.nameMembers()
	}
	r.info.Local, r.info.Remote = r.local, r.remote
	return nil
}

// join has rdma_cm connect the queue pairs.
func (r *run) join(ctx context.Context, m *Managed) error {
	c := r.cfg
	s := cm.Setup{
		Exact: true, RetryCount: c.Retries, RNRRetry: rnrRetry, MinRNRTimer: minRNRTimer,
		TClass: c.TClass, PathMTU: r.mtu, AckTimeout: c.Timeout, Access: verbs[c.Test.Verb].access,
	}
	if c.Test.Answered() {
		s.ResponderRes, s.InitiatorDepth = uint8(r.outReads), uint8(r.outReads)
	}
	qps := r.qps()
	err := m.Join(ctx, qps, s, func() (*engine.QP, error) {
		var f flow
		err := r.newQP(&f)
		if err != nil && f.qp != nil {
			f.qp.Close()
		}
		return f.qp, err
	})
	if err != nil {
		return err
	}
	for i, qp := range qps {
		r.flows[i].qp = qp
		if r.local[i], err = r.endpoint(i); err != nil {
			return err
		}
	}
	return nil
}

// qps lists the queue pairs of the test.
func (r *run) qps() []*engine.QP {
	qps := make([]*engine.QP, len(r.flows))
	for i := range r.flows {
		qps[i] = r.flows[i].qp
	}
	return qps
}

// ownSystem is what this end tells of its machine.
var ownSystem = perftest.System{Cycle: 4096, CacheLine: 64}

// meet exchanges keys and connects. The first keys of the peer come when it has filled its memory.
// When is when differs from test to test, and so does which keys serve as a barrier.
func (r *run) meet(ctx context.Context) error {
	if err := r.allKeys(ctx); err != nil {
		return err
	}
	if err := r.connect(ctx, r.via); err != nil {
		return err
	}
	steps := []func(context.Context) error{r.allKeys, r.barrier}
	switch c := r.cfg; {
	case c.Test.Latency && c.Test.Verb != Send:
		steps = append(steps, r.barrier)
	case !c.Test.Latency && c.Test.Verb == Send:
		steps[0], steps[1] = steps[1], steps[0]
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// allKeys tells the keys of each QP.
func (r *run) allKeys(ctx context.Context) error {
	return r.talk(ctx, func() error {
		for i := range r.local {
			remote, err := r.via.Keys(r.local[i])
			if err != nil {
				return err
			}
			if err := r.checkPartner(i, remote.QPN); err != nil {
				return err
			}
			r.remote[i] = remote
		}
		return nil
	})
}

// checkPartner looks whether the queue pair that rdma_cm has connected to one of the test is the
// one that the peer tells of, where that is one of ours. Another client of the client's host may
// have come between.
func (r *run) checkPartner(i int, qpn uint32) error {
	m, ok := r.via.(*Managed)
	if !ok || !r.plans || len(m.conns) == 0 {
		return nil
	}
	if got := r.flows[i].qp.Query().DestQPN; got != qpn {
		return fmt.Errorf("QP %d of %d is connected to 0x%06x of %s, and not to 0x%06x: another "+
			"client there has asked at the same time", i+1, len(r.flows), got,
			m.talk.RemoteAddr().Addr(), qpn)
	}
	return nil
}

// barrier waits until the peer has come as far.
func (r *run) barrier(ctx context.Context) error {
	return r.talk(ctx, func() error {
		_, err := r.via.Keys(r.local[0])
		return err
	})
}
