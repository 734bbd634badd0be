package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"xroce/bench/interop/payload"
	"xroce/bench/softroce"
)

// The limits of a case. One on a lossy network waits for retransmissions, those of
// the connection manager among them, which come after seconds.
const (
	usualLimit = 30 * time.Second
	faultLimit = 60 * time.Second
)

// try runs a case.
func (l *lab) try(ctx context.Context, c Case) Outcome {
	o := Outcome{Case: c}
	t := toolOf(c.Tool)
	command, _ := t.names(c.Role)
	if !l.has(ctx, command, t.needs(c)) {
		o.Verdict = skipped
		o.Reason = "there is no xroce " + strings.Join(append(command[:len(command):len(command)],
			t.needs(c)), " ")
		return o
	}
	if o.Reason = t.theirLack(c); o.Reason != "" {
		o.Verdict = skipped
		return o
	}
	if err := l.setMTU(ctx, interfaceMTU(c.MTU)); err != nil {
		o.Verdict, o.Reason = failed, err.Error()
		return o
	}
	limit := usualLimit
	if c.Fault != noFault {
		limit = faultLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	w := &watch{writer: l.writer}
	if t.dumps() {
		w.payload = &payload.Payload{}
	}
	l.firsts = append(l.firsts, first{packet: l.writer.Frames() + 1, name: c.Name()})
	began := time.Now()
	l.cable.Watch(w.see)
	var wrong string
	switch c.Fault {
	case noFault:
		wrong, o.Output = l.talk(ctx, t, c)
	case loss:
		wrong, o.Output = l.lossy(ctx, t, c, w)
	case restart:
		wrong, o.Output = l.restart(ctx, t, c, w)
	}
	l.cable.Watch(nil)
	o.Seconds, o.Packets, o.Lost = time.Since(began).Seconds(), w.packets, w.lost
	o.Verdict = passed
	if wrong == "" {
		wrong = w.verdict(c)
	}
	if wrong == "" && t.dumps() {
		o.Compared, wrong = l.compare(w)
		o.Damaged = wrong != ""
	}
	if wrong == "" {
		o.Output = ""
		return o
	}
	o.Verdict, o.Reason = failed, wrong
	return o
}

// verdict says what is wrong with the packets of a case, "" for nothing.
func (w *watch) verdict(c Case) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(w.faults) > 0:
		return strings.Join(w.faults, "; ")
	case w.packets == 0:
		return "no packet was on the cable"
	case c.Fault == loss && w.lost == 0:
		return "no packet was lost"
	}
	return ""
}

// talk runs both programs of a case to their end. It returns what went wrong, ""
// for nothing, and what they printed.
func (l *lab) talk(ctx context.Context, t *tool, c Case) (wrong, output string) {
	ends, err := l.begin(ctx, t, c)
	defer func() {
		for _, e := range ends {
			if e.done != nil {
				output += fmt.Sprintf("--- %s\n%s\n", e.name, strings.TrimSpace(e.output()))
			}
		}
	}()
	if err != nil {
		for _, e := range ends {
			if e.done != nil {
				e.stop()
				<-e.done
			}
		}
		return err.Error(), ""
	}
	if c.Fault == refused {
		return turnedAway(ctx, ends), ""
	}
	wrong = finish(ctx, ends)
	for i, e := range ends {
		if wrong == "" {
			wrong = t.complaint(e.name, e.output(), i == client)
		}
	}
	return wrong, ""
}

// The places of the two programs of a case.
const (
	server = 0
	client = 1
)

// begin starts the server, and the client when the server is ready.
func (l *lab) begin(ctx context.Context, t *tool, c Case) (ends [2]end, err error) {
	our, their := t.lines(c)
	dump, err := l.dumpArgs(t)
	if err != nil {
		return ends, err
	}
	our = append(our, dump...)
	_, name := t.names(c.Role)
	if c.Role == weServe {
		var p *process
		if ends[server], p, err = l.ours(ctx, our); err != nil {
			return ends, err
		}
		if !p.await(ctx, func(s string) bool { return strings.Contains(s, "listening") }) {
			return ends, fmt.Errorf("xroce ended, or did not say that it listens")
		}
		ends[client], _, err = inVM(l.vm, name, their)
		return ends, err
	}
	var listener *softroce.Command
	if ends[server], listener, err = inVM(l.vm, name, their); err != nil {
		return ends, err
	}
	if err := awaitListener(ctx, l.vm, t, c, listener); err != nil {
		return ends, err
	}
	ends[client], _, err = l.ours(ctx, our)
	return ends, err
}

// awaitListener waits until a server in a VM listens.
func awaitListener(
	ctx context.Context, vm *softroce.VM, t *tool, c Case, listener *softroce.Command,
) error {
	test := "ss -Hltn | grep -q ':18515 '"
	if t.cm || c.CM {
		test = "rdma resource show cm_id | grep -q LISTEN"
	}
	listens, err := vm.Start("until " + test + "; do usleep 10000; done")
	if err != nil {
		return err
	}
	select {
	case <-listens.Done():
		return nil
	case <-listener.Done():
		err = fmt.Errorf("%s ended before it listened", t.name)
	case <-ctx.Done():
		err = fmt.Errorf("%s did not listen in time", t.name)
	}
	if stop := listens.Signal(syscall.SIGKILL); stop != nil {
		return stop
	}
	return err
}
