// SPDX-License-Identifier: Apache-2.0

package insight

import "fmt"

const (
	// diskLeast is what the state directory's file system must have free, in bytes: etcd refuses to write long before a
	// disk is full.
	diskLeast = 1 << 30
	// diskShare of it must be free, or kubelets evict pods, in percent.
	diskShare = 10
)

// disk looks whether the file system of the state directory has room.
func disk(f Facts, minor string, category Category) Insight {
	i := Insight{
		Name: "Disk space", Category: category, Minor: minor,
		Description:    "Looks at the file system of the state directory",
		Recommendation: "Free some space",
	}
	free := f.Host.Disk.Is
	said := fmt.Sprintf("The file system of the state directory has %d of %d MiB free", free.Is>>20, free.Of>>20)
	switch {
	case f.Host.Disk.Unknown != "":
		return i.unknown(f.Host.Disk.Unknown)
	case free.Is < diskLeast:
		i.Finding = Finding{Error, fmt.Sprintf("%s, and %d MiB are needed", said, diskLeast>>20)}
	case free.Is*100 < free.Of*diskShare:
		i.Finding = Finding{Warning, fmt.Sprintf("%s, and kubelets evict pods below %d %%", said, diskShare)}
	default:
		i.Finding = Finding{Passing, said}
	}
	return i
}
