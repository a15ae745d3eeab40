// SPDX-License-Identifier: Apache-2.0

package efs

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Driver is the name of the CSI driver.
const Driver = "efs.csi.aws.com"

// maxHandle is how long a volume handle may be (the CSI specification: 128 bytes for ids).
const maxHandle = 128

var (
	fileSystemPattern  = regexp.MustCompile(`^fs-[0-9a-f]{17}$`)
	accessPointPattern = regexp.MustCompile(`^fsap-[0-9a-f]{17}$`)
	snapshotPattern    = regexp.MustCompile(`^fssnap-[0-9a-f]{17}$`)
)

// CheckFileSystemID checks the form of a file system's id. An id names a directory, too.
func CheckFileSystemID(id string) error {
	if !fileSystemPattern.MatchString(id) {
		return fmt.Errorf("invalid file system id %q: must be fs- and 17 hexadecimal digits", id)
	}
	return nil
}

// CheckAccessPointID checks the form of an access point's id.
func CheckAccessPointID(id string) error {
	if !accessPointPattern.MatchString(id) {
		return fmt.Errorf("invalid access point id %q: must be fsap- and 17 hexadecimal digits", id)
	}
	return nil
}

// CheckSnapshotID checks the form of a snapshot's id, which EFS does not have.
func CheckSnapshotID(id string) error {
	if !snapshotPattern.MatchString(id) {
		return fmt.Errorf("invalid snapshot id %q: must be fssnap- and 17 hexadecimal digits", id)
	}
	return nil
}

// SnapshotName is the name that upstream's csi-snapshotter gives a snapshot, by the UID of its VolumeSnapshot.
func SnapshotName(uid string) string { return "snapshot-" + uid }

// Handle names a volume: a directory of a file system, by its path or by an access point.
type Handle struct {
	FileSystemID string
	// Path from the file system's root, or from the access point's directory; empty for that itself.
	Path string
	// AccessPointID is empty if the volume is named by its path alone.
	AccessPointID string
}

// ParseHandle reads a volume handle: FILESYSTEM[:PATH[:ACCESSPOINT]].
func ParseHandle(text string) (Handle, error) {
	if len(text) > maxHandle {
		return Handle{}, fmt.Errorf("invalid volume handle of %d bytes: at most %d are allowed", len(text), maxHandle)
	}
	parts := strings.Split(text, ":")
	if len(parts) > 3 {
		return Handle{}, fmt.Errorf("invalid volume handle %q: must be fs-ID, fs-ID:/path or fs-ID::fsap-ID", text)
	}
	h := Handle{FileSystemID: parts[0]}
	if err := CheckFileSystemID(h.FileSystemID); err != nil {
		return Handle{}, fmt.Errorf("invalid volume handle %q: %w", text, err)
	}
	if len(parts) > 1 && parts[1] != "" {
		h.Path = parts[1]
		if err := CheckPath(h.Path); err != nil {
			return Handle{}, fmt.Errorf("invalid volume handle %q: %w", text, err)
		}
	}
	if len(parts) > 2 {
		h.AccessPointID = parts[2]
		if err := CheckAccessPointID(h.AccessPointID); err != nil {
			return Handle{}, fmt.Errorf("invalid volume handle %q: %w", text, err)
		}
	}
	return h, nil
}

// String writes the handle as ParseHandle reads it.
func (h Handle) String() string {
	switch {
	case h.AccessPointID != "":
		return h.FileSystemID + ":" + h.Path + ":" + h.AccessPointID
	case h.Path != "":
		return h.FileSystemID + ":" + h.Path
	}
	return h.FileSystemID
}

// CheckPath checks a path in a file system: absolute, and without names that mean something else.
func CheckPath(p string) error {
	if !strings.HasPrefix(p, "/") || path.Clean(p) != p || strings.ContainsAny(p, "\x00:") || !utf8.ValidString(p) {
		return fmt.Errorf("invalid path %q: must begin with / and have no empty name, no . and .., and no colon", p)
	}
	return nil
}
