package engine

import (
	"errors"
	"testing"

	"xroce/roce"
	"xroce/xsk"
)

// deafLink is a link that nobody uses.
type deafLink struct{ xsk.Link }

func (deafLink) Info() xsk.Info { return xsk.Info{MaxFrame: 1514} }

// bareHost is a host that only has a port.
type bareHost struct{ Host }

func (bareHost) Port() Port { return Port{MTU: 1500} }

// TestNoNumberLeft creates more QPs and SRQs than there are numbers. What fails
// leaves nothing behind.
func TestNoNumberLeft(t *testing.T) {
	o := Options{Clock: NewSystemClock()}
	o.setDefaults()
	d := newDevice(bareHost{}, nil, o)
	d.addQueue(deafLink{}, [6]byte{})
	const numbers = 8
	d.qps = roce.NewNumberTable[QP](20, 20+numbers-1, o.Rand)
	d.srqs = roce.NewNumberTable[SRQ](20, 20+numbers-1, o.Rand)
	pd, domain := d.AllocPD(), d.OpenXRCD()
	cq, err := d.CreateCQ(8)
	if err != nil {
		t.Fatal(err)
	}
	var qps []*QP
	var srqs []*SRQ
	for range numbers {
		qp, err := d.CreateQP(pd, QPInit{SendCQ: cq, RecvCQ: cq})
		if err != nil {
			t.Fatal(err)
		}
		srq, err := d.CreateSRQ(pd, SRQInit{XRCD: domain, CQ: cq})
		if err != nil {
			t.Fatal(err)
		}
		qps, srqs = append(qps, qp), append(srqs, srq)
	}
	_, err = d.CreateQP(pd, QPInit{SendCQ: cq, RecvCQ: cq})
	if !errors.Is(err, roce.ErrNumbersFull) {
		t.Errorf("one QP more: %v", err)
	}
	_, err = d.CreateSRQ(pd, SRQInit{XRCD: domain, CQ: cq})
	if !errors.Is(err, roce.ErrNumbersFull) {
		t.Errorf("one SRQ more: %v", err)
	}
	if n := pd.users.Load(); n != 2*numbers || cq.users != 3*numbers || domain.users != numbers {
		t.Errorf("%d users of the PD, %d of the CQ, %d of the domain", n, cq.users, domain.users)
	}
	for i := range numbers {
		qps[i].Close()
		if err := srqs[i].Close(); err != nil {
			t.Error(err)
		}
	}
	// Those that fail for another reason give their numbers back.
	for range 10 * numbers {
		_, err := d.CreateQP(pd, QPInit{SendCQ: cq, RecvCQ: cq, MaxInline: roce.MaxInline + 1})
		if !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("too much inline: %v", err)
		}
		if _, err := d.CreateSRQ(pd, SRQInit{MaxSGE: -1}); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("an SRQ without pieces: %v", err)
		}
	}
	if n, m := d.qps.Len(), d.srqs.Len(); n != 0 || m != 0 {
		t.Errorf("%d QPs and %d SRQs in the tables", n, m)
	}
	if err := errors.Join(domain.Close(), cq.Close(), pd.Close()); err != nil {
		t.Error(err)
	}
}
