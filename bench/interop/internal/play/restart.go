package play

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/lab"
	"xroce/bench/softroce"
	"xroce/roce/wire"
)

// remake removes rxe0 and makes it again. The tool that uses it is killed: as
// long as one does, the kernel waits with the removal.
const remake = "kill -9 $(ps | awk '/[p]ingpong|[i]b_/ { print $1 }') 2>/dev/null; " +
	"/usr/bin/rdma link delete rxe0 && /usr/bin/rdma link add rxe0 type rxe netdev eth0"

// restartAfter is how many packets of a message of ours pass before the device
// goes: there are more.
const restartAfter = 50

// restart runs a case in which rxe0 is removed and made again in the middle of a
// message of ours. Our end must say that its peer does not answer any more,
// within the retries of the connection, and must then talk to the new device as
// if nothing had been.
func restart(
	ctx context.Context, l *lab.Lab, t *cases.Tool, c cases.Case, w *watch,
) (wrong, output string) {
	middle := make(chan struct{})
	var once sync.Once
	n := 0
	w.mu.Lock()
	w.each = func(from softroce.End, p *wire.Packet) bool {
		if from == softroce.A && p.PayloadLen() > 0 {
			n++
		}
		if n < restartAfter {
			return false
		}
		once.Do(func() { close(middle) })
		return true // until the device is back
	}
	w.mu.Unlock()
	long := c
	long.Flags = append([]string{"-n", "100000"}, c.Flags...)
	ends, err := begin(ctx, l, t, long)
	if err != nil {
		return err.Error(), ""
	}
	us := ends[server]
	if c.Role == cases.TheyServe {
		us = ends[client]
	}
	// What is left of it would meet the next case.
	leave := func(wrong, output string) (string, string) {
		for _, e := range ends {
			e.Kill()
		}
		return wrong, output
	}
	select {
	case <-middle:
	case <-us.Done:
		return leave("xroce ended before the device was removed", us.Output())
	case <-ctx.Done():
		return leave("no message of ours was under way in time", us.Output())
	}
	text, status, err := l.VM.Run(ctx, remake)
	w.mu.Lock()
	w.each = nil
	w.mu.Unlock()
	if err != nil || status != 0 {
		return leave(fmt.Sprintf("rxe0 was not made anew: status %d, %v", status, err), text)
	}
	select {
	case <-us.Done:
	case <-ctx.Done():
		return leave("xroce did not notice that its peer is gone in time", us.Output())
	}
	if status := us.Status(); status != 1 || !strings.Contains(us.Output(), "does not answer") {
		return fmt.Sprintf("xroce ended with status %d", status), us.Output()
	}
	return talk(ctx, l, t, c)
}
