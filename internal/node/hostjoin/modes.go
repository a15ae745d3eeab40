// SPDX-License-Identifier: Apache-2.0

package hostjoin

import "os"

// loosened reports whether a file of a join's own making has more permissions than it was given. That of a program is
// its source's matter.
func (d disk) loosened(a artifact) bool {
	if a.copyOf != "" || a.linkTo != "" {
		return false
	}
	info, err := os.Lstat(d.at(a.path))
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&^a.mode.Perm() != 0
}
