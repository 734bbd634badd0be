package conversation

import (
	"errors"
	"fmt"
	"math"

	"xroce/roce/mem"
)

// A window is a memory window under a name.
type window struct {
	name string
	mw   *mem.Window
}

// window finds a window by name, nil when there is none.
func (p *player) window(name string) *window {
	for _, w := range p.windows {
		if w.name == name {
			return w
		}
	}
	return nil
}

// parseWindow reads: window NAME 1|2 [other_domain].
func parseWindow(a *args) action {
	name := a.word("the name")
	if !isName(name) {
		a.fail(a.pos, "%q is not a name", name)
	}
	typ, err := parseNumber(a.word("the type"))
	if err != nil || typ > math.MaxUint8 {
		a.fail(a.pos, "the type is 1 or 2")
	}
	foreign := a.flag("other_domain")
	return func(p *player) error {
		if r, _ := p.region(name); r != nil || p.window(name) != nil {
			return fmt.Errorf("there is a region or window %s already", name)
		}
		domain := p.domain
		if foreign {
			domain = p.other
		}
		w, err := p.keys.AllocWindow(domain, mem.WindowType(typ))
		if err == nil {
			p.windows = append(p.windows, &window{name, w})
		}
		return err
	}
}

// parseDealloc reads: dealloc NAME.
func parseDealloc(a *args) action {
	name := a.word("the name of the window")
	return func(p *player) error {
		w := p.window(name)
		if w == nil {
			return fmt.Errorf("no window %s", name)
		}
		return p.keys.DeallocWindow(w.mw)
	}
}

// A binding is what a window is bound to, as the file has it.
type binding struct {
	window, next, region key
	at                   address
	n                    uint64
	access               uint64
}

// readBinding reads: mw=KEY [new=KEY] mr=KEY at=ADDRESS len=N rights=RIGHTS.
func readBinding(a *args) binding {
	b := binding{
		window: read(a, "mw", parseKey, key{}), region: read(a, "mr", parseKey, key{}),
		at: read(a, "at", parseAddress, address{}), n: a.number("len", 0, math.MaxUint64),
		access: read(a, "rights", parseRights, 0),
	}
	// By default one bit of the key is turned over: the key before is NAME^1 then.
	b.next = b.window
	b.next.n ^= 1
	b.next = read(a, "new", parseKey, b.next)
	return b
}

// bind looks the names up.
func (p *player) bind(b *binding) (m mem.Bind, err error) {
	var errs [4]error
	m.Window, errs[0] = p.key(b.window)
	m.NewKey, errs[1] = p.key(b.next)
	m.LKey, errs[2] = p.key(b.region)
	m.Addr, errs[3] = p.address(b.at)
	m.Length, m.Access = b.n, mem.Access(b.access)
	return m, errors.Join(errs[:]...)
}

// parseBind reads: bind mw=KEY mr=KEY at=ADDRESS len=N rights=RIGHTS, and binds the
// window for another queue pair of the domain, at once.
func parseBind(a *args) action {
	b := readBinding(a)
	return func(p *player) error {
		m, err := p.bind(&b)
		if err != nil {
			return err
		}
		by := mem.Accessor{Domain: p.domain, Party: p.party}
		if f := p.keys.Bind(by, m); f != mem.OK {
			return errors.New(f.String())
		}
		return nil
	}
}

// parseRereg reads: rereg NAME [length=N] [addr=N] [domain=own|other]
// [rights=RIGHTS] [error="TEXT"].
func parseRereg(a *args) action {
	name := a.word("the name of the region")
	var what mem.Change
	for word, change := range map[string]mem.Change{
		"length": mem.ChangeTranslation, "domain": mem.ChangePD, "rights": mem.ChangeAccess,
	} {
		if a.has(word) {
			what |= change
		}
	}
	n, addr := a.number("length", 0, maxData), a.number("addr", 0, math.MaxUint64)
	foreign := read(a, "domain", oneOf(map[string]bool{"own": false, "other": true}), false)
	access := read(a, "rights", parseRights, 0)
	fails := a.text("error")
	return func(p *player) error {
		r, err := p.region(name)
		if err != nil {
			return err
		}
		bytes := make([]byte, n)
		pattern(bytes, 1<<16+uint64(len(p.regions)+1), 0)
		m := mem.Memory{Bytes: bytes, Addr: addr}
		if addr == 0 {
			m.Addr = r.mr.Addr()
		}
		domain := p.domain
		if foreign {
			domain = p.other
		}
		err = p.keys.Reregister(r.mr, what, m, domain, mem.Access(access))
		if err == nil && what&mem.ChangeTranslation != 0 {
			// The memory before is watched to the end.
			before := *r
			before.name = "before " + name
			p.regions = append(p.regions, &before)
			r.bytes, r.shadow = bytes, append([]byte(nil), bytes...)
		}
		return expectError(err, fails)
	}
}
