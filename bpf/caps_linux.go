package bpf

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// missingCaps lists which capabilities the kernel asks for and the calling
// thread does not have. CAP_SYS_ADMIN stands in for both (kernel
// kernel/bpf/syscall.c v6.18 bpf_token_capable).
func missingCaps() ([]string, error) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return nil, fmt.Errorf("bpf: capget: %w", err)
	}
	has := func(c int) bool { return data[c/32].Effective&(1<<(c%32)) != 0 }

	var missing []string
	if has(unix.CAP_SYS_ADMIN) {
		return missing, nil
	}
	if !has(unix.CAP_BPF) {
		missing = append(missing, "CAP_BPF")
	}
	if !has(unix.CAP_NET_ADMIN) {
		missing = append(missing, "CAP_NET_ADMIN")
	}
	return missing, nil
}

// permissionHint explains EPERM.
func permissionHint() string {
	missing, err := missingCaps()
	switch {
	case err != nil:
		return "needs CAP_BPF and CAP_NET_ADMIN"
	case len(missing) == 1:
		return missing[0] + " is missing"
	case len(missing) > 1:
		return strings.Join(missing, " and ") + " are missing"
	}
	return "the capabilities are there but do not count (user namespace) " +
		"or the system forbids it (lockdown, seccomp, security module)"
}
