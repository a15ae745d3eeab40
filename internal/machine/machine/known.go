// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// known are records that have been read, so that a look at all of them, as at each launch, reads the new ones alone.
// Files of records are replaced and never changed, so one with the same inode and times has the same in it.
type known struct {
	mutex   sync.Mutex
	records map[string]knownRecord // by path
}

type knownRecord struct {
	record Record
	file   fileState
}

// fileState tells a file from the one that it was replaced by.
type fileState struct {
	device, inode  uint64
	size           int64
	changed, birth unix.StatxTimestamp
}

func lookAt(path string) (fileState, error) {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_SIZE|unix.STATX_CTIME|unix.STATX_BTIME, &stat); err != nil {
		return fileState{}, &os.PathError{Op: "statx", Path: path, Err: err}
	}
	return fileState{unix.Mkdev(stat.Dev_major, stat.Dev_minor), stat.Ino, int64(stat.Size), stat.Ctime, stat.Btime}, nil //nolint:gosec // G115: a record is small
}

// read returns the record of a path.
func (k *known) read(path string) (Record, error) {
	is, err := lookAt(path)
	if err != nil {
		k.forget(path)
		return Record{}, fmt.Errorf("reading machine record: %w", err)
	}
	k.mutex.Lock()
	one, ok := k.records[path]
	k.mutex.Unlock()
	if ok && one.file == is {
		return one.record, nil
	}
	record, err := ReadRecord(path)
	if err != nil {
		k.forget(path)
		return Record{}, err
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.records == nil {
		k.records = map[string]knownRecord{}
	}
	k.records[path] = knownRecord{record, is} // what was looked at before it was read: if it was replaced meanwhile, it is read again
	return record, nil
}

func (k *known) forget(path string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	delete(k.records, path)
}
