package engine

import (
	"reflect"
	"runtime"
	"testing"

	"xroce/roce"
	"xroce/xsk"
	"xroce/xsk/xsktest/heap"
)

// nullLink is a link that nobody uses.
type nullLink struct{ xsk.Link }

func (nullLink) Info() xsk.Info { return xsk.Info{MaxFrame: 1514} }

// nullHost is a host without a network.
type nullHost struct{ Host }

func (nullHost) Port() Port { return Port{MTU: 1500} }

// TestMemoryOfIdleQPs makes 10,000 QPs and says what each takes: in all, and what
// of it is the transport's.
func TestMemoryOfIdleQPs(t *testing.T) {
	const count = 10_000
	o := Options{Clock: NewSystemClock()}
	o.setDefaults()
	d := newDevice(nullHost{}, nil, o)
	d.addQueue(nullLink{}, [6]byte{})
	pd := d.AllocPD()
	cq, err := d.CreateCQ(16)
	if err != nil {
		t.Fatal(err)
	}
	for _, depth := range []int{1, 16, 128} {
		init := QPInit{
			SendCQ: cq, RecvCQ: cq, MaxSendWR: depth, MaxRecvWR: depth,
			MaxSendSGE: 1, MaxRecvSGE: 1,
		}
		qps, machines := make([]*QP, 0, count), make([]*roce.QP, 0, count)
		empty := heap.Live()
		for range count {
			qp, err := d.CreateQP(pd, init)
			if err != nil {
				t.Fatal(err)
			}
			qps = append(qps, qp)
		}
		whole := (heap.Live() - empty) / count
		for i, qp := range qps {
			machines = append(machines, qp.core)
			qp.Close()
			qps[i] = nil
		}
		d.qps, qps = nil, nil
		machine := (heap.Live() - empty) / count
		runtime.KeepAlive(machines)
		t.Logf("%3d + %3d work requests: %5d bytes a QP, %5d of them the transport's, "+
			"%d the engine's", depth, depth, whole, machine, whole-machine)
		// The QP and its place in the table of numbers.
		if whole > 1024 {
			t.Errorf("an idle QP takes %d bytes", whole)
		}
		if own := whole - machine; own > 256 {
			t.Errorf("the engine takes %d bytes a QP", own)
		}
		d.qps = newQPTable(o.Rand)
	}
	if size := reflect.TypeFor[QP]().Size(); size > 128 {
		t.Errorf("engine.QP has %d bytes", size)
	}
}

// TestClosedQPIsForgotten leaves a closed QP in no list.
func TestClosedQPIsForgotten(t *testing.T) {
	o := Options{Clock: NewSystemClock()}
	o.setDefaults()
	d := newDevice(nullHost{}, nil, o)
	d.addQueue(nullLink{}, [6]byte{})
	cq, err := d.CreateCQ(16)
	if err != nil {
		t.Fatal(err)
	}
	qp, err := d.CreateQP(d.AllocPD(), QPInit{SendCQ: cq, RecvCQ: cq})
	if err != nil {
		t.Fatal(err)
	}
	d.raise(AsyncEvent{Type: roce.EventCommEst, QP: qp})
	d.queues[0].ringDoorbell(qp)
	d.queues[0].ready.Enqueue(&qp.entity, false)
	d.queues[0].timers.Arm(&qp.timer, 1)
	qp.Close()
	d.queues[0].drainDoorbells() // the doorbell that was rung before
	if _, armed := d.queues[0].timers.Next(); armed || !d.queues[0].ready.Empty() {
		t.Errorf("armed %t, ready %t", armed, !d.queues[0].ready.Empty())
	}
	if e, ok := d.PollEvent(); ok {
		t.Errorf("it has an event: %s", e.Type)
	}
}
