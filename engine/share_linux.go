package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine/host"
	"xroce/roce/wire"
	"xroce/xsk"
)

// rebindTimeout is how long one try to open a link again waits for a queue, which the kernel
// gives back some time after its socket was closed. Whoever closes the device waits for it.
const rebindTimeout = 250 * time.Millisecond

// A share is the receive queues that one driver has, and how the link on them is opened: at
// first, and again when it failed or the interface has changed.
type share struct {
	host    interface{ Port() host.Port }
	program steersQueues
	number  int // of the driver
	log     *slog.Logger
	// link opens a link on queues, and deal says which ones each driver is to have by now.
	link func(port host.Port, queues []int, bind time.Duration) (steeredLink, error)
	deal func(port host.Port) ([][]int, error)

	mu     sync.Mutex
	queues []int // those of the link, or of the last one
}

// steersQueues is the XDP program, as what opens links needs it.
type steersQueues interface {
	Register(queue, fd int) error // sends what comes to a queue to a socket
	Taken(queue int) bool         // reports whether it has one
}

// open opens the link, and has the program send it what comes to its queues: nothing before.
func (s *share) open(queues []int, bind time.Duration) (xsk.Link, error) {
	port := s.host.Port()
	if err := notTaken(port, s.program, queues); err != nil {
		return nil, err
	}
	link, err := s.link(port, queues, bind)
	if err != nil {
		return nil, fmt.Errorf("engine: %s: %w", port.Name, err)
	}
	if err := link.Sockets(s.program.Register); err != nil {
		return nil, errors.Join(err, link.Close())
	}
	s.mu.Lock()
	was := s.queues
	s.queues = queues
	s.mu.Unlock()
	if gone := missing(was, queues); len(gone) > 0 {
		s.log.Warn("receive queues are gone, and the device goes on with those that are left",
			"device", port.Name, "gone", numbers(gone), "left", numbers(queues))
	}
	return link, nil
}

// reopenable is the link with the ways to open it again.
func (s *share) reopenable(link xsk.Link) xsk.Link {
	return reopenable{Link: link, again: s.again, changed: s.changed}
}

// again opens the link again, on the queues that there are by now.
func (s *share) again() (xsk.Link, error) {
	queues, err := s.now()
	if err != nil {
		return nil, err
	}
	return s.open(queues, rebindTimeout)
}

// now is which queues the driver is to have.
func (s *share) now() ([]int, error) {
	shares, err := s.deal(s.host.Port())
	if err != nil {
		return nil, err
	}
	if len(shares[s.number]) == 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, fmt.Errorf("engine: %s: %w: %s, which 'ethtool -L %s combined %d' brings back",
			s.host.Port().Name, errNoQueue, numbers(s.queues), s.host.Port().Name,
			s.queues[len(s.queues)-1]+1)
	}
	return shares[s.number], nil
}

// changed says why the link is to be opened again although it works, nil when it is not: there
// are other queues, or the interface takes packets that are longer than its frames.
func (s *share) changed(info xsk.Info) error {
	port := s.host.Port()
	if now, was := wire.ActiveMTU(port.MTU), wire.ActiveMTU(linkMTU(info)); now > was {
		return fmt.Errorf("the MTU is %d now, and was %d when the socket was made", port.MTU,
			info.MTU)
	}
	queues, err := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || slices.Equal(queues, s.queues) {
		return nil // what has failed is told by the link
	}
	return fmt.Errorf("there are receive queues %s now, and there were %s", numbers(queues),
		numbers(s.queues))
}

// notTaken refuses queues that another device of this process has. Else binding to them would
// wait for their release.
func notTaken(port host.Port, program steersQueues, queues []int) error {
	for _, q := range queues {
		if program.Taken(q) {
			return fmt.Errorf("engine: queue %d of %s is that of another device "+
				"of this process: %w", q, port.Name, unix.EBUSY)
		}
	}
	return nil
}
