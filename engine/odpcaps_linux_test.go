package engine_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/pager"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
	"xroce/xsk/xsktest"
)

// withoutMincore says that this process is the one that may not ask for pages.
const withoutMincore = "XROCE_TEST_WITHOUT_MINCORE"

// TestODPCapsFollowKernel: where the kernel does not tell which pages are present, the
// device has no on-demand paging and says so; all else it has.
func TestODPCapsFollowKernel(t *testing.T) {
	if os.Getenv(withoutMincore) == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestODPCapsFollowKernel$", "-test.v")
		c.Env = append(os.Environ(), withoutMincore+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	xsktest.Forbid(t, unix.SYS_MINCORE)
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	dev := w.devs[1]
	if caps := dev.ODPCaps(); caps != (engine.ODPCaps{}) || caps != dev.Query().ODP ||
		caps != engine.Attributes(engine.Options{}).ODP {
		t.Errorf("capabilities %+v, those queried %+v", caps, dev.Query().ODP)
	}
	err := pager.Supported()
	if !errors.Is(err, errors.ErrUnsupported) || !errors.Is(err, unix.EPERM) {
		t.Errorf("the pager says %v", err)
	}
	pd := dev.AllocPD()
	_, err = dev.RegODP(pd, make([]byte, 8), mem.LocalWrite)
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("RegODP says %v", err)
	}
	must(t, pd.Close()) // nothing is left of it
	// A file that gets shorter needs no such call.
	a, b := pairOn(t, w)
	mr, f := regFile(t, b, 4)
	must(t, f.Truncate(int64(odpPage)))
	refusedAccess(t, w, a, b, through(a, roce.OpWrite, mr.RKey(), mr.Addr()+uint64(cut), 8))
}

// odpSeats makes two connected seats of a type, with a shared receive queue at b for XRC.
func odpSeats(t *testing.T, w *world, typ roce.QPType, shared bool) (a, b *seat, srq *engine.SRQ) {
	t.Helper()
	ends := [2]engine.QPInit{{Type: typ}, {Type: typ}}
	b = &seat{dev: w.devs[1], pd: w.devs[1].AllocPD()}
	switch {
	case typ == roce.TypeXRCSend:
		domain := b.dev.OpenXRCD()
		ends[1] = engine.QPInit{Type: roce.TypeXRCRecv, XRCD: domain}
		cq, err := b.dev.CreateCQ(64)
		must(t, err)
		srq = newSRQ(t, b, 0, engine.SRQInit{XRCD: domain, CQ: cq})
		defer func() { b.cq = cq }()
	case shared:
		srq = newSRQ(t, b, 0, engine.SRQInit{})
		ends[1].SRQ = srq
	}
	a = seatOn(t, w.devs[0], ends[0])
	*b = *seatIn(t, b.pd, b.dev, ends[1])
	if typ == roce.TypeUD {
		must(t, a.qp.Start(qkey))
		must(t, b.qp.Start(qkey))
		return a, b, srq
	}
	join(t, a, b, engine.ConnectOptions{})
	return a, b, srq
}

// TestODPCapabilitiesAreUsed has each operation that is told page on each transport: the
// memory that the capability is about was never touched, and the operation brings it in.
func TestODPCapabilitiesAreUsed(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	caps := w.devs[0].ODPCaps()
	for _, typ := range []roce.QPType{
		roce.TypeRC, roce.TypeUC, roce.TypeUD, roce.TypeXRCSend,
	} {
		for bit := engine.ODPSend; bit <= engine.ODPAtomicWrite; bit <<= 1 {
			if caps.Of(typ)&bit != 0 {
				useODP(t, w, typ, bit)
			}
		}
	}
}

// useODP does one operation until it was executed: an unreliable message that meets an
// absent page is lost.
func useODP(t *testing.T, w *world, typ roce.QPType, bit engine.ODPOps) {
	t.Helper()
	a, b, srq := odpSeats(t, w, typ, bit == engine.ODPSRQRecv)
	op := map[engine.ODPOps]roce.Opcode{
		engine.ODPSend: roce.OpSend, engine.ODPRecv: roce.OpSend, engine.ODPSRQRecv: roce.OpSend,
		engine.ODPWrite: roce.OpWriteImm, engine.ODPRead: roce.OpRead,
		engine.ODPAtomic: roce.OpFetchAdd, engine.ODPFlush: roce.OpFlush,
		engine.ODPAtomicWrite: roce.OpAtomicWrite,
	}[bit]
	paged := b
	if bit == engine.ODPSend {
		paged = a
	}
	mr, err := paged.dev.RegODP(paged.pd, odpMap(t, 1, nil), rights)
	must(t, err)
	paged.mr = mr
	faults := func() bool { return odpStats(t, paged).PageFaults > 0 }
	// A SEND and a WRITE with immediate data take a receive, whose completion shows that
	// they were executed; else that of the request does.
	receives := op == roce.OpSend || op == roce.OpWriteImm
	for done, posted := false, false; !done; {
		if receives && !posted {
			posted = true // and stays so when the message is lost
			recv := &roce.RecvWR{SGList: []roce.SGE{b.mr.SGE(0, grhLen+8)}}
			if srq != nil {
				must(t, srq.PostRecv(recv))
			} else {
				must(t, b.qp.PostRecv(recv))
			}
		}
		wr := writeTo(a, b, op, 8)
		switch {
		case typ == roce.TypeUD:
			wr = a.datagram(a.handle(t, b.dev.GIDs()[gidIPv4], gidIPv4), b.qp.QPN(), 8)
		case op == roce.OpFlush:
			wr.SGList, wr.Flush, wr.FlushLength = nil, wire.FlushGlobal, 8
		}
		if srq != nil && typ == roce.TypeXRCSend {
			wr.RemoteSRQN = srq.SRQN()
		}
		a.send(t, wr)
		w.succeed(a.cq, 1)
		w.idle()
		done = true
		if receives {
			var wc [1]roce.Completion
			n, err := b.cq.Poll(wc[:])
			must(t, err)
			done = n == 1 && wc[0].Status == roce.StatusSuccess
		}
	}
	must(t, mr.Deregister()) // then all is counted
	if !faults() {
		t.Errorf("%s, capability %#x: no page was brought in", typ, bit)
	}
}
