package softroce

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// An Image is a guest that can be booted: two files in the cache.
type Image struct {
	Kernel string // file: the kernel
	Root   string // file: what is in the packages, as an archive for the kernel
	Name   string // the kernel's package, which says its version
}

// A recipe is what an image is made by. A change of it makes a new image.
type recipe struct {
	version  string // of the code that builds
	suite    string // of Debian, that the kernel is from; "" for what apt is set up for
	packages []string
	programs []string // patterns of files, with all that they need
	applets  []string // commands that busybox is
	modules  []string // with all that they depend on
}

// A Kernel says which kernel an image has.
type Kernel int

// The kernels.
const (
	// KernelHere is the newest one that apt has on this machine.
	KernelHere Kernel = iota
	// KernelBackports is the newest one of Debian's backports. Its drivers of the cards that
	// QEMU emulates have more of AF_XDP: virtio_net has zero-copy since Linux 6.13, igb since
	// 6.14. The image has those drivers, ethtool, and bpftool.
	KernelBackports
)

// recipe is what an image with the kernel is made by.
func (k Kernel) recipe() recipe {
	r := soft
	if k == KernelBackports {
		r.suite = backports
		r.packages = append(r.packages[:len(r.packages):len(r.packages)], "ethtool", "bpftool")
		r.programs = append(r.programs[:len(r.programs):len(r.programs)], "usr/sbin/ethtool",
			"usr/sbin/bpftool")
		r.modules = append([]string{"vmxnet3", "e1000e", "igb"}, r.modules...)
		// Its checksums are functions of the kernel itself.
		r.modules = slices.DeleteFunc(r.modules, func(name string) bool {
			return name == "crc32_generic"
		})
	}
	return r
}

// soft is what a Soft-RoCE host needs.
var soft = recipe{
	version: "3",
	packages: []string{
		"busybox-static", "iproute2", "ibverbs-providers", "ibverbs-utils", "rdmacm-utils",
		"perftest",
	},
	programs: []string{
		"usr/bin/busybox", "usr/bin/ip", "usr/bin/rdma", "usr/bin/ss",
		"usr/bin/ibv_*", "usr/bin/rping", "usr/bin/ucmatose", "usr/bin/udaddy",
		"usr/bin/rdma_server", "usr/bin/rdma_client", "usr/bin/ib_*_bw", "usr/bin/ib_*_lat",
		"usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav*.so", "etc/libibverbs.d/rxe.driver",
		"usr/lib/x86_64-linux-gnu/libgcc_s.so.1", // rping needs it, for pthread_exit
	},
	applets: []string{
		"awk", "cat", "cut", "dmesg", "echo", "grep", "insmod", "kill", "ls", "mkdir", "mount",
		"poweroff", "ps", "sed", "seq", "sh", "sleep", "sync", "tail", "timeout", "true", "usleep",
	},
	modules: []string{
		"virtio_pci", "virtio_net", "virtio_console", "virtio_rng", "crc32_generic", "rdma_rxe",
		"ib_uverbs", "rdma_ucm",
	},
}

// CacheDir is where images are kept: $XROCE_CACHE, else the directory xroce of
// the user's cache directory ($XDG_CACHE_HOME or ~/.cache).
func CacheDir() (string, error) {
	if dir := os.Getenv("XROCE_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("softroce: where to keep the VM? %w; set XROCE_CACHE", err)
	}
	return filepath.Join(dir, "xroce"), nil
}

// Build returns the image in a cache directory, which it makes when it is not
// there yet: it downloads some 140 MB of Debian packages, and keeps 80 MB. Log is
// told what apt-get says. Several processes may build at once; the first one to
// end leaves its image.
func Build(ctx context.Context, cacheDir string, k Kernel, log io.Writer) (Image, error) {
	recipe := k.recipe()
	sum := sha256.Sum256(fmt.Appendf(nil, "%v", recipe))
	dir := filepath.Join(cacheDir, fmt.Sprintf("softroce-%x", sum[:6]))
	if image, err := load(dir); err == nil {
		return image, nil
	}
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return Image{}, fmt.Errorf("softroce: %w", err)
	}
	work, err := os.MkdirTemp(cacheDir, "building-")
	if err != nil {
		return Image{}, fmt.Errorf("softroce: %w", err)
	}
	defer os.RemoveAll(work)
	done := filepath.Join(work, "image")
	if err := os.Mkdir(done, 0o755); err != nil {
		return Image{}, fmt.Errorf("softroce: %w", err)
	}
	if err := build(ctx, recipe, work, done, log); err != nil {
		return Image{}, fmt.Errorf("softroce: build the guest: %w", err)
	}
	if err := os.Rename(done, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return Image{}, fmt.Errorf("softroce: %w", err)
	}
	return load(dir) // what another process made meanwhile is as good
}

