package live

// As in package bpf, the object files are committed.
//
//go:generate go tool bpf2go -cc clang -strip llvm-strip -tags linux -no-global-types live live.c -- -O2 -mcpu=v3 -Wall -Wextra -Werror
