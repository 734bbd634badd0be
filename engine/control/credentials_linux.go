package control

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// credentials are who is at the other end of a socket, as the kernel knows: who
// connected, or who listens (SO_PEERCRED, unix(7)).
type credentials struct {
	uid int
	pid int // 0 when it is in no PID namespace below ours
}

// credentialsOf asks who is at the other end.
func credentialsOf(conn *net.UnixConn) (credentials, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return credentials{}, err
	}
	var cred *unix.Ucred
	controlErr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(controlErr, err); err != nil {
		return credentials{}, err
	}
	return credentials{uid: int(cred.Uid), pid: int(cred.Pid)}, nil
}