// The files of an image.
const (
	kernelFile = "kernel"
	rootFile   = "root"
	nameFile   = "name"
)

func load(dir string) (Image, error) {
	name, err := os.ReadFile(filepath.Join(dir, nameFile))
	if err != nil {
		return Image{}, err
	}
	return Image{
		Kernel: filepath.Join(dir, kernelFile), Root: filepath.Join(dir, rootFile),
		Name: strings.TrimSpace(string(name)),
	}, nil
}

// build makes an image in the directory done, with packages in the directory
// work.
func build(ctx context.Context, r recipe, work, done string, log io.Writer) error {
	from := &fetcher{dir: filepath.Join(work, "kernel"), log: log, suite: r.suite}
	kernel, err := from.kernel(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "softroce: downloading %s and %s\n", kernel, strings.Join(r.packages, ", "))
	programsDir := filepath.Join(work, "programs")
	if err := (&fetcher{dir: programsDir, log: log}).install(ctx, r.packages...); err != nil {
		return err
	}
	root, err := r.root(ctx, programsDir)
	if err != nil {
		return err
	}
	files, err := kernelFiles(ctx, from, kernel)
	if err != nil {
		return err
	}
	if err := r.addModules(ctx, root, files); err != nil {
		return err
	}
	images := append(files.match("boot/vmlinuz*"), files.match("usr/lib/modules/*/vmlinuz")...)
	if len(images) != 1 {
		return fmt.Errorf("%s has %d kernels", kernel, len(images))
	}
	vmlinux, err := unpackKernel(ctx, files[images[0]].data)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := root.archive(&archive); err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		kernelFile: vmlinux, rootFile: archive.Bytes(), nameFile: []byte(kernel + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(done, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// kernelFiles downloads a kernel's packages and takes out of them what boots and what may be
// loaded.
func kernelFiles(ctx context.Context, from *fetcher, kernel string) (tree, error) {
	names, err := from.parts(ctx, kernel)
	if err != nil {
		return nil, err
	}
	if err := from.download(ctx, names...); err != nil {
		return nil, err
	}
	debs, err := filepath.Glob(filepath.Join(from.dir, "*.deb"))
	if err != nil || len(debs) != len(names) {
		return nil, fmt.Errorf("%d packages for %q, %w", len(debs), names, err)
	}
	files := tree{}
	for _, deb := range debs {
		err = unpack(ctx, files, deb, func(name string) bool {
			base := path.Base(name)
			return strings.HasPrefix(base, "vmlinuz") || strings.Contains(name, ".ko") ||
				base == "modules.builtin"
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// root takes what the guest runs out of the packages in a directory.
func (r recipe) root(ctx context.Context, dir string) (tree, error) {
	debs, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return nil, err
	}
	all := tree{}
	for _, deb := range debs {
		err := unpack(ctx, all, deb, func(name string) bool {
			return !strings.HasPrefix(name, "usr/share/") && !strings.HasPrefix(name, "var/")
		})
		if err != nil {
			return nil, err
		}
	}
	root, err := all.closure(r.programs)
	if err != nil {
		return nil, err
	}
	for _, name := range r.applets {
		root["usr/bin/"+name] = node{link: "busybox"}
	}
	return root, nil
}

// addModules puts the kernel modules into the root, and the list to load them by.
func (r recipe) addModules(ctx context.Context, root, kernel tree) error {
	set := newModuleSet(kernel)
	for _, name := range r.modules {
		if err := set.add(ctx, name); err != nil {
			return err
		}
	}
	for name, data := range set.loaded {
		root["usr/lib/modules/"+name+".ko"] = node{mode: 0o644, data: data}
	}
	list := strings.Join(set.order, "\n") + "\n"
	root["etc/modules"] = node{mode: 0o644, data: []byte(list)}
	return nil
}

// archive writes the tree with the directories that it needs.
func (t tree) archive(w io.Writer) error {
	c := &cpioWriter{w: w}
	dirs := map[string]bool{}
	var parents func(name string)
	parents = func(name string) {
		if dir := path.Dir(name); dir != "." && !dirs[dir] {
			dirs[dir] = true
			parents(dir)
			c.dir(dir)
		}
	}
	for _, dir := range []string{"dev/x", "proc/x", "sys/x", "run/x", "tmp/x", "usr/lib64/x"} {
		parents(dir)
	}
	for _, dir := range merged {
		dir = strings.TrimSuffix(dir, "/")
		parents("usr/" + dir + "/x")
		c.link(dir, "usr/"+dir)
	}
	// Before /dev is there the kernel opens the console of the first process.
	c.device("dev/console", 5, 1)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		parents(name)
		if n := t[name]; n.link != "" {
			c.link(name, n.link)
		} else {
			c.file(name, n.mode, n.data)
		}
	}
	return c.close()
}
