// SPDX-License-Identifier: Apache-2.0

package networkrecord

import (
	"errors"
	"io/fs"

	"muster.dev/muster/internal/platform/statedir"
)

// Convert returns what gives the network of a cluster a security group, which an earlier Muster did not record; nil if
// the network has one, or the cluster has no network yet.
func Convert(dir statedir.Cluster) (func() error, error) {
	n, err := read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || n.SecurityGroupID != "" {
		return nil, err
	}
	n.SecurityGroupID = newSecurityGroupID()
	return func() error { return write(dir, n) }, nil
}
