// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"path"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/memorylimit"
	"muster.dev/muster/internal/platform/statedir"
)

// memoryGroups is the control group that those of an installation's processes are below. It is outside the one of
// machines, which is bounded itself.
func memoryGroups(dir statedir.Dir) string {
	return path.Join("/muster-planes", statedir.Hash(dir))
}

// MemoryGroups returns a function that finds the control group which holds a process to the memory of its spec.
func MemoryGroups(dir statedir.Dir) func(component.Spec) (MemoryGroup, error) {
	return func(spec component.Spec) (MemoryGroup, error) {
		controller, err := memorylimit.Open()
		if err != nil {
			return nil, err
		}
		return controller.Group(path.Join(memoryGroups(dir), spec.Process())), nil
	}
}

// RemoveMemoryGroups removes the control groups of processes that have ended, by what their names begin with; all of
// them if that is empty.
func RemoveMemoryGroups(dir statedir.Dir, prefix string) error {
	controller, err := memorylimit.Open()
	if err != nil {
		return nil //nolint:nilerr // where there can be none
	}
	return controller.Remove(path.Join(memoryGroups(dir), prefix))
}
