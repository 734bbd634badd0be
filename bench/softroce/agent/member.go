package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// runAsMember becomes the program that args name, which has inherited a socket that is a member of
// a group: "member INTERFACE GROUP PROGRAM ARGUMENT...". It returns only to say why not.
func runAsMember(args []string) error {
	if len(args) < 4 || args[0] != "member" {
		return errors.New("usage: agent [member INTERFACE GROUP PROGRAM [ARGUMENT...]]")
	}
	group, err := netip.ParseAddr(args[2])
	if err != nil {
		return err
	}
	if !group.Is4() || !group.IsMulticast() {
		return fmt.Errorf("%s is no multicast group of IPv4", group)
	}
	card, err := net.InterfaceByName(args[1])
	if err != nil {
		return fmt.Errorf("%s: %w", args[1], err)
	}
	program, err := exec.LookPath(args[3])
	if err != nil {
		return err
	}
	// It is not closed on exec: the membership lives as long as the program.
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	to := unix.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(card.Index)}
	if err := unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &to); err != nil {
		return fmt.Errorf("become a member of %s at %s: %w", group, args[1], err)
	}
	return unix.Exec(program, args[3:], os.Environ())
}
