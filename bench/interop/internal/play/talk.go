package play

import (
	"context"
	"fmt"
	"strings"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/lab"
)

// talk runs both programs of a case to their end. It returns what went wrong, ""
// for nothing, and what they printed.
func talk(ctx context.Context, l *lab.Lab, t *cases.Tool, c cases.Case) (wrong, output string) {
	ends, err := begin(ctx, l, t, c)
	defer func() {
		for _, e := range ends {
			if e.Done != nil {
				output += fmt.Sprintf("--- %s\n%s\n", e.Name, strings.TrimSpace(e.Output()))
			}
		}
	}()
	if err != nil {
		for _, e := range ends {
			if e.Done != nil {
				e.Kill()
			}
		}
		return err.Error(), ""
	}
	if c.Fault == cases.Refused {
		return turnedAway(ctx, ends), ""
	}
	if c.Fault.Fails() {
		return failing(ctx, ends, c.Role), ""
	}
	wrong = lab.Finish(ctx, ends)
	for i, e := range ends {
		if wrong == "" {
			wrong = t.Complaint(e.Name, e.Output(), i == client)
		}
	}
	return wrong, ""
}

// begin starts the server, and the client when the server is ready.
func begin(
	ctx context.Context, l *lab.Lab, t *cases.Tool, c cases.Case,
) (ends [2]lab.End, err error) {
	our, their := t.Lines(c)
	dump, err := dumpArgs(ctx, l, t, c)
	if err != nil {
		return ends, err
	}
	our = append(our, dump...)
	_, name := t.Names(c.Role)
	if c.Role == cases.WeServe {
		if ends[server], err = l.Ours(ctx, our); err != nil {
			return ends, err
		}
		if !ends[server].Await(ctx, saysListening) {
			return ends, fmt.Errorf("xroce ended, or did not say that it listens")
		}
		ends[client], err = lab.InVM(l.VM, name, their)
		return ends, err
	}
	if ends[server], err = lab.InVM(l.VM, name, their); err != nil {
		return ends, err
	}
	if err := awaitListener(ctx, l.VM, t, c, ends[server]); err != nil {
		return ends, err
	}
	ends[client], err = l.Ours(ctx, our)
	return ends, err
}

// saysListening reports whether xroce has said that it listens, as it does with -v.
func saysListening(output string) bool { return strings.Contains(output, "listening") }
