// SPDX-License-Identifier: Apache-2.0

package memorylimit

import (
	"path"

	"muster.dev/muster/internal/platform/statedir"
)

// planes is the control group that those of an installation's processes are below. It is outside the one of machines,
// which is bounded itself.
func planes(dir statedir.Dir) string { return path.Join("/muster-planes", statedir.Hash(dir)) }

// Process is the group of an installation's process of that name.
func (c Controller) Process(dir statedir.Dir, process string) Group {
	return c.Group(path.Join(planes(dir), process))
}

// RemoveProcesses removes the groups of an installation's processes that have ended, by what their names begin with; all
// of them if that is empty. A host without the controller has no groups, which is not an error.
func RemoveProcesses(dir statedir.Dir, prefix string) error {
	c, err := Open()
	if err != nil {
		return nil //nolint:nilerr // where there can be none
	}
	return c.Remove(path.Join(planes(dir), prefix))
}
