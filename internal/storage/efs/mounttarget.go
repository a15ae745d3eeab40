// SPDX-License-Identifier: Apache-2.0

package efs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// MountTargetRecord is the type of the records that are mount targets.
const MountTargetRecord = "efs-mount-target"

// MountTarget is what is kept of a mount target: a record, because nothing is mounted over NFS. It has no address. A
// file system that has one is mounted in its VPC alone.
type MountTarget struct {
	FileSystem     string   `json:"fileSystem"`
	Subnet         string   `json:"subnet"`
	VPC            string   `json:"vpc"`
	Zone           string   `json:"zone"`
	SecurityGroups []string `json:"securityGroups"`
}

// ReadMountTarget reads the data of a record. A record that cannot be read in full is an error, because it may be a
// mount target of any file system.
func ReadMountTarget(data []byte) (MountTarget, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var target MountTarget
	if err := decoder.Decode(&target); err != nil {
		return MountTarget{}, fmt.Errorf("reading a mount target: %w", err)
	}
	if target.FileSystem == "" || target.VPC == "" {
		return MountTarget{}, errors.New("reading a mount target: it has no file system or VPC")
	}
	return target, nil
}
