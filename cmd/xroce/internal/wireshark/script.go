package wireshark

import (
	_ "embed"
	"errors"
	"os"
	"path/filepath"
)

//go:embed xroce.lua
var script []byte

// Name is the name of the file that Install writes.
const Name = "xroce.lua"

// Script is the dissector.
func Script() []byte { return script }

// Directory is where Wireshark looks for plugins of this user ("Personal Lua Plugins" of tshark -G
// folders).
func Directory() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "lib", "wireshark", "plugins"), nil
}

// Install writes the dissector to a directory, which is made when there is none, and returns the
// path of the file. What was there before is replaced at once or not at all: a Wireshark that
// starts meanwhile sees one of them whole.
func Install(dir string) (path string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(dir, "."+Name+".*") // Wireshark reads what ends in .lua
	if err != nil {
		return "", err
	}
	_, err = file.Write(script)
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	path = filepath.Join(dir, Name)
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return path, nil
}
