package softroce

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// archived makes a tree of an archive like those in packages.
func archived(t *testing.T, headers []tar.Header, data map[string][]byte) tree {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range headers {
		h.Size = int64(len(data[h.Name]))
		h.Mode = 0o755
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data[h.Name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	all := tree{}
	err := all.add(&buf, func(name string) bool { return !strings.HasPrefix(name, "usr/share/") })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTree(t *testing.T) {
	all := archived(t, []tar.Header{
		{Name: "./bin/", Typeflag: tar.TypeDir},
		{Name: "./bin/tool", Typeflag: tar.TypeReg},
		{Name: "./usr/bin/other", Typeflag: tar.TypeSymlink, Linkname: "/bin/tool"},
		{Name: "./usr/bin/third", Typeflag: tar.TypeLink, Linkname: "./bin/tool"},
		{Name: "./usr/share/doc", Typeflag: tar.TypeReg},
		{Name: "./lib/x86_64/libx.so.1", Typeflag: tar.TypeSymlink, Linkname: "libx.so.1.2"},
		{Name: "./usr/lib/x86_64/libx.so.1.2", Typeflag: tar.TypeReg},
	}, map[string][]byte{"./bin/tool": []byte("#!"), "./usr/share/doc": []byte("x")})
	root, err := all.closure([]string{"usr/bin/o*", "usr/lib/*/libx.so.1"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range root {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{
		"usr/bin/other", "usr/bin/tool", "usr/lib/x86_64/libx.so.1", "usr/lib/x86_64/libx.so.1.2",
	}
	if !slices.Equal(names, want) {
		t.Errorf("closure %v, not %v", names, want)
	}
	if string(all["usr/bin/third"].data) != "#!" {
		t.Error("a hard link has not its file's data")
	}
	if _, err := all.closure([]string{"usr/bin/absent*"}); err == nil {
		t.Error("a pattern without files is no error")
	}
}

// entry is what the kernel would unpack.
type entry struct {
	name string
	mode uint32
	data string
}

// unarchive reads an archive as the kernel does.
func unarchive(t *testing.T, b []byte) (list []entry) {
	t.Helper()
	for len(b) > 0 {
		field := func(i int) uint32 {
			v, err := hexField(b[6+8*i:][:8])
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		if string(b[:6]) != "070701" {
			t.Fatalf("magic %q", b[:6])
		}
		mode, size, nameLen := field(1), field(6), field(11)
		name := string(b[110 : 110+nameLen-1])
		at := (110 + nameLen + 3) &^ 3
		data := string(b[at : at+size])
		b = b[(at+size+3)&^3:]
		if name == trailer {
			return list
		}
		list = append(list, entry{name, mode, data})
	}
	t.Fatal("no trailer")
	return nil
}

func hexField(b []byte) (uint32, error) {
	var v uint32
	for _, c := range b {
		i := strings.IndexByte("0123456789ABCDEF", c)
		if i < 0 {
			return 0, errors.New("not hexadecimal: " + string(b))
		}
		v = v<<4 | uint32(i)
	}
	return v, nil
}

func TestArchive(t *testing.T) {
	root := tree{
		"usr/bin/a":   {mode: 0o755, data: []byte("abcde")},
		"usr/bin/b":   {link: "a"},
		"etc/x/y/zzz": {mode: 0o644},
	}
	var buf bytes.Buffer
	if err := root.archive(&buf); err != nil {
		t.Fatal(err)
	}
	got := map[string]entry{}
	made := map[string]bool{}
	for _, e := range unarchive(t, buf.Bytes()) {
		if i := strings.LastIndexByte(e.name, '/'); i > 0 && !made[e.name[:i]] {
			t.Errorf("%s comes before its directory", e.name)
		}
		if e.mode&0o170000 == modeDir {
			made[e.name] = true
		}
		got[e.name] = e
	}
	for _, want := range []entry{
		{"usr/bin/a", modeRegular | 0o755, "abcde"},
		{"usr/bin/b", modeLink | 0o777, "a"},
		{"etc/x/y/zzz", modeRegular | 0o644, ""},
		{"bin", modeLink | 0o777, "usr/bin"},
		{"dev/console", modeChar | 0o600, ""},
		{"proc", modeDir | 0o755, ""},
	} {
		if got[want.name] != want {
			t.Errorf("%+v, not %+v", got[want.name], want)
		}
	}
}

func TestCpioWriterKeepsTheFirstError(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(errors.ErrUnsupported)
	c := &cpioWriter{w: w}
	c.dir("a")
	c.file("a/b", 0o644, nil)
	if err := c.close(); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

func TestNewestKernel(t *testing.T) {
	got := newestKernel([]string{
		"linux-image-amd64", "linux-image-6.12.9+deb12-amd64", "linux-image-6.1.0-47-amd64",
		"linux-image-6.12.100+deb12-amd64", "linux-image-6.12.200+deb12-cloud-amd64",
		"linux-image-6.12.200+deb12-rt-amd64", "linux-image-6.12.200+deb12-amd64-dbg",
		"linux-image-6.12.200+deb12-amd64-unsigned", "linux-image-6.12-amd64",
	})
	if want := "linux-image-6.12.100+deb12-amd64"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	if got := newestKernel([]string{"linux-image-cloud-amd64"}); got != "" {
		t.Errorf("%s is no kernel", got)
	}
}

func TestPartsOfKernel(t *testing.T) {
	names := []string{
		"linux-image-7.3.4+deb13-amd64", "linux-modules-7.3.4+deb13-amd64",
		"linux-modules-7.3.4+deb13-cloud-amd64", "linux-modules-7.2.12+deb13-amd64",
		"linux-binary-7.3.4+deb13-amd64", "linux-image-6.12.9+deb12-amd64",
	}
	for kernel, want := range map[string]string{
		"linux-image-7.3.4+deb13-amd64": "linux-image-7.3.4+deb13-amd64 " +
			"linux-binary-7.3.4+deb13-amd64 linux-modules-7.3.4+deb13-amd64",
		"linux-image-6.12.9+deb12-amd64": "linux-image-6.12.9+deb12-amd64",
	} {
		if got := strings.Join(partsOf(kernel, names), " "); got != want {
			t.Errorf("%s consists of %s, not %s", kernel, got, want)
		}
	}
}

// TestRecipes: what one kernel needs more does not get into the recipe of the other.
func TestRecipes(t *testing.T) {
	before := fmt.Sprint(KernelHere.recipe())
	more := KernelBackports.recipe()
	if !slices.Contains(more.modules, "igb") || !slices.Contains(more.modules, "rdma_rxe") ||
		slices.Contains(more.modules, "crc32_generic") {
		t.Errorf("the newer kernel has the modules %v", more.modules)
	}
	if after := fmt.Sprint(KernelHere.recipe()); after != before || before == fmt.Sprint(more) {
		t.Errorf("the recipe was %s, and is %s", before, after)
	}
}

// bzImage makes an image around something packed.
func bzImage(packed []byte) []byte {
	b := make([]byte, 5*sector)
	b[offSetupSects] = 1
	binary.LittleEndian.PutUint32(b[offPayload:], 3*sector)
	binary.LittleEndian.PutUint32(b[offPayloadLength:], uint32(len(packed)+4))
	b = append(b, packed...)
	return append(b, 0, 0, 0, 0)
}

func TestUnpackKernel(t *testing.T) {
	image := bzImage([]byte("who knows"))
	if got, err := unpackKernel(t.Context(), image); err != nil || !bytes.Equal(got, image) {
		t.Errorf("packed in an unknown way: %d bytes, %v", len(got), err)
	}
	for n := range bzHeaderLen + 1 {
		if _, err := unpackKernel(t.Context(), image[:n]); !errors.Is(err, errNoBzImage) {
			t.Fatalf("%d bytes of it: %v", n, err)
		}
	}
	for _, u := range unpackers {
		t.Run(u.program, func(t *testing.T) {
			if _, err := exec.LookPath(u.program); err != nil {
				t.Skip(err)
			}
			cmd := exec.CommandContext(context.Background(), u.program, "-c")
			cmd.Stdin = strings.NewReader("\x7fELF kernel")
			packed, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			got, err := unpackKernel(t.Context(), bzImage(packed))
			if err != nil || string(got) != "\x7fELF kernel" {
				t.Errorf("%q, %v", got, err)
			}
			if _, err := unpackKernel(t.Context(), bzImage(packed[:len(packed)-6])); err == nil {
				t.Error("half of it was unpacked")
			}
		})
	}
}

func TestModuleName(t *testing.T) {
	for file, want := range map[string]string{
		"usr/lib/modules/6/kernel/rdma/rdma-rxe.ko.xz": "rdma_rxe", "a/virtio.ko": "virtio",
	} {
		if got := moduleName(file); got != want {
			t.Errorf("%s: %s, not %s", file, got, want)
		}
	}
}
