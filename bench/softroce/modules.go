package softroce

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"path"
	"strings"
)

// A moduleSet finds the kernel modules that some modules need, and the order to
// load them in.
type moduleSet struct {
	files   map[string]string // name, with underscores, to file in the tree
	builtin map[string]bool   // what the kernel has without modules
	tree    tree

	order  []string          // names, each behind all it needs
	loaded map[string][]byte // the modules themselves, unpacked
}

// newModuleSet looks through the files of a kernel package.
func newModuleSet(t tree) *moduleSet {
	s := &moduleSet{
		files: map[string]string{}, builtin: map[string]bool{}, tree: t,
		loaded: map[string][]byte{},
	}
	for name, n := range t {
		if path.Base(name) == "modules.builtin" {
			for _, line := range strings.Fields(string(n.data)) {
				s.builtin[moduleName(line)] = true
			}
			continue
		}
		s.files[moduleName(name)] = name
	}
	return s
}

// moduleName is the name of a module's file as the kernel has it.
func moduleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// add puts a module into the order, behind what it depends on. Of soft
// dependencies those that there are are added, too: rdma_rxe finds its checksum
// by name at run time.
func (s *moduleSet) add(ctx context.Context, name string) error {
	name = strings.ReplaceAll(name, "-", "_")
	if s.builtin[name] || s.loaded[name] != nil {
		return nil
	}
	file, ok := s.files[name]
	if !ok {
		return fmt.Errorf("the kernel package has no module %s", name)
	}
	data := s.tree[file].data
	if !strings.HasSuffix(file, ".ko") {
		var err error
		if data, err = decompress(ctx, data); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	s.loaded[name] = data
	hard, soft, err := dependencies(data)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, d := range hard {
		if err := s.add(ctx, d); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, d := range soft {
		if s.files[strings.ReplaceAll(d, "-", "_")] == "" {
			continue
		}
		if err := s.add(ctx, d); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	s.order = append(s.order, name)
	return nil
}

// dependencies reads what a module says of itself: its section .modinfo is a
// list of KEY=VALUE, each ended by a NUL.
func dependencies(module []byte) (hard, soft []string, err error) {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	section := f.Section(".modinfo")
	if section == nil {
		return nil, nil, nil
	}
	info, err := section.Data()
	if err != nil {
		return nil, nil, err
	}
	for field := range strings.SplitSeq(string(info), "\x00") {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "depends":
			hard = append(hard, strings.FieldsFunc(value, func(r rune) bool { return r == ',' })...)
		case "softdep":
			before, ok := strings.CutPrefix(value, "pre:")
			if ok {
				before, _, _ = strings.Cut(before, "post:")
				soft = append(soft, strings.Fields(before)...)
			}
		}
	}
	return hard, soft, nil
}
