// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"os"
	"path/filepath"
)

// Nearest is a directory, or of those above it the first one that there is: it is on the file system that the directory
// will be on.
func Nearest(dir Dir) string {
	path := string(dir)
	for path != "/" && path != "." {
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}
