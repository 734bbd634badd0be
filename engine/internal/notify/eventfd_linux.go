package notify

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// eventfd makes a descriptor that counts events down one by one, from so many.
func eventfd(waiting int) (fd int, err error) {
	fd, err = unix.Eventfd(uint(waiting), unix.EFD_CLOEXEC|unix.EFD_NONBLOCK|unix.EFD_SEMAPHORE)
	if err != nil {
		return -1, fmt.Errorf("notify: eventfd: %w", err)
	}
	return fd, nil
}
