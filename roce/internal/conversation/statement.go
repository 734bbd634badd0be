package conversation

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"xroce/roce"
)

// statements are all statements by their first word. Each reads its words when
// the file is parsed and returns what to do when it is played.
var statements map[string]func(*args) action

func init() {
	statements = map[string]func(*args) action{
		"qp":         parseQP,
		"region":     parseRegion,
		"deregister": parseDeregister,
		"rereg":      parseRereg,
		"window":     parseWindow,
		"bind":       parseBind,
		"dealloc":    parseDealloc,
		"post":       needsQP(parsePost),
		">":          needsQP(parseSent),
		"<":          needsQP(parseReceived),
		"+":          needsQP(parseAdvance),
		"deadline":   needsQP(parseDeadline),
		"cqe":        needsQP(parseCQE),
		"memory":     parseMemory,
		"store":      parseStore,
		"modify":     needsQP(parseModify),
		"attr":       needsQP(parseAttr),
		"state":      needsQP(parseStateIs),
		"counter":    needsQP(parseCounter),
		"dropped":    needsQP(parseDropped),
		"event":      needsQP(parseEvent),
		"arm":        needsQP(parseArm),
		"notified":   needsQP(parseNotified),
		"overrun":    needsQP(parseOverrun),
		"srq":        parseSRQ,
		"limit":      parseLimit,
		"valid":      parseValid,
	}
}

// needsQP refuses to play a statement before there is a QP.
func needsQP(parse func(*args) action) func(*args) action {
	return func(a *args) action {
		act := parse(a)
		return func(p *player) error {
			if p.qp == nil {
				return errNoQP
			}
			return act(p)
		}
	}
}

// expectError compares an error with the text that it has to contain.
func expectError(err error, text string) error {
	switch {
	case text == "":
		return err
	case err == nil:
		return errors.New("it worked")
	case !strings.Contains(err.Error(), text):
		return fmt.Errorf("another error: %w", err)
	}
	return nil
}

// parseAdvance reads: +TIME.
func parseAdvance(a *args) action {
	d, err := parseTime(a.word("a time"))
	if err != nil {
		a.fail(a.pos, "%v", err)
	}
	return func(p *player) error {
		if p.now+d < p.now {
			return errors.New("that is longer than time lasts")
		}
		return p.advance(d)
	}
}

// parseDeadline reads: deadline TIME, counted from now, or deadline none.
func parseDeadline(a *args) action {
	none := a.flag("none")
	var want roce.Time
	if !none {
		var err error
		if want, err = parseTime(a.word("a time or none")); err != nil {
			a.fail(a.pos, "%v", err)
		}
	}
	return func(p *player) error {
		at, ok := p.qp.NextDeadline()
		switch {
		case !ok && !none:
			return errors.New("got: deadline none")
		case ok && (none || at-p.now != want):
			return fmt.Errorf("got: deadline %s", formatTime(max(0, at-p.now)))
		}
		return nil
	}
}

// parseCQE reads: cqe wr=ID STATUS [OPERATION] [len=N] [imm=N] [inv=KEY]
// [grh src_qpn=N], cqe wr=ID STATUS [vendor=N], or cqe none.
func parseCQE(a *args) action {
	if a.flag("none") {
		return func(p *player) error {
			for _, cq := range []*roce.CQ{p.sq, p.rq} {
				if wc, ok, err := poll(cq); err != nil || ok {
					return fmt.Errorf("got: %s", formatCQE(&wc, err))
				}
			}
			return nil
		}
	}
	want := roce.Completion{WRID: a.number("wr", 0, math.MaxUint64)}
	var hasStatus, hasOp bool
	want.Status, _, hasStatus = choose(a, statuses)
	if want.Status == roce.StatusSuccess {
		want.Opcode, _, hasOp = choose(a, completed)
		want.ByteLen = uint32(a.number("len", 0, math.MaxUint32))
		if a.has("imm") {
			want.Flags |= roce.WCWithImm
			want.Imm = uint32(a.number("imm", 0, math.MaxUint32))
		}
		if a.has("inv") {
			want.Flags |= roce.WCWithInv
		}
		if a.flag("grh") {
			want.Flags |= roce.WCGRH
		}
		want.SrcQP = uint32(a.number("src_qpn", 0, math.MaxUint32))
	} else {
		want.VendorErr = roce.VendorErr(a.number("vendor", 0, math.MaxUint8))
	}
	inv := read(a, "inv", parseKey, key{})
	if !hasStatus || want.Status == roce.StatusSuccess && !hasOp {
		a.fail(a.pos, "want: wr=ID STATUS, with success the operation too")
	}
	return func(p *player) error {
		want := want
		var err error
		if want.InvalidatedKey, err = p.key(inv); err != nil {
			return err
		}
		return p.expectCQE(want)
	}
}

