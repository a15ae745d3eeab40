// SPDX-License-Identifier: Apache-2.0

package filesystems

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/elasticfilesystem/efsresource"
)

// Settings that no file system has here. Terraform reads them of each one.

type lifecyclePolicy struct{ TransitionToIA string }

type lifecycleOutput struct{ LifecyclePolicies []lifecyclePolicy }

func (a *API) describeLifecycle() awsfront.Spec[systemInput, lifecycleOutput] {
	return awsfront.Spec[systemInput, lifecycleOutput]{About: a.aboutOne, Do: func(ctx context.Context, call *awsfront.Call, in *systemInput) (*lifecycleOutput, error) {
		return &lifecycleOutput{LifecyclePolicies: []lifecyclePolicy{}}, a.is(ctx, call, in)
	}}
}

type backupPolicy struct{ Status string }

type backupOutput struct{ BackupPolicy *backupPolicy }

func (a *API) describeBackupPolicy() awsfront.Spec[systemInput, backupOutput] {
	return awsfront.Spec[systemInput, backupOutput]{About: a.aboutOne, Do: func(ctx context.Context, call *awsfront.Call, in *systemInput) (*backupOutput, error) {
		return &backupOutput{&backupPolicy{"DISABLED"}}, a.is(ctx, call, in)
	}}
}

type policyOutput struct{ FileSystemID, Policy string }

func (a *API) describeFileSystemPolicy() awsfront.Spec[systemInput, policyOutput] {
	return awsfront.Spec[systemInput, policyOutput]{About: a.aboutOne, Do: func(ctx context.Context, call *awsfront.Call, in *systemInput) (*policyOutput, error) {
		if err := a.is(ctx, call, in); err != nil {
			return nil, err
		}
		return nil, efsresource.Fault(noPolicy, "File system '%s' has no policy of its own: IAM's policies alone decide", in.FileSystemID)
	}}
}

func (a *API) aboutOne(ctx context.Context, call *awsfront.Call, in *systemInput) ([]awsfront.Target, error) {
	return a.store.AboutSystem(ctx, call, in.FileSystemID, nil)
}

// is refuses a file system that is not there.
func (a *API) is(ctx context.Context, call *awsfront.Call, in *systemInput) error {
	id, err := a.store.SystemID(call, in.FileSystemID)
	if err == nil {
		_, err = a.store.System(ctx, id)
	}
	return err
}
