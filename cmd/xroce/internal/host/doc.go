// Package host reads from the machine what decides whether and how xroce can
// run on it, and judges it: the kernel, the user, and the interfaces.
//
// It reads /proc, /sys and rtnetlink, opens a socket or loads a program to see whether it
// may, and changes nothing. What it returns is values.
package host
