package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// command is the package of our program.
const command = "xroce/cmd/xroce"

// Program is the xroce that is given, or one that it builds in a directory from the source
// that it is called in.
func Program(ctx context.Context, dir, given string) (path string, err error) {
	if given != "" {
		return filepath.Abs(given)
	}
	path = filepath.Join(dir, "xroce")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, command)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}
