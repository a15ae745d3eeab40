// SPDX-License-Identifier: Apache-2.0

package efs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ModeAccessPoint is the provisioning mode in which each volume is an access point, EFS's only one.
const ModeAccessPoint = "efs-ap"

// The first and the last group of those that EFS's driver takes for directories if a class names none.
const (
	firstGroup = 50000
	lastGroup  = 7000000
)

// maxID is the largest number of a user or group.
const maxID = 1<<32 - 1

var permissionsPattern = regexp.MustCompile(`^[0-7]{3,4}$`)

// Parameters are those of a StorageClass, by the names of EFS's driver.
type Parameters struct {
	FileSystemID string
	// Permissions of a volume's directory, in octal digits.
	Permissions string
	// UID and GID own a volume's directory.
	UID, GID int64
	// OwnGroup reports whether the class names the group. Otherwise each volume gets one of GroupFirst to GroupLast.
	OwnGroup              bool
	GroupFirst, GroupLast int64
	// BasePath is the directory of the file system that volumes are made in; "/" if empty.
	BasePath string
}

// secretPrefix begins the parameters by which the sidecars of CSI find secrets and file systems; they are not the
// driver's.
const secretPrefix = "csi.storage.k8s.io/" //nolint:gosec // G101: a prefix of names

// ParseParameters reads the parameters of a StorageClass and tells every problem that there is with them.
func ParseParameters(given map[string]string) (Parameters, error) {
	p := Parameters{GroupFirst: firstGroup, GroupLast: lastGroup}
	var problems field.ErrorList
	at := field.NewPath("parameters")
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !strings.HasPrefix(name, secretPrefix) {
			problems = append(problems, p.set(at.Key(name), name, given[name])...)
		}
	}
	for _, name := range []string{"provisioningMode", "fileSystemId", "directoryPerms"} {
		if given[name] == "" {
			problems = append(problems, field.Required(at.Key(name), ""))
		}
	}
	_, uid := given["uid"]
	if _, gid := given["gid"]; uid != gid {
		problems = append(problems, field.Invalid(at.Key("uid"), given["uid"], "uid and gid are given together"))
	}
	if p.GroupFirst > p.GroupLast {
		problems = append(problems, field.Invalid(at.Key("gidRangeStart"), p.GroupFirst, "must not be greater than gidRangeEnd"))
	}
	return p, problems.ToAggregate()
}

// set takes one parameter.
func (p *Parameters) set(at *field.Path, name, value string) field.ErrorList {
	number := func(into *int64) field.ErrorList {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 || n > maxID {
			return field.ErrorList{field.Invalid(at, value, fmt.Sprintf("must be a number from 0 to %d", int64(maxID)))}
		}
		*into = n
		return nil
	}
	switch name {
	case "provisioningMode":
		if value != ModeAccessPoint {
			return field.ErrorList{field.NotSupported(at, value, []string{ModeAccessPoint})}
		}
	case "fileSystemId":
		p.FileSystemID = value
		if err := CheckFileSystemID(value); err != nil {
			return field.ErrorList{field.Invalid(at, value, "must be fs- and 17 hexadecimal digits: `muster get filesystems` lists them")}
		}
	case "directoryPerms":
		p.Permissions = value
		if !permissionsPattern.MatchString(value) {
			return field.ErrorList{field.Invalid(at, value, "must be three or four octal digits, such as 700")}
		}
	case "uid":
		return number(&p.UID)
	case "gid":
		p.OwnGroup = true
		return number(&p.GID)
	case "gidRangeStart":
		return number(&p.GroupFirst)
	case "gidRangeEnd":
		return number(&p.GroupLast)
	case "basePath":
		if value == "" {
			return nil
		}
		p.BasePath = "/" + strings.Trim(value, "/")
		if err := CheckPath(p.BasePath); err != nil || strings.Count(p.BasePath, "/") > maxBaseNames {
			return field.ErrorList{field.Invalid(at, value, fmt.Sprintf("must be a path of at most %d names", maxBaseNames))}
		}
	default:
		return field.ErrorList{field.NotSupported(at, name, []string{
			"provisioningMode", "fileSystemId", "directoryPerms", "uid", "gid", "gidRangeStart", "gidRangeEnd", "basePath",
		})}
	}
	return nil
}

// maxBaseNames leaves room for the volume's own directory among the four names that the path of an access point may
// have.
const maxBaseNames = 3

// Group returns the group that owns the directory of a volume, by a number that is drawn for it.
func (p Parameters) Group(drawn uint64) int64 {
	if p.OwnGroup {
		return p.GID
	}
	return p.GroupFirst + int64(drawn%uint64(p.GroupLast-p.GroupFirst+1)) //nolint:gosec // G115: both are below 2^32
}

// Directory returns the path of the directory of a volume, by its name.
func (p Parameters) Directory(volume string) string { return p.BasePath + "/" + volume }
