package queue

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/clock"
	"xroce/roce/verbs"
)

// cqModel is a CQ in plain words: lists and flags, no ring.
type cqModel struct {
	room    int
	entries []verbs.Completion
	lost    bool
	events  int
	errors  int

	armed, solicitedOnly bool
	since                []clock.Time // when what the armed event waits with came
	count                int
	period               clock.Time // 0: off
}

func (m *cqModel) moderated() bool { return m.count > 1 && m.period > 0 }

func (m *cqModel) event() {
	m.events++
	m.armed, m.since = false, nil
}

// settle raises an event that need not wait.
func (m *cqModel) settle() {
	switch {
	case len(m.since) == 0:
	case !m.moderated(), len(m.since) >= m.count, len(m.entries) == m.room:
		m.event()
	}
}

func (m *cqModel) push(wc verbs.Completion, solicited bool) bool {
	if len(m.entries) == m.room {
		if !m.lost {
			m.errors++
		}
		m.lost = true
		return false
	}
	m.entries = append(m.entries, wc)
	switch {
	case !m.armed:
	case !m.solicitedOnly:
		m.since = append(m.since, wc.Time)
		m.settle()
	case solicited || wc.Status != verbs.StatusSuccess:
		m.event()
	}
	return true
}

// deadline returns when a held-back event is due.
func (m *cqModel) deadline() (clock.Time, bool) {
	if len(m.since) == 0 {
		return 0, false
	}
	if m.period > math.MaxInt64-m.since[0] {
		return math.MaxInt64, true
	}
	return m.since[0] + m.period, true
}

// TestCQModel does anything in any order to a CQ and to the model of one.
func TestCQModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(1, 9)
		var now clock.Time
		id, events, failed := uint64(0), 0, 0
		c, err := NewCQ(depth.Draw(t, "depth"), func() { events++ })
		if err != nil {
			t.Fatal(err)
		}
		c.OnError(func() { failed++ })
		// Depths are rounded, so that the model must ask.
		m := &cqModel{room: c.Depth()}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if events != m.events || failed != m.errors {
					t.Fatalf("%d events and %d errors, want %d and %d",
						events, failed, m.events, m.errors)
				}
				got, ok := c.NextDeadline()
				if want, wantOK := m.deadline(); got != want || ok != wantOK {
					t.Fatalf("deadline %d, %t, want %d, %t", got, ok, want, wantOK)
				}
			},
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 5).Draw(t, "completions") {
					now += clock.Time(rapid.IntRange(0, 3).Draw(t, "later"))
					id++
					qpn := rapid.Uint32Range(1, 2).Draw(t, "qpn")
					wc := verbs.Completion{WRID: id, QPN: qpn, Time: now}
					if rapid.IntRange(0, 3).Draw(t, "fails") == 3 {
						wc.Status = verbs.StatusWRFlushErr
					}
					solicited := rapid.Bool().Draw(t, "solicited")
					if got, want := c.Push(&wc, solicited), m.push(wc, solicited); got != want {
						t.Fatalf("pushed %t, want %t", got, want)
					}
				}
			},
			"poll": func(t *rapid.T) {
				dst := make([]verbs.Completion, rapid.IntRange(0, 4).Draw(t, "room"))
				n, err := c.Poll(dst)
				want := m.entries[:min(len(dst), len(m.entries))]
				if !slices.Equal(dst[:n], want) {
					t.Fatalf("polled %v, want %v", dst[:n], want)
				}
				wantErr := m.lost && len(m.entries) == 0
				if errors.Is(err, verbs.ErrOverrun) != wantErr {
					t.Fatalf("error %v", err)
				}
				m.entries = m.entries[n:]
			},
			"arm": func(t *rapid.T) {
				only := rapid.Bool().Draw(t, "solicited only")
				m.solicitedOnly = only && (!m.armed || m.solicitedOnly)
				m.armed = true
				if got := c.Arm(only); got != (len(m.entries) > 0) {
					t.Fatalf("pending %t with %d", got, len(m.entries))
				}
			},
			"moderate": func(t *rapid.T) {
				m.count = rapid.IntRange(0, 6).Draw(t, "count")
				m.period = rapid.SampledFrom([]clock.Time{0, 1, 7, 20, math.MaxInt64}).
					Draw(t, "period")
				c.SetModeration(uint16(m.count), m.period)
				m.settle()
			},
			"time passes": func(t *rapid.T) {
				now += clock.Time(rapid.IntRange(0, 9).Draw(t, "later"))
				c.HandleDeadline(now)
				if due, ok := m.deadline(); ok && now >= due {
					m.event()
				}
			},
			"resize": func(t *rapid.T) {
				want := depth.Draw(t, "depth")
				err := c.Resize(want)
				if errors.Is(err, verbs.ErrInvalid) != (want < len(m.entries)) {
					t.Fatalf("depth %d with %d: %v", want, len(m.entries), err)
				}
				if err == nil {
					m.room = c.Depth()
					m.settle()
				}
				if c.Depth() != m.room || err == nil && m.room < want {
					t.Fatalf("depth %d, want %d", c.Depth(), m.room)
				}
			},
			"purge": func(*rapid.T) {
				c.Purge(1)
				m.entries = slices.DeleteFunc(m.entries, func(wc verbs.Completion) bool {
					return wc.QPN == 1
				})
			},
		})
	})
}
