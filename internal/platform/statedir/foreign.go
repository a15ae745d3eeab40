// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"fmt"
	"os"
	"strings"
)

// CheckDirectory refuses a directory with files that are not muster's, and one that cannot be read.
func CheckDirectory(dir Dir) error {
	found, err := os.ReadDir(string(dir))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("checking state directory: %w", err)
	}
	var foreign []string
	for _, entry := range found {
		if name := entry.Name(); !Owns(name) && name != "lost+found" { // which a file system of its own begins with
			foreign = append(foreign, name)
		}
	}
	if len(foreign) > 0 {
		return fmt.Errorf("state directory %s holds files that are not muster's (%s): choose an empty or new one with --state-dir", dir, strings.Join(foreign[:min(3, len(foreign))], ", "))
	}
	return nil
}
