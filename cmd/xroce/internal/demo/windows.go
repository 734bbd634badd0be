package demo

import (
	"bytes"
	"context"
	"fmt"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// torrent is how many WRITEs host 1 has under way while its window is taken away, each
// of torrentSize bytes: more than usually arrive before host 0 has done it. One more
// follows, in case that they did.
const (
	torrent     = 64
	torrentSize = 64 << 10
)

// A landlord lends part of a region of host 0 to host 1, which has a region to write
// from. The region itself grants nothing.
type landlord struct {
	*cast
	region, source *engine.MR
	mw             *engine.MW
	before         []byte // what the region must hold
}

// playWindows grants a window, has it used, revokes it in mid-traffic, and grants it
// anew.
func playWindows(ctx context.Context, c *cast) error {
	l := &landlord{cast: c}
	var err error
	l.region, err = c.dev[0].RegMR(c.pd[0], make([]byte, 3*torrentSize), mem.LocalWrite|mem.MWBind)
	if err != nil {
		return err
	}
	l.source, err = c.dev[1].RegMR(c.pd[1], bytes.Repeat([]byte{0x5a}, torrentSize), mem.LocalWrite)
	if err != nil {
		return err
	}
	mark(l.source.Bytes())
	if l.mw, err = c.pd[0].AllocMW(mem.WindowType2); err != nil {
		return err
	}
	l.before = bytes.Clone(l.region.Bytes())
	dead, err := l.revoke(ctx)
	if err != nil {
		return fmt.Errorf("revoking: %w", err)
	}
	if err := l.grantAgain(ctx, dead); err != nil {
		return fmt.Errorf("granting again: %w", err)
	}
	err = l.region.Deregister()
	c.check(err != nil, "a region with a window was deregistered")
	l.mw.Dealloc()
	err = l.region.Deregister()
	c.check(err == nil, "the window is gone, and the region stays: %v", err)
	return l.source.Deregister()
}

// bind has host 0 bind the window to the middle of the region.
func (l *landlord) bind(ctx context.Context, p *pair) error {
	err := p.end[0].QP.PostSend(&roce.SendWR{Opcode: roce.OpBindMW, Bind: mem.Bind{
		Window: l.mw.RKey(), NewKey: mem.NextKey(l.mw.RKey()), LKey: l.region.LKey(),
		Addr: l.region.Addr() + torrentSize, Length: torrentSize, Access: mem.RemoteWrite,
	}})
	if err != nil {
		return err
	}
	return p.expect(ctx, l.tally, "BIND_MW", [2]*roce.Completion{
		{Opcode: roce.WCBindMW, QPN: p.end[0].QP.QPN()}, nil,
	})
}

// write is a WRITE of n bytes through the window.
func (l *landlord) write(key uint32, n int) *roce.SendWR {
	return &roce.SendWR{
		Opcode: roce.OpWrite, SGList: []roce.SGE{l.source.SGE(0, n)},
		RemoteAddr: l.region.Addr() + torrentSize, RKey: key,
	}
}

// revoke takes the window away while WRITEs come through it. It returns the key, which
// is dead then. It is unknown how many of the WRITEs arrive.
func (l *landlord) revoke(ctx context.Context) (dead uint32, err error) {
	p, talk, err := l.join(ctx, allRights, both(roce.TypeRC))
	if err != nil {
		return 0, err
	}
	defer p.disconnect()
	talk.torn = true
	if err := l.bind(ctx, p); err != nil {
		return 0, err
	}
	key := l.mw.RKey()
	for range torrent {
		if err := p.end[1].QP.PostSend(l.write(key, torrentSize)); err != nil {
			return 0, err
		}
	}
	var wcs [1]roce.Completion
	if _, err := p.wait(ctx, 1, wcs[:]); err != nil { // one has arrived
		return 0, err
	}
	l.check(wcs[0].Status == roce.StatusSuccess, "WRITE through a window: %s", wcs[0].Status)
	err = p.end[0].QP.PostSend(&roce.SendWR{Opcode: roce.OpLocalInv, InvalidateKey: key})
	if err != nil {
		return 0, err
	}
	if _, err := p.wait(ctx, 0, wcs[:]); err != nil {
		return 0, err
	}
	l.check(wcs[0].Status == roce.StatusSuccess && wcs[0].Opcode == roce.WCLocalInv,
		"LOCAL_INV: %s", wcs[0].Status)
	// The region is host 0's alone from here on: what it writes now must stay.
	if err := p.fence(); err != nil {
		return 0, err
	}
	copy(l.before[torrentSize:], l.source.Bytes())
	l.check(bytes.Equal(l.region.Bytes(), l.before), "the first WRITE is not all there, or beside")
	for i := range l.before {
		l.before[i] = byte(i)
	}
	copy(l.region.Bytes(), l.before)
	if err := p.fence(); err != nil {
		return 0, err
	}
	if err := p.end[1].QP.PostSend(l.write(key, torrentSize)); err != nil {
		return 0, err
	}
	return key, l.drain(ctx, p)
}

// drain takes the rest of the WRITEs: some that succeeded, one that was refused, and
// all others flushed. What came too late was not written.
func (l *landlord) drain(ctx context.Context, p *pair) error {
	var wcs [1]roce.Completion
	ended := map[roce.Status]int{}
	for range torrent {
		if _, err := p.wait(ctx, 1, wcs[:]); err != nil {
			return err
		}
		ended[wcs[0].Status]++
	}
	l.check(ended[roce.StatusRemAccessErr] == 1,
		"the window is gone, and WRITEs ended like that: %v", ended)
	l.check(ended[roce.StatusRemAccessErr]+ended[roce.StatusWRFlushErr]+
		ended[roce.StatusSuccess] == torrent, "WRITEs ended otherwise: %v", ended)
	if err := p.fence(); err != nil {
		return err
	}
	l.check(bytes.Equal(l.region.Bytes(), l.before), "written to after LOCAL_INV, from byte %d on",
		firstDifference(l.region.Bytes(), l.before))
	return nil
}

// grantAgain binds the window anew on another connection: the new key works, the one
// before does not.
func (l *landlord) grantAgain(ctx context.Context, dead uint32) error {
	p, talk, err := l.join(ctx, allRights, both(roce.TypeRC))
	if err != nil {
		return err
	}
	defer p.disconnect()
	if err := l.bind(ctx, p); err != nil {
		return err
	}
	const n = 4096
	mark(l.source.Bytes()[:n])
	for _, t := range []struct {
		what string
		key  uint32
		want roce.Completion
	}{
		{"WRITE with the new key", l.mw.RKey(), roce.Completion{Opcode: roce.WCWrite}},
		{"WRITE with the key before", dead, roce.Completion{Status: roce.StatusRemAccessErr}},
	} {
		if err := p.fence(); err != nil {
			return err
		}
		if err := p.end[1].QP.PostSend(l.write(t.key, n)); err != nil {
			return err
		}
		talk.carried(1, roce.OpWrite, n)
		t.want.QPN = p.end[1].QP.QPN()
		if err := p.expect(ctx, l.tally, t.what, [2]*roce.Completion{nil, &t.want}); err != nil {
			return err
		}
		if err := p.fence(); err != nil {
			return err
		}
		if t.want.Status != roce.StatusSuccess {
			talk.refused()
		} else {
			copy(l.before[torrentSize:], l.source.Bytes()[:n])
		}
		l.check(bytes.Equal(l.region.Bytes(), l.before), "%s: memory is not as it must be", t.what)
		clear(l.source.Bytes()[n/2 : n])
	}
	return nil
}