func (p *player) expectCQE(want roce.Completion) error {
	isRecv, ok := p.posted[want.WRID]
	if !ok {
		return fmt.Errorf("no work request %d is posted", want.WRID)
	}
	cq := p.sq
	if isRecv {
		cq = p.rq
	}
	got, ok, err := poll(cq)
	if err != nil || !ok {
		return fmt.Errorf("got: cqe none; %s (%v)", p.qp.Snapshot(), err)
	}
	want.QPN, want.Time = p.qp.Num(), got.Time
	if want.Status != roce.StatusSuccess {
		want.Opcode, want.ByteLen = got.Opcode, got.ByteLen // not valid
	}
	if got != want {
		return fmt.Errorf("got: %s", formatCQE(&got, nil))
	}
	delete(p.posted, want.WRID)
	return nil
}

// parseMemory reads: memory SPAN = DATA. The change is announced with it.
func parseMemory(a *args) action { return parseBytes(a, (*player).expectMemory) }

// parseStore reads: store SPAN = DATA, and does what an application may do.
func parseStore(a *args) action {
	return parseBytes(a, func(_ *player, r *region, off int, b []byte) error {
		copy(r.bytes[off:], b)
		return nil
	})
}

func parseBytes(
	a *args, do func(p *player, r *region, off int, b []byte) error,
) action {
	sp, err := parseSpan(a.word("REGION:OFFSET:LENGTH"))
	if err != nil {
		a.fail(a.pos, "%v", err)
	}
	if !a.flag("=") {
		a.fail(a.pos, "= is missing")
	}
	d, err := parseData(a.word("the bytes"))
	if err != nil {
		a.fail(a.pos, "%v", err)
	}
	if d.n != sp.n {
		a.fail(a.pos, "%d bytes on the left, %d on the right", sp.n, d.n)
	}
	return func(p *player) error {
		r, err := p.region(sp.region)
		if err != nil {
			return err
		}
		want, err := p.content(d)
		if err != nil {
			return err
		}
		shadow, err := r.part(sp)
		if err != nil {
			return err
		}
		if err := do(p, r, sp.off, want); err != nil {
			return err
		}
		copy(shadow, want)
		return nil
	}
}

func (p *player) expectMemory(r *region, off int, want []byte) error {
	return r.compare(off, want)
}

// parseModify reads: modify ATTRIBUTE=VALUE... [error="TEXT"].
func parseModify(a *args) action {
	list := readAttrs(a)
	fails := a.text("error")
	return func(p *player) error {
		attr, mask, before := p.qp.Attr(), roce.AttrMask(0), p.qp.Attr()
		if attr.PathMTU == 0 { // still in RESET: what is not named is ordinary
			attr = ordinary()
		}
		for _, v := range list {
			if mask |= v.bit; v.set != nil {
				v.set(&attr, v.v)
			}
		}
		err := p.qp.Modify(p.now, &attr, mask)
		if after := p.qp.Attr(); err != nil && after != before {
			return fmt.Errorf("failed (%w) and changed attributes: %+v", err, after)
		}
		if err == nil && mask&roce.AttrState != 0 {
			p.state = attr.State
			if attr.State == roce.StateReset {
				clear(p.posted)
			}
		}
		return expectError(err, fails)
	}
}

