package softroce

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// A node is a regular file or a symbolic link.
type node struct {
	mode fs.FileMode
	data []byte
	link string // target, "" for a file
}

// A tree is what packages contain: names without a leading slash, as they are
// where /bin, /sbin, /lib and /lib64 are links into /usr.
type tree map[string]node

// merged are the directories that lie in /usr.
var merged = []string{"bin/", "sbin/", "lib/", "lib64/"}

// usr returns where a file is after the merge of / and /usr.
func usr(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	for _, dir := range merged {
		if strings.HasPrefix(name, dir) {
			return "usr/" + name
		}
	}
	return name
}

// add reads an archive into the tree, of which it keeps the names that want
// accepts.
func (t tree) add(r io.Reader, want func(name string) bool) error {
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := usr(h.Name)
		if !want(name) {
			continue
		}
		switch h.Typeflag {
		case tar.TypeReg:
			data, err := io.ReadAll(archive)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			t[name] = node{mode: h.FileInfo().Mode(), data: data}
		case tar.TypeSymlink:
			t[name] = node{link: h.Linkname}
		case tar.TypeLink:
			t[name] = t[usr(h.Linkname)]
		}
	}
}

// match lists the names that a pattern of package path matches.
func (t tree) match(pattern string) []string {
	var names []string
	for name := range t {
		if ok, err := path.Match(pattern, name); err == nil && ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// libraries maps the names of shared libraries to where they are.
func (t tree) libraries() map[string]string {
	libs := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		base, dir := path.Base(name), path.Dir(name)
		if !strings.Contains(base, ".so") || strings.Count(dir, "/") > 2 {
			continue // not a library, or one of a program's own plugins
		}
		if strings.HasPrefix(dir, "usr/lib") {
			libs[base] = name
		}
	}
	return libs
}

// closure returns the files that match the patterns with all that they need to
// run: the targets of links, the interpreter, and shared libraries. A pattern
// that matches nothing, and a library that is nowhere, is an error.
func (t tree) closure(patterns []string) (tree, error) {
	var todo []string
	for _, p := range patterns {
		names := t.match(p)
		if len(names) == 0 {
			return nil, fmt.Errorf("no package has %s", p)
		}
		todo = append(todo, names...)
	}
	libs, out := t.libraries(), tree{}
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if _, done := out[name]; done {
			continue
		}
		n, ok := t[name]
		if !ok {
			continue // a link that leads out of the packages
		}
		out[name] = n
		if n.link != "" {
			to := n.link
			if !path.IsAbs(to) {
				to = path.Join(path.Dir(name), to)
			}
			todo = append(todo, usr(to))
			continue
		}
		needs, err := needed(n.data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, lib := range needs {
			at, ok := libs[lib]
			if !ok {
				return nil, fmt.Errorf("%s needs %s, which is in no package", name, lib)
			}
			todo = append(todo, at)
		}
	}
	return out, nil
}

// needed lists the shared libraries of an ELF file, its interpreter among them,
// by name; nothing of any other file.
func needed(data []byte) ([]string, error) {
	if !bytes.HasPrefix(data, []byte(elf.ELFMAG)) {
		return nil, nil
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		interp, err := io.ReadAll(p.Open())
		if err != nil {
			return nil, err
		}
		names = append(names, path.Base(strings.TrimRight(string(interp), "\x00")))
	}
	return names, nil
}
