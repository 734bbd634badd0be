package xsk

import (
	"errors"
	"fmt"
	"slices"
)

// checkQueues tells what is wrong with the queues of a Group.
func checkQueues(queues []int) error {
	if len(queues) == 0 {
		return errors.New("xsk: a group has no queue")
	}
	for i, q := range queues {
		if slices.Contains(queues[:i], q) {
			return fmt.Errorf("xsk: queue %d is in a group twice", q)
		}
		if q < 0 || q > maxQueue {
			return fmt.Errorf("xsk: queue %d, want 0 to %d", q, maxQueue)
		}
	}
	return nil
}

// add adds the counters of another socket.
func (s *Stats) add(o *Stats) {
	s.RxPackets += o.RxPackets
	s.RxBytes += o.RxBytes
	s.TxPackets += o.TxPackets
	s.TxBytes += o.TxBytes
	s.RxDropped += o.RxDropped
	s.RxInvalidDescs += o.RxInvalidDescs
	s.TxInvalidDescs += o.TxInvalidDescs
	s.RxRingFull += o.RxRingFull
	s.RxFillRingEmptyDescs += o.RxFillRingEmptyDescs
	s.TxRingEmptyDescs += o.TxRingEmptyDescs
	s.TxOutstanding += o.TxOutstanding
	s.TxKicks += o.TxKicks
	s.TxAgain += o.TxAgain
	s.TxBusy += o.TxBusy
	s.TxNoBufs += o.TxNoBufs
	s.TxNetDown += o.TxNetDown
	s.RxKicks += o.RxKicks
	s.RxOversize += o.RxOversize
	s.KernelFaults += o.KernelFaults
}
