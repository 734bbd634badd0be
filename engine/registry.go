package engine

import "sync"

// A resourceKind is a kind of object that the registry numbers. QPs and SRQs have
// numbers of their own, and tables.
type resourceKind uint8

const (
	resourcePD resourceKind = iota
	resourceMR
	resourceCQ
	resourceMW
	resourceKinds
)

// A registry has every object of a device that no table has, for Resources. It is
// met when objects are made and destroyed, never in between. The zero value is
// ready.
type registry struct {
	mu    sync.Mutex
	kinds [resourceKinds]struct {
		last    uint32
		objects map[uint32]any
	}
}

// add counts an object in and sets its number, above 0, before anybody sees it.
func (r *registry) add(k resourceKind, object any, number *uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.kinds[k]
	if t.objects == nil {
		t.objects = map[uint32]any{}
	}
	for t.last++; t.last == 0 || t.objects[t.last] != nil; {
		t.last++
	}
	*number = t.last
	t.objects[t.last] = object
}

// remove counts an object out. Twice is as good as once.
func (r *registry) remove(k resourceKind, object any, number uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if objects := r.kinds[k].objects; objects[number] == object {
		delete(objects, number)
	}
}

// objectsOf returns the objects of a kind, at most limit, and how many there are.
func objectsOf[T any](r *registry, k resourceKind, limit int) (list []T, total int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	objects := r.kinds[k].objects
	list = make([]T, 0, min(limit, len(objects)))
	for _, o := range objects {
		if len(list) == limit {
			break
		}
		list = append(list, o.(T))
	}
	return list, len(objects)
}
