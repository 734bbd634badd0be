// Package tidy holds the house rules of the whole tree as tests: which package
// may import which, where unsafe code may live, what the pure floor must not
// do, how a file has to look, and that the files, packages and tests that the
// documents name exist. It builds no command; `go test ./cmd/tidy`
// is its only face.
//
// The rules read what git knows about (tracked files and new ones that are not
// ignored), under every build tag at once, so a rule cannot be escaped with a
// file name suffix. Exceptions are lists in the rule's own file, each entry
// with its reason. Every rule is also run on a snippet that must break it:
// a rule that has become blind fails the build like a broken rule does.
package tidy
