// Package host reads from the machine what decides whether and how xroce can
// run on it, and judges it: the kernel, the user, and the interfaces.
package host
