// SPDX-License-Identifier: Apache-2.0

package watchfile

import (
	"os"
	"syscall"
	"time"
)

// Version tells two versions of a file apart without reading it. The zero value is that of no file.
type Version struct {
	device, inode   uint64
	size            int64
	changed, looked time.Time
}

// settled is how long a file must not have changed before equal times mean that it is the same: the clocks of file
// systems have steps.
const settled = 2 * time.Second

// Version looks at the file. It is to be asked for before the file is read: then what was read is of this version or of
// a later one.
func (f File) Version() (Version, error) {
	looked := time.Now()
	info, err := os.Stat(f.Path)
	if err != nil {
		return Version{}, err
	}
	v := Version{size: info.Size(), changed: info.ModTime(), looked: looked}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		v.device, v.inode = s.Dev, s.Ino
		v.changed = time.Unix(s.Ctim.Sec, s.Ctim.Nsec)
	}
	return v, nil
}

// Same reports whether a file is for sure what it was at an earlier look.
func (v Version) Same(earlier Version) bool {
	return v.inode != 0 && v.device == earlier.device && v.inode == earlier.inode && v.size == earlier.size && v.changed.Equal(earlier.changed) &&
		earlier.looked.Sub(v.changed) > settled
}
