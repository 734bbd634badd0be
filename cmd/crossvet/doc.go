// Command crossvet is go vet for systems that this is not. Like go vet it takes GOOS and GOARCH
// from the environment, and looks at tests, too. But it type-checks whatever is imported from
// source, where go vet has all of it compiled first, which is most of the work:
//
//	GOOS=darwin GOARCH=arm64 go run ./cmd/crossvet ./roce/...
//
// The exit status is 0 when nothing was found, 3 when something was, and 1 when a package has
// errors.
package main
