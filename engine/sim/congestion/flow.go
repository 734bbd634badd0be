package congestion

import (
	"cmp"
	"fmt"

	"xroce/engine"
	"xroce/roce"
)

// A flow is a sender at work.
type flow struct {
	Flow
	host   *host
	qp     *engine.QP
	cq     *engine.CQ
	to     *engine.MR
	posted int // WRITEs that are not complete

	done int64 // bytes of WRITEs that are
	wire int64 // bytes of its frames that arrived
	err  error // why it ended
}

// active reports whether the flow sends at a time.
func (f *flow) active(now roce.Time) bool { return now >= f.From && (f.To == 0 || now < f.To) }

// work takes completions and posts what there is room for, and reports whether it did
// anything. A flow whose queue pair failed has ended.
func (f *flow) work(now roce.Time) (worked bool) {
	var wcs [outstanding]roce.Completion
	n, err := f.cq.Take(wcs[:])
	if f.err != nil || err != nil {
		f.err = cmp.Or(f.err, err)
		return false
	}
	for i := range wcs[:n] {
		if wcs[i].Status != roce.StatusSuccess {
			f.err = fmt.Errorf("sender %d: %s", f.host.index, wcs[i].Status)
			return false
		}
		f.posted--
		f.done += writeSize
	}
	for f.active(now) && f.posted < outstanding {
		f.err = f.qp.PostSend(&roce.SendWR{
			Opcode: roce.OpWrite, Flags: roce.SendSignaled,
			SGList:     []roce.SGE{f.host.region.SGE(0, writeSize)},
			RemoteAddr: f.to.Addr(), RKey: f.to.RKey(),
		})
		if f.err != nil {
			return false
		}
		f.posted++
		worked = true
	}
	return worked || n > 0
}
