package main

import (
	"errors"
	"os"
	"path/filepath"
)

// replaceFile makes a file have the content, or leaves it as it was: whoever
// reads it, even after a crash, finds all of the old content or all of the new.
func replaceFile(name string, content []byte, mode os.FileMode) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary.Name())
		}
	}()
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Chmod(mode))
	if err == nil {
		err = temporary.Sync()
	}
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), name)
}
