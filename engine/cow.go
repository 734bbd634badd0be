package engine

import (
	"maps"
	"sync/atomic"
)

// A cowMap is a map that queues read without a lock. Who holds the device's life lock
// replaces it by a changed copy. The zero value is empty.
type cowMap[K comparable, V any] struct{ current atomic.Pointer[map[K]V] }

// load returns the map as it is. It must not be changed.
func (m *cowMap[K, V]) load() map[K]V {
	if p := m.current.Load(); p != nil {
		return *p
	}
	return nil
}

// set sets the value of a key. The caller holds the life lock.
func (m *cowMap[K, V]) set(k K, v V) {
	next := maps.Clone(m.load())
	if next == nil {
		next = map[K]V{}
	}
	next[k] = v
	m.current.Store(&next)
}

// remove takes a key out. The caller holds the life lock.
func (m *cowMap[K, V]) remove(k K) {
	next := maps.Clone(m.load())
	delete(next, k)
	m.current.Store(&next)
}
