package roce

import (
	"fmt"
	"reflect"
)

// Fields returns all fields of a QP by name, for tests of what a QP keeps. Of pointers,
// functions and interfaces it tells whether they are set, and to which type, and of
// slices how long they are. Queue entries are counted from the head of the queue.
func (q *QP) Fields() map[string]string {
	all := map[string]string{}
	addFields(all, "qp", reflect.ValueOf(q).Elem())
	head := q.req.sq.Head()
	all["qp.req.requestState.cur"] = fmt.Sprint(q.req.cur - head)
	all["qp.req.requestState.new"] = fmt.Sprint(q.req.new - head)
	all["qp.req.sq"] = fmt.Sprint(q.req.sq.Posted(), " posted")
	all["qp.rsp.rq"] = fmt.Sprint(q.rsp.rq.Posted(), " posted")
	return all
}

// Unasked reports whether the requester has stopped though the newest packet that it
// sent counted on another to ask for an answer. It may while it waits for the peer's
// receive, for a page, or for the rate limit.
func (q *QP) Unasked() bool {
	r := &q.req
	if r.rnrWait || r.stalled || r.paced || !r.State().Sends() {
		return false
	}
	_, is := r.unasked()
	return is
}

// addFields adds a field, or the fields of a struct other than those that are one value.
func addFields(all map[string]string, name string, v reflect.Value) {
	whole := name == "qp.req.sq" || name == "qp.rsp.rq" ||
		name == "qp.transport.attr" || name == "qp.transport.path" ||
		name == "qp.transport.congestion.cnp"
	switch {
	case v.Kind() == reflect.Struct && !whole:
		for i := range v.NumField() {
			addFields(all, name+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case name == "qp.transport.congestion" && !v.IsNil():
		addFields(all, name, v.Elem())
	case v.Kind() == reflect.Pointer || v.Kind() == reflect.Func:
		all[name] = fmt.Sprint("nil: ", v.IsNil())
	case v.Kind() == reflect.Interface:
		all[name] = "nil"
		if !v.IsNil() {
			all[name] = fmt.Sprint(v.Elem().Type())
		}
	case v.Kind() == reflect.Slice:
		all[name] = fmt.Sprint(v.Len(), " of nil: ", v.IsNil())
	default:
		all[name] = fmt.Sprint(v)
	}
}
