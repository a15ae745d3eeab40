// SPDX-License-Identifier: Apache-2.0

package nodeevidence

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxFile is how much of a file is read in bytes. The largest that a node has is a kubeconfig with many authorities.
const maxFile = 1 << 20

// disk is the file system of a node, below a root.
type disk struct{ root string }

func (d disk) path(name string) string { return filepath.Join(d.root, name) }

// exists reports whether a file is there. Unknown is no.
func (d disk) exists(name string) bool {
	_, err := os.Stat(d.path(name))
	return err == nil
}

// open opens a regular file. It does not wait for a pipe's other end.
func (d disk) open(name string) (*os.File, fs.FileInfo, error) {
	file, err := os.OpenFile(d.path(name), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// read reads a whole file of at most maxFile bytes.
func (d disk) read(name string) ([]byte, error) {
	file, _, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	raw, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	return raw, err
}

// end reads the last bytes of a file, at most maxFile, from the beginning of a line.
func (d disk) end(name string) ([]byte, fs.FileInfo, error) {
	file, info, err := d.open(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }()
	from := max(0, info.Size()-maxFile)
	raw, err := io.ReadAll(io.NewSectionReader(file, from, maxFile))
	if from > 0 {
		raw = afterLine(raw)
	}
	return raw, info, err
}

// first is the first of files that exists; "" for none.
func (d disk) first(names ...string) string {
	for _, name := range names {
		if d.exists(name) {
			return name
		}
	}
	return ""
}
