package mem

// A Region is a registered memory region (MR), or a key that stands for pieces of
// such. It is safe for concurrent use; what the bytes hold is the business of
// those who access them.
type Region struct {
	cell
	slices *slicesSpace // what it was made of, nil when it never had any
}

// now returns what the region is at present.
func (r *Region) now() *view { return r.view.Load() }

// Domain returns the protection domain.
func (r *Region) Domain() *Domain { return r.now().domain }

// LKey returns the key for work requests of the owner. Validate changes it.
func (r *Region) LKey() uint32 { return r.now().key }

// RKey returns the key for the peer. As with rxe, it equals the LKey; what a
// peer may do is decided by the access rights.
func (r *Region) RKey() uint32 { return r.LKey() }

// Valid reports whether the key may be used: not after it was invalidated.
func (r *Region) Valid() bool { return r.now().valid }

// Addr returns the address of the first byte, by which requests name it.
func (r *Region) Addr() uint64 { return r.now().base }

// Len returns the length in bytes.
func (r *Region) Len() uint64 { return r.now().length }

// Access returns the flags that the region was registered with, without those
// that verbs calls optional and this stack does not know.
func (r *Region) Access() Access { return r.now().access &^ localRead }

// Bytes returns the registered memory itself, nil when it is not one slice.
func (r *Region) Bytes() []byte { return r.now().bytes }
