package bpf

// The object files and their bindings are committed, so that building needs
// only Go. The same sources and the same clang give the same bytes anywhere.
//
//go:generate go tool bpf2go -cc clang -strip llvm-strip -tags linux -no-global-types xdp xdp.c -- -O2 -mcpu=v3 -Wall -Wextra -Werror
