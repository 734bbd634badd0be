package engine

import (
	"os"

	"xroce/roce"
)

// ScatterToCQE is the environment variable that turns inline receive off for the
// whole process when it is 0, as MLX5_SCATTER_TO_CQE does in libmlx5. It is read when
// a device is opened.
const ScatterToCQE = "XROCE_SCATTER_TO_CQE"

// NoInlineRecv is the QPInit.MaxInlineRecv of a QP without inline receive.
const NoInlineRecv = -1

// maxInlineRecv is how many bytes may ride in a completion of this process.
func maxInlineRecv() int {
	if os.Getenv(ScatterToCQE) == "0" {
		return 0
	}
	return roce.MaxInlineRecv
}

// inlineRecv is the transport's number for what QPInit asks for.
func (d *Device) inlineRecv(asked int) int {
	switch {
	case asked == NoInlineRecv || d.maxInlineRecv == 0:
		return 0
	case asked == 0:
		return d.maxInlineRecv
	}
	return asked
}
