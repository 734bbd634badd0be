package main

import (
	"context"
	"fmt"
)

// elsewhere is a server on a port to which no tool goes. With it a host has a
// connection manager that answers, and nobody who listens.
var elsewhere = tool{
	name: "rping", cm: true, command: []string{"rping"},
	args: func(e ending) []string { return append(rping().args(e), "-p", "7175") },
}

// serveElsewhere are the tools of both ends when nobody listens where the client
// goes.
func serveElsewhere(t *tool, r Role) (ours, theirs *tool) {
	if r == weServe {
		return &elsewhere, t
	}
	return t, &elsewhere
}

// turnedAway waits until a client has ended that nobody listened to, and says what
// went wrong, "" for nothing. The server is for nobody and is stopped.
func turnedAway(ctx context.Context, ends [2]end) (wrong string) {
	select {
	case <-ends[client].done:
		if ends[client].status() == 0 {
			wrong = fmt.Sprintf("%s ended with status 0, though nobody listens", ends[client].name)
		}
	case <-ends[server].done:
		wrong = fmt.Sprintf("%s ended, though nobody came", ends[server].name)
	case <-ctx.Done():
		wrong = "not done in time"
	}
	for _, e := range ends {
		e.stop()
		<-e.done
	}
	return wrong
}
