// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Writers are the machines that run and have a directory of the host mounted to be written, or one above or below it.
func (p *Provider) Writers(source *os.File) ([]string, error) {
	at, err := placeOf(source)
	if err != nil {
		return nil, fmt.Errorf("finding where %s is mounted: %w", source.Name(), err)
	}
	pids, err := Running(p.config.State)
	if err != nil {
		return nil, err
	}
	var all []string
	for id, pid := range pids {
		mounts, err := readMounts(strconv.Itoa(pid))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) { // it has just ended
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking at the mounts of machine %s: %w", id, err)
		}
		if slices.ContainsFunc(mounts, at.writtenBy) {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all, nil
}

// place is a directory in its file system, however that is mounted.
type place struct{ device, path string }

// placeOf is where an open directory of the host is.
func placeOf(dir *os.File) (place, error) {
	fd := strconv.Itoa(int(dir.Fd()))
	name, err := os.Readlink(filepath.Join("/proc/self/fd", fd))
	if err != nil {
		return place{}, err
	}
	info, err := os.ReadFile(filepath.Join("/proc/self/fdinfo", fd))
	if err != nil {
		return place{}, err
	}
	mounts, err := readMounts("self")
	if err != nil {
		return place{}, err
	}
	for line := range strings.Lines(string(info)) {
		id, ok := strings.CutPrefix(line, "mnt_id:")
		if !ok {
			continue
		}
		for _, one := range mounts {
			if one.id == strings.TrimSpace(id) {
				return place{one.device, path.Join(one.root, strings.TrimPrefix(name, one.point))}, nil
			}
		}
	}
	return place{}, errors.New("its mount is not among those of this process")
}

// writtenBy reports whether a mount lets a machine write the directory, or something above or below it.
func (p place) writtenBy(one mount) bool {
	if !one.writable || one.device != p.device {
		return false
	}
	mine, other := strings.TrimSuffix(p.path, "/")+"/", strings.TrimSuffix(one.root, "/")+"/"
	return strings.HasPrefix(mine, other) || strings.HasPrefix(other, mine)
}
