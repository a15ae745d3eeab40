// SPDX-License-Identifier: Apache-2.0

package elasticfilesystem

import (
	"context"
	"errors"
	"fmt"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/elasticfilesystem/accesspoints"
	"muster.dev/muster/internal/cloud/elasticfilesystem/efsresource"
	"muster.dev/muster/internal/cloud/elasticfilesystem/efstags"
	"muster.dev/muster/internal/cloud/elasticfilesystem/filesystems"
	"muster.dev/muster/internal/cloud/elasticfilesystem/mounttargets"
)

// Config is what the actions need.
type Config struct {
	awsresource.Account
	// Used counts the bytes that are written in a file system. It is stopped after a second.
	Used func(ctx context.Context, id string) (int64, error)
}

// Register adds the actions to the front.
func Register(f *awsfront.Front, c Config) error {
	if c.Management == nil || c.Pages == nil || c.Used == nil {
		return errors.New("the actions of EFS need a client of the management plane, a sealer of pages, and sizes of file systems")
	}
	own, err := region.Find(c.Region)
	if err != nil {
		return fmt.Errorf("the actions of EFS: %w", err)
	}
	store := &efsresource.Store{Account: c.Account}
	filesystems.New(store, c.Used).Register(f)
	accesspoints.New(store).Register(f)
	mounttargets.New(store, own).Register(f)
	efstags.New(store).Register(f)
	return nil
}
