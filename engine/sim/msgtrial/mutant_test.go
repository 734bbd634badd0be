package msgtrial

import (
	"errors"
	"strings"
	"testing"

	"xroce/roce"
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

// TestRailChecksSee is TestChecksSee for connections of two rails, of which one is cut: what the
// ends say of it to each other is spoilt, or a rail is given up that carries.
func TestRailChecksSee(t *testing.T) {
	errWrong := errors.New("wrong")
	for _, c := range []struct {
		name   string
		tamper tamper
	}{
		{"a frame is sent twice", tamper{heard: once(func(_ *world, control []byte) bool {
			m, err := msg.ParseControl(control)
			if err != nil || m.Type != msg.TypeResume || m.Len == 0 {
				return false
			}
			m.Len--
			m.Put(control)
			return true
		})}},
		{"a control message is lost", tamper{heard: once(func(_ *world, control []byte) bool {
			m, err := msg.ParseControl(control)
			if err != nil || m.Type != msg.TypeResume {
				return false
			}
			m.ID++
			m.Put(control)
			return true
		})}},
		{"a rail is lost for no reason", tamper{posted: once(func(w *world, m *message) bool {
			for r := range m.end.core.Rails() {
				r.Lose(w.clock.Now(), errWrong)
				return true
			}
			return false
		})}},
		{"a connection ends with a rail left", tamper{posted: once(
			func(w *world, m *message) bool {
				if m.end.core.Alive() {
					m.end.core.Abort(w.clock.Now(), errWrong)
				}
				return true
			})}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			config := twoRails()
			if c.tamper.heard == nil {
				config.Chaos = nil
			}
			r := runConfig(t.Context(), &config, &Options{}, c.tamper)
			if r.Violation == nil || r.Violation.Invariant != Excuse {
				t.Fatalf("the violation is %v, want %v", r.Violation, Excuse)
			}
		})
	}
	config := twoRails()
	r := runConfig(t.Context(), &config, &Options{}, tamper{})
	if r.Violation != nil || r.Stats.RailsLost == 0 || r.Stats.Failed != 0 {
		t.Errorf("without a change: %d rails lost, %d messages failed, %v", r.Stats.RailsLost,
			r.Stats.Failed, r)
	}
}

// twoRails is a plain run of two rails, each of which is cut once.
func twoRails() Config {
	config := derive(7, true)
	config.Phase = 10 * roce.Millisecond
	for i := range config.Nodes {
		m := &config.Nodes[i].Machine
		m.Rails, m.Keepalive, m.Grace = 2, roce.Millisecond, roce.Second
	}
	config.Pairs[0].Timeout = 5
	config.Pairs[0].Messages = [2]int{40, 40}
	for i := range 2 {
		config.Chaos = append(config.Chaos, Chaos{
			At: roce.Time(1+5*i) * roce.Millisecond, For: 2 * roce.Millisecond, What: Cut, B: i,
		})
	}
	return config
}
