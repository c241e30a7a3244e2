package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// files are contents by path below the root. A nil content is a file that goes.
type files map[string][]byte

func (f files) paths() []string {
	paths := make([]string, 0, len(f))
	for p := range f {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

// current returns the content of a file, nil if there is none.
func current(root, path string) ([]byte, error) {
	old, err := os.ReadFile(filepath.Join(root, path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return old, err
}

// changed lists the files whose content is another one now.
func changed(root string, f files) ([]string, error) {
	var paths []string
	for _, p := range f.paths() {
		old, err := current(root, p)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(old, f[p]) {
			paths = append(paths, p)
		}
	}
	return paths, nil
}

// replace puts all files into place. Each is written beside its place first, so
// that what can fail has failed before the first one changes; should a rename
// fail all the same, the ones before it are taken back.
func replace(root string, f files) (err error) {
	old := files{}
	temp := map[string]string{}
	defer func() {
		for _, t := range temp {
			os.Remove(t)
		}
	}()
	for _, p := range f.paths() {
		if old[p], err = current(root, p); err != nil {
			return err
		}
		if f[p] == nil {
			continue
		}
		if temp[p], err = writeBeside(filepath.Join(root, p), f[p]); err != nil {
			return err
		}
	}
	for i, p := range f.paths() {
		if err := place(filepath.Join(root, p), temp[p]); err != nil {
			for _, done := range f.paths()[:i] {
				err = errors.Join(err, restore(filepath.Join(root, done), old[done]))
			}
			return err
		}
	}
	return nil
}

// writeBeside writes a temporary file in the folder of path and returns its name.
func writeBeside(path string, content []byte) (name string, err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	t, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return "", err
	}
	_, err = t.Write(content)
	err = errors.Join(err, t.Chmod(0o644), t.Close())
	return t.Name(), err
}

// place renames temp to path, or removes path if there is no temp.
func place(path, temp string) error {
	if temp != "" {
		return os.Rename(temp, path)
	}
	return os.Remove(path)
}

func restore(path string, content []byte) error {
	if content == nil {
		return os.Remove(path)
	}
	temp, err := writeBeside(path, content)
	if err != nil {
		return fmt.Errorf("cannot restore: %w", err)
	}
	return os.Rename(temp, path)
}
