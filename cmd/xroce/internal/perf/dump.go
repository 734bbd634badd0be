package perf

import (
	"bytes"

	"xroce/cmd/perfdump"
	"xroce/engine"
	"xroce/roce"
)

// beginDump notes the memory as it is now, before anybody can send.
func beginDump(d *perfdump.Dump, e *end) error {
	return touch(func() { d.Before = bytes.Clone(e.memory) })
}

// describeDump notes what is where, while the queue pairs are still there.
func describeDump(d *perfdump.Dump, e *end) {
	c := e.cfg
	d.Head = perfdump.Head{
		Test: c.Test.Name(), Size: c.Size, PathMTU: e.mtu.Bytes(), Address: e.mr.Addr(),
		Length: len(e.memory), LKey: e.mr.LKey(), RKey: e.mr.RKey(), Header: c.header(),
	}
	places := func(offset, n int) perfdump.Places {
		count, stride := e.slots(n)
		return perfdump.Places{Offset: uint64(offset), Count: count, Stride: stride}
	}
	for i := range e.flows {
		d.QPs = append(d.QPs, perfdump.QP{
			QPN: e.local[i].QPN, RemoteQPN: peerOf(e.flows[i].qp, e.remote[i].QPN),
			RemoteAddress: e.remote[i].VAddr, RemoteRKey: e.remote[i].RKey,
			Send:    places(e.at.out(i), c.Size),
			Receive: places(e.at.in(i), c.Size+c.header()),
		})
	}
}

// peerOf is the number of the queue pair that one is connected to, which for datagrams
// is the one that was told.
func peerOf(qp *engine.QP, told uint32) uint32 {
	if qp.Type() == roce.TypeUD {
		return told
	}
	return qp.Query().DestQPN
}

// finishDump notes the memory of an end without queue pairs, so that nobody changes it.
func finishDump(d *perfdump.Dump, e *end) error {
	return touch(func() { d.After = bytes.Clone(e.memory) })
}
