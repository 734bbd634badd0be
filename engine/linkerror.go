package engine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// linkError takes an error of the link. An interface that is down keeps what is queued and
// comes back; a link that can be opened again is; any other error ends the queue and all its QPs.
func (q *queue) linkError(err error) {
	switch {
	case errors.Is(err, unix.ENETDOWN):
		q.goDown()
	case q.lose(err):
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO): // of poll, and of send
		q.fail(q.device.errRemoved())
	default:
		q.fail(fmt.Errorf("engine: the link failed: %w", err))
	}
}
