package transfer

import "golang.org/x/sys/unix"

// rename gives the file its final name. One that is there stays, unless it may be replaced. A file
// system that has no rename which replaces nothing (renameat2(2)) may have hard links.
func (p *partial) rename() error {
	if p.store.Overwrite {
		return p.renameVacant()
	}
	dir := int(p.dir.Fd())
	err := p.store.renameNew(dir, p.temp, p.base)
	if err == unix.EINVAL || err == unix.ENOSYS {
		switch err = p.store.link(dir, p.temp, p.base); err {
		case nil:
			err = unix.Unlinkat(dir, p.temp, 0)
		case unix.EPERM, unix.EOPNOTSUPP, unix.ENOSYS: // vboxsf has neither
			p.store.naming.Lock() // at least no file of ours comes between
			defer p.store.naming.Unlock()
			return p.renameVacant()
		}
	}
	if err == unix.EEXIST {
		return p.store.errExists(p.path)
	}
	return p.fault("rename", err)
}

// renameVacant is a rename to where nothing is that may not be replaced. What others put there
// between the look and the rename is replaced all the same: where nothing better is to be had, the
// alternative is that no file gets its name.
func (p *partial) renameVacant() error {
	if err := p.store.vacant(p.place); err != nil {
		return err
	}
	dir := int(p.dir.Fd())
	return p.fault("rename", unix.Renameat(dir, p.temp, dir, p.base))
}

// link gives a file of a directory another name in it, that nothing has: else it fails with EEXIST.
func link(dir int, from, to string) error { return unix.Linkat(dir, from, dir, to, 0) }
