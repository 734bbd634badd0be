//go:build !linux

package control

import (
	"errors"
	"net"
)

// credentials are who is at the other end of a socket.
type credentials struct{ uid, pid int }

// credentialsOf does not know.
func credentialsOf(*net.UnixConn) (credentials, error) {
	return credentials{}, errors.ErrUnsupported
}
