package mem

// A Sync makes n bytes, above 0, beginning off bytes into a region, outlast a loss of
// power, as msync with MS_SYNC does. It may take its time; the memory stays meanwhile. An
// error refuses the FLUSH. It may be called several times at once.
type Sync func(off, n int) error

// A SyncJob is the call of a Sync that is left to do of a FLUSH; the zero SyncJob is none.
// Who carries it out sees to it that the region is not let go of before it is over.
type SyncJob struct {
	sync   Sync
	off, n int
	region *cell
}

// None reports whether nothing is left to do.
func (j *SyncJob) None() bool { return j.sync == nil }

// Run carries the job out.
func (j *SyncJob) Run() error { return j.sync(j.off, j.n) }

// Of reports whether the job is about memory of a region.
func (j *SyncJob) Of(r *Region) bool { return j.region == &r.cell }

// A Syncer carries jobs out beside the queue that has them, since they may take long. Its
// methods are called with the progress lock held, and must not block.
type Syncer interface {
	// StartSync begins a job of a queue pair, and reports whether there is room for it. When
	// the job is over, the queue pair is to be told.
	StartSync(job *SyncJob, qpn uint32) bool
	// CancelSync says that nobody waits for a job any more. It need not be begun then.
	CancelSync(job *SyncJob)
}

// SetSyncer sets who carries jobs out, before there is any. Without one they are carried out
// in the call that has them, as long as it takes.
func (k *Keys) SetSyncer(s Syncer) { k.syncer = s }

// Syncer returns who carries jobs out, nil for nobody.
func (k *Keys) Syncer() Syncer { return k.syncer }

// Flush does what the FLUSH operation asks for (IBA annex A19): what was written
// to the n bytes at addr before is globally visible when it returns, or persistent when
// the job that it returns has been carried out. With whole the range is all
// of the region, and addr and n are not looked at; key, domain and rights are. Needs
// FLUSH_GLOBAL or FLUSH_PERSISTENT. A request that asks for both takes two calls.
func (k *Keys) Flush(
	a Accessor, key uint32, addr uint64, n int, whole, persistent bool,
) (job SyncJob, f Fault) {
	need := FlushGlobal
	if persistent {
		need = FlushPersistent
	}
	// Before the view: a region that is deregistered after that is waited for by who does it.
	c := k.cells.Lookup(key >> variantBits)
	if c == nil {
		return job, FaultNoKey
	}
	v, f := k.grant(a, key, need)
	if f != OK {
		return job, f
	}
	off, length := uint64(0), v.length
	if !whole {
		length = uint64(n)
		if off, f = v.within(addr, length); f != OK {
			return job, f
		}
	}
	// Payload is stored by this CPU into coherent memory, so what is left to do is
	// to order the stores: an atomic read-modify-write is a full fence on amd64,
	// and a release on arm64, where whoever sees it sees what came before.
	k.fence.Add(1)
	if !persistent || length == 0 {
		return job, OK
	}
	job = SyncJob{sync: v.sync, off: int(v.syncOff + off), n: int(length), region: v.target}
	if job.region == nil {
		job.region = c
	}
	return job, OK
}
