// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// part is a file of a log that is rotated.
type part struct {
	path string
	info os.FileInfo
}

// parts lists the files of a log, the oldest first. The API server renames its log to NAME-TIME.log
// (gopkg.in/natefinch/lumberjack), and the names sort by time. While the log is renamed it is listed again: a file that
// is under neither name would look as if it had been removed.
func parts(path string) ([]part, error) {
	for {
		before, err := stat(path)
		if err != nil {
			return nil, err
		}
		names, err := older(path)
		if err != nil {
			return nil, err
		}
		after, err := stat(path)
		if err != nil {
			return nil, err
		}
		if (before == nil) != (after == nil) || before != nil && !os.SameFile(before, after) {
			continue
		}
		var found []part
		for _, name := range names {
			info, err := stat(name)
			if err != nil {
				return nil, err
			}
			if info != nil { // it has not been removed meanwhile
				found = append(found, part{name, info})
			}
		}
		if after != nil {
			found = append(found, part{path, after})
		}
		return found, nil
	}
}

// stat looks at a file; nil if there is none.
func stat(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // a file that is not there is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("looking at the audit log: %w", err)
	}
	return info, nil
}

// older lists the files that a log had before, the oldest first.
func older(path string) ([]string, error) {
	dir, prefix := filepath.Dir(path), strings.TrimSuffix(filepath.Base(path), ".log")+"-"
	entries, err := os.ReadDir(dir) // sorted
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the parts of the audit log: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, prefix) && strings.HasSuffix(name, ".log") {
			names = append(names, filepath.Join(dir, name))
		}
	}
	return names, nil
}
