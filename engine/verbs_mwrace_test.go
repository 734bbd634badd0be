package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/xsk/xsktest/timeout"
)

// A lane is a connection of its own between two devices that run by themselves.
type lane struct {
	ctx  context.Context
	a, b *side
}

func newLane(t *testing.T, ctx context.Context, devA, devB *engine.Device) *lane {
	t.Helper()
	l := &lane{ctx, newSide(t, devA), newSide(t, devB)}
	connect(t, l.a, l.b)
	return l
}

// post posts to one side and returns how the work request ended.
func (l *lane) post(s *side, wr roce.SendWR) (roce.Status, error) {
	wr.Flags |= roce.SendSignaled
	if err := s.qp.PostSend(&wr); err != nil {
		return 0, err
	}
	return l.next(s)
}

// next is how the next work request of a side ended.
func (l *lane) next(s *side) (roce.Status, error) {
	var wcs [1]roce.Completion
	for {
		n, err := s.cq.Wait(l.ctx, wcs[:])
		if err != nil || n == 1 {
			return wcs[0].Status, err
		}
	}
}

// write is a WRITE of n bytes from a.
func (l *lane) write(key uint32, addr uint64, n int) (roce.Status, error) {
	return l.post(l.a, roce.SendWR{
		Opcode: roce.OpWrite, SGList: []roce.SGE{l.a.mr.SGE(0, n)}, RemoteAddr: addr, RKey: key,
	})
}

// reconnect brings both sides from any state to RTS again.
func (l *lane) reconnect() error {
	for _, s := range []*side{l.a, l.b} {
		err := errors.Join(s.qp.Modify(&roce.Attr{State: roce.StateReset}, roce.AttrState),
			s.qp.Init(allAccess))
		if err != nil {
			return err
		}
	}
	o := engine.ConnectOptions{SGIDIndex: 1, Timeout: patientTimeout}
	return errors.Join(l.a.qp.Connect(l.ctx, l.a.end, l.b.end, o),
		l.b.qp.Connect(l.ctx, l.b.end, l.a.end, o))
}