// parseAttr reads: attr ATTRIBUTE=VALUE...
func parseAttr(a *args) action {
	list := readAttrs(a)
	for _, v := range list {
		if v.get == nil {
			a.fail(v.pos, "%s cannot be asked for", v.name)
		}
	}
	return func(p *player) error {
		attr := p.qp.Attr()
		for _, v := range list {
			if got := v.get(&attr); got != v.v {
				return fmt.Errorf("got: attr %s=%s", v.name, v.format(got))
			}
		}
		return nil
	}
}

// parseStateIs reads: state STATE.
func parseStateIs(a *args) action {
	want, _, ok := choose(a, states)
	if !ok {
		a.fail(a.pos, "a state is missing")
	}
	return func(p *player) error {
		if got := p.qp.State(); got != want {
			return fmt.Errorf("got: state %s; %s", got, p.qp.Snapshot())
		}
		p.state = want
		return nil
	}
}

// parseCounter reads: counter NAME VALUE.
func parseCounter(a *args) action {
	id, _, ok := choose(a, counters)
	if !ok {
		a.fail(a.pos, "the name of a counter is missing")
	}
	want, err := parseNumber(a.word("a value"))
	if err != nil {
		a.fail(a.pos, "%v", err)
	}
	return func(p *player) error {
		if got := p.count[id]; got != want {
			return fmt.Errorf("got: counter %s %d", id, got)
		}
		p.drops[id] = want
		return nil
	}
}

// parseDropped reads: dropped STEP, the check that refused the last packet that
// was refused.
func parseDropped(a *args) action {
	want := a.word("a step")
	return func(p *player) error {
		if got := p.qp.Snapshot().LastDrop.String(); got != want {
			return fmt.Errorf("got: dropped %s", got)
		}
		return nil
	}
}

// parseEvent reads: event NAME, the next asynchronous event.
func parseEvent(a *args) action {
	want, _, ok := choose(a, events)
	if !ok {
		a.fail(a.pos, "the name of an event is missing")
	}
	return func(p *player) error {
		if len(p.events) == 0 {
			return errors.New("got no event")
		}
		got := p.events[0]
		if p.events = p.events[1:]; got != want {
			return fmt.Errorf("got: event %s", nameOf(events, got))
		}
		return nil
	}
}

// whichCQ reads the name of a CQ: 0 for sq, 1 for rq.
func whichCQ(a *args) int {
	i, _, ok := choose(a, map[string]int{"sq": 0, "rq": 1})
	if !ok {
		a.fail(a.pos, "sq or rq is missing")
	}
	return i
}

// parseArm reads: arm sq|rq [solicited].
func parseArm(a *args) action {
	i, solicited := whichCQ(a), a.flag("solicited")
	return func(p *player) error {
		[2]*roce.CQ{p.sq, p.rq}[i].Arm(solicited)
		return nil
	}
}

// parseNotified reads: notified sq|rq TIMES, counted from the beginning.
func parseNotified(a *args) action {
	i := whichCQ(a)
	want, err := parseNumber(a.word("how often"))
	if err != nil {
		a.fail(a.pos, "%v", err)
	}
	return func(p *player) error {
		if got := p.notes[i]; uint64(got) != want {
			return fmt.Errorf("got: %d", got)
		}
		return nil
	}
}

// parseOverrun reads: overrun sq|rq, a CQ that is empty and has lost something.
func parseOverrun(a *args) action {
	i := whichCQ(a)
	return func(p *player) error {
		wc, ok, err := poll([2]*roce.CQ{p.sq, p.rq}[i])
		switch {
		case ok:
			return fmt.Errorf("got: %s", formatCQE(&wc, nil))
		case !errors.Is(err, roce.ErrOverrun):
			return errors.New("got no overrun")
		}
		p.overrun[i] = true
		return nil
	}
}
