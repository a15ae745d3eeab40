// SPDX-License-Identifier: Apache-2.0

// Package dryrun has the answers to requests of EC2 that ask whether they would succeed.
//
// A dry run is decided after the caller's permissions and the request's parameters were checked, and before anything is
// done. Karpenter and the EBS CSI driver call RunInstances and CreateVolume dry, and nothing may come of it.
package dryrun

import (
	"muster.dev/muster/internal/aws/awsfault"
)

// Would is the answer to a dry run that would have succeeded, which is an error. Nil for a request that is meant.
func Would(dry bool) error {
	if !dry {
		return nil
	}
	return awsfault.Errorf("DryRunOperation", "Request would have succeeded, but DryRun flag is set.").WithStatus(412)
}
