// SPDX-License-Identifier: Apache-2.0

package insight

import "fmt"

const (
	// etcdWarn and etcdFull are shares of etcd's quota, in percent. At the quota etcd takes no more writes.
	etcdWarn = 80
	etcdFull = 95
)

// etcd looks how much of its quota etcd's file has.
func etcd(f Facts) Insight {
	i := Insight{
		Name: "Size of etcd", Category: UpgradeReadiness, Minor: f.Next,
		Description:    "Compares the size of etcd's file with its quota",
		Recommendation: "Delete objects that nobody needs, and have the file shrink: muster defragment",
	}
	is := f.Host.Etcd.Is
	said := fmt.Sprintf("etcd's file has %d of %d MiB", is.Is>>20, is.Of>>20)
	switch {
	case f.Host.Etcd.Unknown != "":
		return i.unknown(f.Host.Etcd.Unknown)
	case is.Is*100 >= is.Of*etcdFull:
		i.Finding = Finding{Error, said + ", and takes no writes once it is full"}
	case is.Is*100 >= is.Of*etcdWarn:
		i.Finding = Finding{Warning, said + ", and takes no writes once it is full"}
	default:
		i.Finding = Finding{Passing, said}
	}
	return i
}
