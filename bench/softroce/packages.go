package softroce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A fetcher downloads Debian packages to a directory and installs none of them.
type fetcher struct {
	dir     string    // for the packages and for what apt-get needs
	log     io.Writer // what apt-get says
	suite   string    // of Debian, "" for what apt is set up for
	updated bool      // the lists are fresh
}

// backports is the suite of Debian with the newest kernels that a release is given.
const backports = "trixie-backports"

// source is a line of sources.list for a suite. The keys are those of Debian's archive, which
// each of its releases has.
const source = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " +
	"http://deb.debian.org/debian %s main\n"

// options are those of apt that have it look at the suite alone, with lists of its own. The
// machine's are as they were.
func (f *fetcher) options() ([]string, error) {
	if f.suite == "" {
		return nil, nil
	}
	list, lists := filepath.Join(f.dir, "sources.list"), filepath.Join(f.dir, "lists")
	if err := os.MkdirAll(filepath.Join(lists, "partial"), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(list, fmt.Appendf(nil, source, f.suite), 0o644); err != nil {
		return nil, err
	}
	return []string{
		"-o", "Dir::Etc::sourcelist=" + list, "-o", "Dir::Etc::sourceparts=-",
		"-o", "Dir::State::lists=" + lists,
		"-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=",
	}, nil
}

// names lists the packages whose names begin with a prefix.
func (f *fetcher) names(ctx context.Context, prefix string) ([]string, error) {
	options, err := f.options()
	if err != nil {
		return nil, err
	}
	args := append(options, "pkgnames", prefix)
	out, err := exec.CommandContext(ctx, "apt-cache", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("apt-cache pkgnames: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// kernelName matches the kernels of Debian for this architecture that are
// neither for clouds nor real-time ones.
var kernelName = regexp.MustCompile(`^linux-image-\d+\.[0-9.]+(-\d+|\+deb\d+)-amd64$`)

// kernel names the newest kernel package.
func (f *fetcher) kernel(ctx context.Context) (string, error) {
	names, err := f.names(ctx, imagePrefix)
	if err != nil {
		return "", err
	}
	name := newestKernel(names)
	switch {
	case name != "":
		return name, nil
	case f.updated:
		return "", errors.New("apt knows no kernel package: linux-image-VERSION-amd64")
	}
	if err := f.update(ctx); err != nil {
		return "", err
	}
	return f.kernel(ctx)
}

// imagePrefix begins the names of kernel packages.
const imagePrefix = "linux-image-"

// parts names the packages that a kernel consists of.
func (f *fetcher) parts(ctx context.Context, kernel string) ([]string, error) {
	names, err := f.names(ctx, "linux-")
	return partsOf(kernel, names), err
}

// partsOf is parts of all packages that there are. Since Linux 7 the modules are in one of their
// own, and so is what boots.
func partsOf(kernel string, names []string) []string {
	parts := []string{kernel}
	for _, prefix := range []string{"linux-binary-", "linux-modules-", "linux-base-"} {
		part := prefix + strings.TrimPrefix(kernel, imagePrefix)
		if slices.Contains(names, part) {
			parts = append(parts, part)
		}
	}
	return parts
}

// newestKernel returns the name with the highest version, "" when none is that
// of a kernel.
func newestKernel(names []string) string {
	best := ""
	for _, name := range names {
		if kernelName.MatchString(name) &&
			(best == "" || slices.Compare(numbers(best), numbers(name)) < 0) {
			best = name
		}
	}
	return best
}

// numbers returns the numbers in a version, which compare as versions do.
func numbers(version string) []int {
	var list []int
	for _, digits := range regexp.MustCompile(`\d+`).FindAllString(version, -1) {
		n, err := strconv.Atoi(digits)
		if err != nil {
			n = 0 // larger than any version that there is
		}
		list = append(list, n)
	}
	return list
}

// update renews the lists of packages.
func (f *fetcher) update(ctx context.Context) error {
	f.updated = true
	return f.apt(ctx, "update")
}

// install downloads packages and all that they depend on. To apt-get nothing is
// installed yet, so it takes no dependency for fulfilled.
func (f *fetcher) install(ctx context.Context, names ...string) error {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	status := filepath.Join(f.dir, "status")
	if err := os.WriteFile(status, nil, 0o644); err != nil {
		return err
	}
	return f.try(ctx, append([]string{
		"--download-only", "--no-install-recommends", "-y",
		"-o", "Dir::State::status=" + status,
		"-o", "Dir::Cache::archives=" + f.dir,
		"-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=",
		"install",
	}, names...))
}

// download downloads packages without their dependencies.
func (f *fetcher) download(ctx context.Context, names ...string) error {
	return f.try(ctx, append([]string{"download"}, names...))
}

// try runs apt-get, and once again with fresh lists: old ones name packages
// that the server has no more.
func (f *fetcher) try(ctx context.Context, args []string) error {
	err := f.apt(ctx, args...)
	if err == nil || f.updated || ctx.Err() != nil {
		return err
	}
	if err := f.update(ctx); err != nil {
		return err
	}
	return f.apt(ctx, args...)
}

func (f *fetcher) apt(ctx context.Context, args ...string) error {
	if err := os.MkdirAll(filepath.Join(f.dir, "partial"), 0o755); err != nil {
		return err
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	args = append(append(options,
		"-q", "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=root"), args...)
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Dir = f.dir
	var out bytes.Buffer
	cmd.Stdout = io.MultiWriter(&out, f.log)
	cmd.Stderr = cmd.Stdout
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err,
			lastLines(out.String()))
	}
	return nil
}

// lastLines returns the end of a text, which is where programs say what failed.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// unpack reads the files of a package, of which it keeps those that want
// accepts, into a tree.
func unpack(ctx context.Context, t tree, deb string, want func(name string) bool) error {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("dpkg-deb: %w", err)
	}
	err = t.add(out, want)
	if err == nil {
		_, err = io.Copy(io.Discard, out) // what pads the archive
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", deb, err), cmd.Process.Kill(), cmd.Wait())
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: dpkg-deb: %w", deb, err)
	}
	return nil
}
