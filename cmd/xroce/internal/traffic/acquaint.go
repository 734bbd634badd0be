package traffic

import (
	"fmt"
	"io"

	"xroce/engine/oob/perftest"
	"xroce/roce/gen"
	"xroce/roce/wire"
)

// An Acquaintance is a server of perftest that answers requests: ib_write_bw, ib_read_bw,
// ib_atomic_bw and ib_send_bw, or xroce perf. It tells its queue pairs and their memory over TCP,
// learns ours, and is told of the end.
type Acquaintance struct {
	conn  *perftest.Conn
	local []perftest.Endpoint
}

// Acquaint tells a server of perftest about the queue pairs of connections, numbered from qpn on,
// and completes the configurations of their flows with what it answers: queue pair, key, address
// and path MTU. Addresses that they have are offsets into the peer's memory. A deadline is that
// of the connection.
func Acquaint(rw io.ReadWriter, flows []gen.Config, qpn uint32) (*Acquaintance, error) {
	a := &Acquaintance{conn: perftest.New(rw, true)}
	if _, _, err := a.conn.Versions(perftest.OurVersion, false); err != nil {
		return nil, err
	}
	if _, err := a.conn.System(perftest.System{Cycle: 4096, CacheLine: 64}); err != nil {
		return nil, err
	}
	mtu := flows[0].RoCE.MTU
	for i := range flows {
		mtu = min(mtu, flows[i].RoCE.MTU)
	}
	mtu, err := a.conn.MTU(mtu)
	if err != nil {
		return nil, err
	}
	for i := range flows {
		a.local = append(a.local, perftest.Endpoint{
			OutReads: maxReads, QPN: (qpn + uint32(i)) & 0xffffff, PSN: flows[i].RoCE.PSN,
			GID: flows[i].Path.Src,
		})
	}
	if err := a.learn(flows, mtu); err != nil {
		return nil, err
	}
	// Twice more, of all queue pairs and of one, in the order of the test. A peer that receives
	// tells once more that its receives are there.
	steps := []func() error{a.keys, a.barrier}
	if flows[0].RoCE.Opcodes[0].Spec().Is(wire.ClassSend) {
		steps = []func() error{a.barrier, a.keys, a.barrier}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// maxReads is what we say of READs that we answer, which are none: peers want to hear a number.
const maxReads = 1

// learn exchanges the keys for the first time.
func (a *Acquaintance) learn(flows []gen.Config, mtu wire.MTU) error {
	for i := range flows {
		remote, err := a.conn.Keys(a.local[i])
		if err != nil {
			return err
		}
		f := &flows[i]
		if remote.GID != f.Path.Dst {
			return fmt.Errorf("the peer's queue pair is at %s, and packets go to %s", remote.GID,
				f.Path.Dst)
		}
		f.RoCE.DestQP, f.RoCE.RKey, f.RoCE.MTU = remote.QPN, remote.RKey, mtu
		f.RoCE.VA += remote.VAddr
	}
	return nil
}

// keys tells the keys of all queue pairs, as a barrier.
func (a *Acquaintance) keys() error {
	for i := range a.local {
		if _, err := a.conn.Keys(a.local[i]); err != nil {
			return err
		}
	}
	return nil
}

// barrier tells the keys of one.
func (a *Acquaintance) barrier() error {
	_, err := a.conn.Keys(a.local[0])
	return err
}

// Part takes leave, with a result for the peer. After SENDs there is none to tell.
func (a *Acquaintance) Part(sends bool, r perftest.Report) error {
	if !sends {
		if err := a.barrier(); err != nil {
			return err
		}
		if _, err := a.conn.Reports(r); err != nil {
			return err
		}
	}
	if err := a.barrier(); err != nil {
		return err
	}
	return a.conn.Done()
}
