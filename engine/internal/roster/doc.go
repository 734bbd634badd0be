// Package roster names devices for who looks at them from outside. Several devices of a program
// may be on one interface, each with queues of its own, or on interfaces of one name in several
// network namespaces: here no two of them have the same name.
package roster
