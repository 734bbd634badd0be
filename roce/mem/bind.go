package mem

// bindAccess are the flags that a window can be bound with.
const bindAccess = RemoteWrite | RemoteRead | RemoteAtomic | FlushGlobal | FlushPersistent |
	ZeroBased

// A Bind is what a window is bound to (struct ibv_mw_bind_info).
type Bind struct {
	Window uint32 // the window's present key
	NewKey uint32 // its next key, which may differ in the low 8 bits
	LKey   uint32 // of the region
	Addr   uint64 // of the first byte in the region
	Length uint64 // in bytes; 0 unbinds a window of type 1
	Access Access // REMOTE_*, FLUSH_* and ZERO_BASED
}

// Bind binds a window to part of a region (BIND_MW and ibv_bind_mw) for the queue
// pair a.Party of the domain a.Domain. Rights and bounds are then those of the
// window, whatever the region grants to peers; the region needs MW_BIND, and
// LOCAL_WRITE where the window lets peers write. A window of type 2 must not be
// bound yet. The checks are, in order (IBA 10.6.7.2, o10-37): the window's key, its
// state, its domain, the region's key, its state, its domain, rights, range. With a
// fault everything stays as it is. To unbind a window of type 1 is to bind it to
// nothing: LKey and Addr are not looked at then.
func (k *Keys) Bind(a Accessor, b Bind) Fault {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.find(b.Window)
	if w == nil || !w.window() || (b.NewKey^b.Window)>>variantBits != 0 {
		return FaultNoKey
	}
	old := w.view.Load()
	switch {
	case w.kind == kindWindow1 && b.Access&ZeroBased != 0:
		return FaultRights
	case w.kind == kindWindow2 && old.valid:
		return FaultInvalid
	case old.home != a.Domain:
		return FaultDomain
	case w.kind == kindWindow2 && b.Length == 0:
		return FaultOutOfRange
	}
	v := &view{key: b.NewKey, valid: true, domain: old.home, home: old.home}
	if w.kind == kindWindow2 {
		v.party = a.Party
		if k.anyDomain {
			v.domain = nil
		}
	}
	if b.Length > 0 {
		if f := k.aim(a, b, v); f != OK {
			return f
		}
	}
	k.release(old)
	k.replace(w, v)
	return OK
}

// aim fills in the part of a region that a window is bound to.
func (k *Keys) aim(a Accessor, b Bind, v *view) Fault {
	r := k.find(b.LKey)
	if r == nil || r.window() {
		return FaultNoKey
	}
	parent := r.view.Load()
	switch {
	case !parent.valid:
		return FaultInvalid
	case parent.domain != a.Domain:
		return FaultDomain
	case parent.access&MWBind == 0 || parent.access&ZeroBased != 0,
		b.Access&^bindAccess != 0,
		b.Access&(RemoteWrite|RemoteAtomic) != 0 && parent.access&LocalWrite == 0,
		b.Access&FlushPersistent != 0 && parent.sync == nil:
		return FaultRights
	}
	off, f := parent.within(b.Addr, b.Length)
	if f != OK {
		return f
	}
	parent.part(off, b.Length, v)
	v.access, v.base, v.target = b.Access, b.Addr, r
	if b.Access&ZeroBased != 0 {
		v.base = 0
	}
	r.users++
	r.shared = true
	return OK
}
