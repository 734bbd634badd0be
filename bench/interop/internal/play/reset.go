package play

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/lab"
	"xroce/bench/interop/payload"
	"xroce/bench/softroce"
	"xroce/roce/wire"
)

// A middle is the part of a transfer in which a card is reset: it begins when a quarter of the
// data has passed. Where the reset is not over when three quarters have, the cable loses data
// until it is, so that the transfer does not end before.
type middle struct {
	begun chan struct{}
	n     int  // packets of data
	over  bool // the reset is
}

// middleOf has a watch find the middle of a transfer of so many packets of data.
func (w *watch) middleOf(packets int) *middle {
	m := &middle{begun: make(chan struct{})}
	var once sync.Once
	w.mu.Lock()
	defer w.mu.Unlock()
	w.each = func(_ softroce.End, p *wire.Packet) (lose bool) {
		if p.PayloadLen() == 0 {
			return false
		}
		m.n++
		if m.n > packets/4 {
			once.Do(func() { close(m.begun) })
		}
		return !m.over && m.n > packets*3/4
	}
	return m
}

// end notes that the reset is over.
func (m *middle) end(w *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m.over = true
}

// reset runs a case in which the card of xroce is told something else in the middle of a transfer
// in both directions. Both ends must finish as if nothing had been, xroce must have counted what
// happened, and then a program that begins anew must find the card in order.
func reset(
	ctx context.Context, l *lab.Lab, t *cases.Tool, o *cases.Outcome, w *watch,
) (wrong string) {
	before, middle, after := cases.ResetScript(o.Case)
	if text, err := l.Script(ctx, before); err != nil || len(cases.Refusals(text)) > 0 {
		return fmt.Sprintf("before the transfer: %v %s", err, text)
	}
	wrong = resetIn(ctx, l, t, o, w, middle)
	w.mu.Lock()
	w.each = nil
	w.mu.Unlock()
	if text, err := l.Script(ctx, after); err != nil || len(cases.Refusals(text)) > 0 {
		wrong += fmt.Sprintf("; after the transfer: %v %s", err, text)
	}
	if wrong != "" {
		return wrong
	}
	if o.Compared, wrong = compare(ctx, l, w); wrong != "" {
		o.Damaged = true
		return wrong
	}
	w.mu.Lock()
	w.payload = &payload.Payload{}
	w.mu.Unlock()
	again := o.Case
	again.Fault = cases.NoFault
	if wrong, o.Output = talk(ctx, l, t, again); wrong != "" {
		return "afterwards: " + wrong
	}
	return ""
}

// resetIn runs the transfer with a script in its middle.
func resetIn(
	ctx context.Context, l *lab.Lab, t *cases.Tool, o *cases.Outcome, w *watch, script string,
) (wrong string) {
	m := w.middleOf(2 * cases.DataPackets(o.Case)) // in both directions
	ends, err := begin(ctx, l, t, o.Case)
	defer func() {
		for _, e := range ends {
			if e.Done != nil {
				e.Kill()
				o.Output += fmt.Sprintf("--- %s\n%s\n", e.Name, strings.TrimSpace(e.Output()))
			}
		}
	}()
	if err != nil {
		return err.Error()
	}
	select {
	case <-m.begun:
	case <-ends[server].Done:
		return "xroce ended before the card was reset"
	case <-ctx.Done():
		return "no transfer was under way in time"
	}
	text, err := l.Script(ctx, script)
	m.end(w)
	if err != nil {
		return fmt.Sprintf("the reset: %v", err)
	}
	o.Refused = cases.Refusals(text)
	if wrong := lab.Finish(ctx, ends); wrong != "" {
		return wrong
	}
	if wrong := t.Complaint(ends[client].Name, ends[client].Output(), true); wrong != "" {
		return wrong
	}
	if o.Counters, err = countersIn(ends[server].Output()); err != nil {
		return err.Error()
	}
	return cases.ResetFault(o.Case, o.Refused, o.Counters)
}

// countersIn reads the counters that xroce perf --json has printed, among lines of its log.
func countersIn(output string) (map[string]uint64, error) {
	_, document, ok := strings.Cut("\n"+output, "\n{\n")
	if !ok {
		return nil, fmt.Errorf("xroce printed no JSON")
	}
	var d struct {
		RoCE struct {
			Counters map[string]uint64 `json:"counters"`
		} `json:"roce"`
	}
	if err := json.NewDecoder(strings.NewReader("{" + document)).Decode(&d); err != nil {
		return nil, fmt.Errorf("what xroce printed as JSON: %w", err)
	}
	return d.RoCE.Counters, nil
}
