// SPDX-License-Identifier: Apache-2.0

package efs_test

import (
	"testing"

	"muster.dev/muster/internal/storage/efs"
)

func TestReadMountTarget(t *testing.T) {
	got, err := efs.ReadMountTarget([]byte(`{"fileSystem":"` + fileSystem + `","subnet":"subnet-1","vpc":"vpc-1","zone":"a","securityGroups":["sg-1"]}`))
	if err != nil || got.FileSystem != fileSystem || got.VPC != "vpc-1" || got.Subnet != "subnet-1" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, wrong := range []string{``, `{}`, `[]`, `{"vpc":"vpc-1"}`, `{"fileSystem":"` + fileSystem + `"}`, `{"fileSystem":"` + fileSystem + `","vpc":"vpc-1","more":1}`} {
		if got, err := efs.ReadMountTarget([]byte(wrong)); err == nil {
			t.Errorf("%s: %+v", wrong, got)
		}
	}
}
