// Package recordtest is for tests: what two Soft-RoCE hosts said to each other, from the
// captures of package wire. It reads those files and nothing else.
package recordtest
