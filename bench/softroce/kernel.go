package softroce

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
)

// Offsets in a bzImage (kernel Documentation/arch/x86/boot.rst).
const (
	offSetupSects    = 0x1f1 // byte: sectors of the part for real mode, 0 for 4
	offPayload       = 0x248 // 32 bits: where the packed kernel begins, behind that part
	offPayloadLength = 0x24c // 32 bits
	bzHeaderLen      = 0x250
	sector           = 512
)

// unpackers are programs that unpack, by how their files begin. The standard
// library has neither format.
var unpackers = []struct{ magic, program string }{
	{"\xfd7zXZ\x00", "xz"},
	{"\x28\xb5\x2f\xfd", "zstd"},
}

// errNoBzImage says that a file is no kernel that can be booted.
var errNoBzImage = errors.New("not a bzImage")

// unpackKernel takes the kernel out of a bzImage: emulated, the kernel would spend
// seconds of every boot on that. One that nothing here unpacks is returned as it
// is, and boots as well.
func unpackKernel(ctx context.Context, image []byte) ([]byte, error) {
	if len(image) < bzHeaderLen {
		return nil, errNoBzImage
	}
	sects := uint64(image[offSetupSects])
	if sects == 0 {
		sects = 4
	}
	start := (sects+1)*sector + uint64(binary.LittleEndian.Uint32(image[offPayload:]))
	end := start + uint64(binary.LittleEndian.Uint32(image[offPayloadLength:]))
	if end > uint64(len(image)) || end < start+4 {
		return nil, errNoBzImage
	}
	// The last four bytes are the size of what is packed.
	kernel, err := decompress(ctx, image[start:end-4])
	if errors.Is(err, errors.ErrUnsupported) {
		return image, nil
	}
	return kernel, err
}

// decompress unpacks data by the program that fits. The error is
// errors.ErrUnsupported when there is none, or it is not installed.
func decompress(ctx context.Context, data []byte) ([]byte, error) {
	for _, u := range unpackers {
		if !bytes.HasPrefix(data, []byte(u.magic)) {
			continue
		}
		if _, err := exec.LookPath(u.program); err != nil {
			return nil, fmt.Errorf("%w: %s is not installed", errors.ErrUnsupported, u.program)
		}
		cmd := exec.CommandContext(ctx, u.program, "-dc")
		cmd.Stdin = bytes.NewReader(data)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", u.program, err, bytes.TrimSpace(stderr.Bytes()))
		}
		return out, nil
	}
	return nil, fmt.Errorf("%w: packed in an unknown way", errors.ErrUnsupported)
}
