// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Running is a process that runs.
type Running struct {
	Stat
	// Environment is what it was started with: NAME=value, each with a zero byte after it.
	Environment []byte
	// Executable is the path of its program; it ends in " (deleted)" when the file has been replaced since.
	Executable string
}

// Read reads the process whose directory is root, as /proc/17. A process that has ended, a thread of the kernel and a
// process that may not be read are errors.
//
// A single look would miss a process in the middle of execve(2). First, if not its first thread called it, the first
// one has ended and shows nothing until the caller has taken its place (de_thread in fs/exec.c). Then its memory is the
// new program's: the kernel writes where the environment begins and ends, and after it where the code begins, which is
// 0 until then (load_elf_binary in fs/binfmt_elf.c). So such a process is looked at again, until the moment patient.
func Read(root string, patient time.Time) (Running, error) {
	for ; ; time.Sleep(time.Millisecond) {
		var r Running
		var unread, unnamed, gone error
		r.Environment, unread = readAtOnce(filepath.Join(root, "environ"))
		r.Executable, unnamed = os.Readlink(filepath.Join(root, "exe"))
		r.Stat, gone = ReadStat(root) // the last: earlier reads are judged by it
		switch err := cmp.Or(gone, unread, unnamed); {
		case gone != nil, errors.Is(err, fs.ErrPermission):
			return Running{}, err
		case err == nil && (len(r.Environment) > 0 || r.code != "0" && r.begin == r.end):
			return r, nil
		case r.kernel || r.State == 'Z' && r.threads <= 1 || time.Now().After(patient):
			return r, cmp.Or(err, errNothing)
		}
	}
}

var errNothing = errors.New("it shows no environment")

// readAtOnce reads a file of a process in one call: between two, execve(2) could take away the memory that it is read
// from, which looks like its end.
func readAtOnce(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for size := 16 << 10; ; size *= 2 { // an environment has 6 MiB at most: execve(2), limits on size
		content := make([]byte, size)
		n, err := file.ReadAt(content, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n < size {
			return content[:n], nil
		}
	}
}
