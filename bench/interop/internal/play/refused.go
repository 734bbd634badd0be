package play

import (
	"context"
	"fmt"

	"xroce/bench/interop/internal/lab"
)

// The places of the two programs of a case.
const (
	server = 0
	client = 1
)

// turnedAway waits until a client has ended that nobody listened to, and says what
// went wrong, "" for nothing. The server is for nobody and is stopped.
func turnedAway(ctx context.Context, ends [2]lab.End) (wrong string) {
	select {
	case <-ends[client].Done:
		if ends[client].Status() == 0 {
			wrong = fmt.Sprintf("%s ended with status 0, though nobody listens", ends[client].Name)
		}
	case <-ends[server].Done:
		wrong = fmt.Sprintf("%s ended, though nobody came", ends[server].Name)
	case <-ctx.Done():
		wrong = "not done in time"
	}
	return lab.KillBoth(ends, wrong)
}
