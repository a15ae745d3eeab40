// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"fmt"

	"muster.dev/muster/internal/platform/hostreserve"
)

// diskLeast is what the state directory's file system must have free, in bytes: etcd refuses to write long before a
// disk is full.
const diskLeast = 1 << 30

// disk looks whether the file system of the state directory has room.
func disk(f Facts, minor string, category Category) Insight {
	i := Insight{
		Name: "Disk space", Category: category, Minor: minor,
		Description:    "Looks at the file system of the state directory",
		Recommendation: "Free some space",
	}
	free := f.Host.Disk.Is
	said := fmt.Sprintf("The file system of the state directory has %d of %d MiB free", free.Is>>20, free.Of>>20)
	reserve := hostreserve.Of(free.Of)
	switch {
	case f.Host.Disk.Unknown != "":
		return i.unknown(f.Host.Disk.Unknown)
	case free.Is < diskLeast:
		i.Finding = Finding{Error, fmt.Sprintf("%s, and %d MiB are needed", said, diskLeast>>20)}
	case free.Is < reserve:
		i.Finding = Finding{Warning, fmt.Sprintf("%s, and with less than %d no volumes are made and machines are stopped", said, reserve>>20)}
	default:
		i.Finding = Finding{Passing, said}
	}
	return i
}
