// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"regexp"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxInstanceType  = 63
	maxInstanceTypes = 20
	maxHopLimit      = 64
	maxUserData      = 21848 // 16 KiB in base64
	maxTemplateName  = 128
	// maxSecurityGroups is EC2's limit of an interface.
	maxSecurityGroups = 16
)

var (
	instanceTypePattern   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	launchTemplatePattern = regexp.MustCompile(`^lt-[0-9a-f]{17}$`)
	securityGroupPattern  = regexp.MustCompile(`^sg-[0-9a-f]{8,17}$`)
)

func validateLaunchTemplate(path *field.Path, t NodeGroupLaunchTemplate) field.ErrorList {
	errs := validateLaunchTemplateCopy(path, t)
	if t.InstanceType != "" {
		errs = append(errs, validateInstanceType(path.Child("instanceType"), t.InstanceType)...)
	}
	if t.DiskSize < 0 || t.DiskSize > MaxDisk {
		errs = append(errs, field.Invalid(path.Child("diskSize"), t.DiskSize, fmt.Sprintf("must be from 1 to %d, or left out", MaxDisk)))
	}
	if limit := t.MetadataOptions.HTTPPutResponseHopLimit; limit < 0 || limit > maxHopLimit {
		errs = append(errs, field.Invalid(path.Child("metadataOptions", "httpPutResponseHopLimit"), limit, fmt.Sprintf("must be from 1 to %d", maxHopLimit)))
	}
	if utf8.RuneCountInString(t.UserData) > maxUserData {
		errs = append(errs, field.TooLong(path.Child("userData"), "", maxUserData))
	}
	groups := path.Child("securityGroupIDs")
	if len(t.SecurityGroupIDs) > maxSecurityGroups {
		errs = append(errs, field.TooMany(groups, len(t.SecurityGroupIDs), maxSecurityGroups))
	}
	for i, id := range t.SecurityGroupIDs {
		if !securityGroupPattern.MatchString(id) {
			errs = append(errs, field.Invalid(groups.Index(i), id, "must be the id of a security group, as sg-0123456789abcdef0"))
		}
	}
	return append(errs, validateTags(path.Child("tags"), t.Tags)...)
}

// validateLaunchTemplateCopy checks which LaunchTemplate this is a copy of.
func validateLaunchTemplateCopy(path *field.Path, t NodeGroupLaunchTemplate) field.ErrorList {
	var errs field.ErrorList
	if t.ID != "" && !launchTemplatePattern.MatchString(t.ID) {
		errs = append(errs, field.Invalid(path.Child("id"), t.ID, "must be the id of a launch template: lt- and 17 hexadecimal digits"))
	}
	if utf8.RuneCountInString(t.Name) > maxTemplateName {
		errs = append(errs, field.TooLong(path.Child("name"), "", maxTemplateName))
	}
	if t.Version < 0 {
		errs = append(errs, field.Invalid(path.Child("version"), t.Version, "must be at least 1"))
	}
	if named := t.ID != ""; len(errs) == 0 && (named != (t.Name != "") || named != (t.Version != 0)) {
		errs = append(errs, field.Invalid(path, t.ID, "id, name and version belong together: they say which LaunchTemplate this is a copy of"))
	}
	return errs
}

func validateInstanceTypes(path *field.Path, types []string) field.ErrorList {
	var errs field.ErrorList
	if len(types) > maxInstanceTypes {
		errs = append(errs, field.TooMany(path, len(types), maxInstanceTypes))
	}
	for i, name := range types {
		errs = append(errs, validateInstanceType(path.Index(i), name)...)
	}
	return errs
}

func validateInstanceType(path *field.Path, name string) field.ErrorList {
	if len(name) > maxInstanceType || !instanceTypePattern.MatchString(name) {
		return field.ErrorList{field.Invalid(path, name, "must be an instance type like m5.large, or left out")}
	}
	return nil
}
