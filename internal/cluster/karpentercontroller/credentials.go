// SPDX-License-Identifier: Apache-2.0

package karpentercontroller

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/atomicfile"
)

const (
	// renewBefore is how long before their end credentials are replaced: Karpenter reads the file again at their end.
	renewBefore = 30 * time.Minute
	// credentialsMode lets the group of the folder read the file, which is Karpenter's.
	credentialsMode = 0o640
	// folderMode is that of the folder of a component before the component starts for the first time.
	folderMode = 0o700
)

// begun is a file that is there from before the first step of preparing a cluster until everything is taken away.
func begun(c component.Config) string {
	return filepath.Join(filepath.Dir(c.KarpenterCredentials()), "begun")
}

// begin notes that the cluster has something to take away from now on.
func (k *Controller) begin() error {
	path := begun(k.Plane)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := k.folder(); err != nil {
		return err
	}
	return atomicfile.Write(path, nil, 0o600)
}

// folder makes the folder of Karpenter's files.
func (k *Controller) folder() error {
	if err := os.MkdirAll(filepath.Dir(k.Plane.KarpenterCredentials()), folderMode); err != nil {
		return fmt.Errorf("making the folder of Karpenter's files: %w", err)
	}
	return nil
}

// printed are credentials as AWS's tools read them from a credential_process, with the id of their role.
type printed struct {
	Version         int
	AccessKeyID     string `json:"AccessKeyId"`
	SecretAccessKey string
	SessionToken    string
	Expiration      time.Time
	RoleID          string `json:"RoleId"`
}

// credentials writes Karpenter's credentials of a role, unless those that are there last for a while.
func (k *Controller) credentials(roleID string) error {
	path := k.Plane.KarpenterCredentials()
	var is printed
	if raw, err := os.ReadFile(path); err == nil && json.Unmarshal(raw, &is) == nil && is.RoleID == roleID && k.Now().Add(renewBefore).Before(is.Expiration) {
		return nil
	}
	made, err := k.Assume(k.Plane.Dir.Namespace())
	if err != nil {
		return fmt.Errorf("making credentials of Karpenter: %w", err)
	}
	raw, err := json.MarshalIndent(printed{ //nolint:gosec // G117: credentials are what the file is for
		Version: 1, AccessKeyID: made.AccessKeyID, SecretAccessKey: made.Secret.Reveal(), SessionToken: made.SessionToken, Expiration: made.Expires, RoleID: roleID,
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("writing credentials of Karpenter: %w", err)
	}
	if err := k.folder(); err != nil {
		return err
	}
	return atomicfile.Write(path, append(raw, '\n'), credentialsMode)
}
