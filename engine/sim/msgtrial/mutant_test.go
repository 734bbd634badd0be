package msgtrial

import (
	"errors"
	"strings"
	"testing"

	"xroce/roce/msg"
)

// once makes a tamper act at the first chance that it takes.
func once[T any](do func(w *world, x T) bool) func(*world, T) {
	done := false
	return func(w *world, x T) {
		if !done {
			done = do(w, x)
		}
	}
}

// hasMessage reports whether a receive came back with bytes of a message.
func hasMessage(r *receive) bool { return r.op.Err == nil && r.op.Length > 8 && !r.back }

// TestChecksSee spoils a run in each way that a check is for, and wants the seed to fail by it.
func TestChecksSee(t *testing.T) {
	errWrong := errors.New("wrong")
	for _, c := range []struct {
		name   string
		want   Invariant
		tamper tamper
	}{
		{"a byte is wrong", Bytes, tamper{received: once(func(_ *world, r *receive) bool {
			if hasMessage(r) {
				r.memory[guard+r.op.Length/2] ^= 1
			}
			return hasMessage(r)
		})}},
		{"a byte behind is touched", Bytes, tamper{received: once(func(_ *world, r *receive) bool {
			r.memory[guard+r.size] ^= 1
			return r.op.Err == nil
		})}},
		{"a byte before is touched", Bytes, tamper{received: once(func(_ *world, r *receive) bool {
			r.memory[0] ^= 1
			return r.op.Err == nil
		})}},
		{"the length is wrong", Bytes, tamper{received: once(func(_ *world, r *receive) bool {
			if hasMessage(r) {
				r.op.Length--
			}
			return hasMessage(r)
		})}},
		{"the whole length is wrong", Bytes, tamper{received: once(func(_ *world, r *receive) bool {
			r.op.Whole++
			return r.op.Err == nil
		})}},
		{"what was sent is changed", Bytes, tamper{sent: once(func(_ *world, m *message) bool {
			if m.size > 0 {
				m.data[0] ^= 1
			}
			return m.size > 0
		})}},
		{"a receive comes back twice", Once, tamper{received: once(func(_ *world, r *receive) bool {
			r.back = true
			return true
		})}},
		{"a message comes back twice", Once, tamper{sent: once(func(_ *world, m *message) bool {
			m.out = false
			return true
		})}},
		{"a message comes twice", Once, tamper{received: once(func(w *world, r *receive) bool {
			if r.op.Err != nil {
				return false
			}
			e := r.op.Source.User.(*end)
			e.peer.find(r).to = &receive{node: r.node}
			return true
		})}},
		{"nobody wanted it", Matching, tamper{received: once(func(w *world, r *receive) bool {
			r.op.Tag, r.op.Mask = ^uint64(0), 1<<60
			return r.op.Err == nil
		})}},
		{"a later message came first", Matching, tamper{received: once(
			func(w *world, r *receive) bool {
				if r.op.Err != nil {
					return false
				}
				r.op.Source.User.(*end).peer.find(r).before = r.index
				return true
			})}},
		{"a free receive was passed over", Matching, tamper{received: once(
			func(_ *world, r *receive) bool {
				r.mustHave = 0
				return r.op.Err == nil
			})}},
		{"not matched", Level, tamper{sent: once(func(_ *world, m *message) bool {
			if m.op.Err != nil || m.op.Choice.Protocol > msg.Provisioned || m.size > 100 {
				return false
			}
			m.op.Level, m.to = msg.Matched, nil
			return true
		})}},
		{"more was sent than there was", Level, tamper{sent: once(func(_ *world, m *message) bool {
			m.op.Sent = m.size + 1
			return m.op.Err == nil
		})}},
		{"a message fails alone", Excuse, tamper{sent: once(func(_ *world, m *message) bool {
			m.op.Err = errWrong
			return true
		})}},
		{"a receive fails alone", Excuse, tamper{received: once(func(_ *world, r *receive) bool {
			r.op.Err, r.op.Source = errWrong, nil
			return true
		})}},
		{"a connection ends for no reason", Excuse, tamper{posted: once(
			func(w *world, m *message) bool {
				m.end.core.Abort(w.clock.Now(), errWrong)
				return true
			})}},
		{"a message is lost", Liveness, tamper{received: once(func(w *world, r *receive) bool {
			r.op.Err, r.cancelled = msg.ErrCancelled, true
			return true
		})}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			config := derive(7, true)
			config.Pairs[0].Sizes = []int{100, 3000}
			r := runConfig(t.Context(), &config, &Options{}, c.tamper)
			if r.Violation == nil || r.Violation.Invariant != c.want {
				t.Fatalf("the violation is %v, want %v", r.Violation, c.want)
			}
			for _, want := range []string{
				"seed 7: ", string(c.want), "node 0 ", "replay: xroce sim --messages --seeds 7 ",
			} {
				if !strings.Contains(r.String(), want) {
					t.Errorf("no %q in\n%s", want, r)
				}
			}
		})
	}
}