// TestKeysUnderTraffic registers, re-registers, binds, frees and deregisters from many
// goroutines while packets come for just these keys, and for others. The memory of a
// region is written to by its owner right after Deregister or Rereg: under the race
// detector a packet that touched it later would show.
func TestKeysUnderTraffic(t *testing.T) {
	clock := engine.NewSystemClock()
	network := newNetwork(t, 1, clock, sim.Faults{})
	devA, devB := simPair(t, network, engine.Options{Clock: clock})
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	var wg sync.WaitGroup
	for name, run := range map[string]func(*lane) error{
		"deregister": deregisterLoop, "rereg": reregLoop, "bind": bindLoop,
		"type 1": rollLoop, "steady": steadyLoop,
	} {
		l := newLane(t, ctx, devA, devB)
		wg.Go(func() {
			if err := run(l); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
}

const lanePasses = 60

// deregisterLoop takes a region away while WRITEs to it are under way.
func deregisterLoop(l *lane) error {
	for range lanePasses {
		memory := make([]byte, 1<<16)
		mr, err := l.b.dev.RegMR(l.b.pd, memory, allAccess)
		if err != nil {
			return err
		}
		wr := roce.SendWR{
			Opcode: roce.OpWrite, Flags: roce.SendSignaled,
			SGList:     []roce.SGE{l.a.mr.SGE(0, len(memory))},
			RemoteAddr: mr.Addr(), RKey: mr.RKey(),
		}
		for range 4 {
			if err := l.a.qp.PostSend(&wr); err != nil {
				return err
			}
		}
		if err := mr.Deregister(); err != nil {
			return err
		}
		for i := range memory {
			memory[i] = 7 // the owner's again
		}
		failed := false
		for range 4 {
			status, err := l.next(l.a)
			if err != nil {
				return err
			}
			failed = failed || status != roce.StatusSuccess
		}
		for i := range memory {
			if memory[i] != 7 {
				return errors.New("a packet wrote after Deregister")
			}
		}
		if failed {
			if err := l.reconnect(); err != nil {
				return err
			}
		}
	}
	return nil
}

// reregLoop moves a region between two memories while WRITEs to it are under way.
func reregLoop(l *lane) error {
	memories := [2][]byte{make([]byte, 1<<15), make([]byte, 1<<15)}
	mr, err := l.b.dev.RegMRWith(l.b.pd, memories[0], engine.MROptions{Access: allAccess})
	if err != nil {
		return err
	}
	for i := range lanePasses {
		wr := roce.SendWR{
			Opcode: roce.OpWrite, Flags: roce.SendSignaled,
			SGList:     []roce.SGE{l.a.mr.SGE(0, 1<<15)},
			RemoteAddr: mr.Addr(), RKey: mr.RKey(),
		}
		if err := l.a.qp.PostSend(&wr); err != nil {
			return err
		}
		if err := mr.Rereg(mem.ChangeTranslation, memories[(i+1)%2], nil, 0); err != nil {
			return err
		}
		old := memories[i%2]
		for j := range old {
			old[j] = byte(i)
		}
		status, err := l.next(l.a)
		if err != nil {
			return err
		}
		for j := range old {
			if old[j] != byte(i) {
				return errors.New("a packet wrote to the memory before")
			}
		}
		if status != roce.StatusSuccess {
			if err := l.reconnect(); err != nil {
				return err
			}
		}
	}
	return mr.Deregister()
}

// bindLoop lends a window, has it used, and takes it back in one of three ways.
func bindLoop(l *lane) error {
	region, err := l.b.dev.RegMR(l.b.pd, make([]byte, 4096), windowRights)
	if err != nil {
		return err
	}
	mw, err := l.b.pd.AllocMW(mem.WindowType2)
	if err != nil {
		return err
	}
	for i := range lanePasses {
		status, err := l.post(l.b, roce.SendWR{Opcode: roce.OpBindMW, Bind: mem.Bind{
			Window: mw.RKey(), NewKey: mem.NextKey(mw.RKey()), LKey: region.LKey(),
			Addr: region.Addr(), Length: 4096, Access: mem.RemoteWrite,
		}})
		if err != nil || status != roce.StatusSuccess {
			return errors.Join(err, errors.New(status.String()))
		}
		if status, err := l.write(mw.RKey(), mw.Addr(), 4096); err != nil ||
			status != roce.StatusSuccess {
			return errors.Join(err, errors.New(status.String()))
		}
		switch i % 2 {
		case 0:
			status, err = l.post(l.b, roce.SendWR{
				Opcode: roce.OpLocalInv, InvalidateKey: mw.RKey(),
			})
		case 1:
			mw.Dealloc()
			mw, err = l.b.pd.AllocMW(mem.WindowType2)
		}
		if err != nil || status != roce.StatusSuccess {
			return errors.Join(err, errors.New(status.String()))
		}
	}
	mw.Dealloc()
	return region.Deregister()
}

// rollLoop binds a window of type 1 over and over while the peer writes with keys that
// are good, or just not any more.
func rollLoop(l *lane) error {
	region, err := l.b.dev.RegMR(l.b.pd, make([]byte, 4096), windowRights)
	if err != nil {
		return err
	}
	mw, err := l.b.pd.AllocMW(mem.WindowType1)
	if err != nil {
		return err
	}
	bind := engine.MWBind{
		Flags: roce.SendSignaled, MR: region, Addr: region.Addr(), Length: 4096,
		Access: mem.RemoteWrite,
	}
	for range lanePasses {
		key, err := mw.Bind(l.b.qp, bind)
		if err != nil {
			return err
		}
		if status, err := l.next(l.b); err != nil || status != roce.StatusSuccess {
			return errors.Join(err, errors.New(status.String()))
		}
		write := roce.SendWR{
			Opcode: roce.OpWrite, Flags: roce.SendSignaled,
			SGList: []roce.SGE{l.a.mr.SGE(0, 4096)}, RemoteAddr: region.Addr(), RKey: key,
		}
		if err := l.a.qp.PostSend(&write); err != nil {
			return err
		}
		if _, err := mw.Bind(l.b.qp, bind); err != nil {
			return err
		}
		if _, err := l.next(l.b); err != nil { // flushed if the WRITE came too late
			return err
		}
		status, err := l.next(l.a)
		if err != nil {
			return err
		}
		if status != roce.StatusSuccess {
			if err := l.reconnect(); err != nil {
				return err
			}
		}
		mw.Restore()
	}
	mw.Dealloc()
	return region.Deregister()
}

// steadyLoop is who has nothing to do with all this: every WRITE arrives.
func steadyLoop(l *lane) error {
	for range 4 * lanePasses {
		status, err := l.write(l.b.mr.RKey(), l.b.mr.Addr(), 4096)
		if err != nil || status != roce.StatusSuccess {
			return errors.Join(err, errors.New(status.String()))
		}
	}
	return nil
}
