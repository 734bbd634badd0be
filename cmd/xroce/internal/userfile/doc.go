// Package userfile is what commands may do to files that the user names: an output leaves what was
// there alone until there is something to write, and a file that may not be used is told from a
// machine that cannot do it. Nothing in it is for concurrent use but the error.
package userfile
