// SPDX-License-Identifier: Apache-2.0

package launchtemplate

import (
	"fmt"
	"regexp"
	"strconv"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
)

// The versions that have a name instead of a number.
const (
	Latest  = "$Latest"
	Default = "$Default"
)

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9().\-/_]{3,128}$`)

// CheckName checks the name of a launch template.
func CheckName(name string) error {
	if !namePattern.MatchString(name) {
		return awsfault.Errorf("InvalidLaunchTemplateName.MalformedException",
			"The launch template name %.140q is not valid: it must be of 3 to 128 letters, digits and ( ) . - / _", name)
	}
	return nil
}

// NameNotFound is the error for a name that no launch template has.
func NameNotFound(name string) *awsfault.Error {
	return awsfault.Errorf("InvalidLaunchTemplateName.NotFoundException", "The specified launch template, with template name %.128s, does not exist.", name)
}

// Find finds a version, by its number, $Latest or $Default.
func Find(t *v1alpha1.LaunchTemplate, version string) (*v1alpha1.LaunchTemplateVersion, error) {
	number, err := Number(t, version)
	if err != nil {
		return nil, err
	}
	for i := range t.Spec.Versions {
		if t.Spec.Versions[i].Number == number {
			return &t.Spec.Versions[i], nil
		}
	}
	return nil, VersionNotFound(t, version)
}

// VersionNotFound is the error for a version that there is not.
func VersionNotFound(t *v1alpha1.LaunchTemplate, version string) *awsfault.Error {
	return awsfault.Errorf("InvalidLaunchTemplateId.VersionNotFound", "Could not find the specified version %.40s for the launch template with ID %s.", version, t.Name)
}

// Number is the number that a version is meant by. $Latest is the newest one that has not been deleted.
func Number(t *v1alpha1.LaunchTemplate, version string) (int64, error) {
	switch version {
	case Default:
		return t.Spec.DefaultVersion, nil
	case Latest:
		latest := int64(0)
		for i := range t.Spec.Versions {
			latest = max(latest, t.Spec.Versions[i].Number)
		}
		return latest, nil
	}
	number, err := strconv.ParseInt(version, 10, 64)
	if err != nil || number < 1 {
		return 0, awsfault.Errorf(invalid, "Invalid launch template version %.40q: it must be a number, %s or %s", version, Latest, Default)
	}
	return number, nil
}

// The limits of versions: EC2 has 10,000 of a template, and Muster keeps them in one object.
const (
	maxVersions = 1000
	maxBytes    = 1 << 20
)

// CheckRoom refuses one version more than there is room for.
func CheckRoom(t *v1alpha1.LaunchTemplate, bytes int) error {
	for i := range t.Spec.Versions {
		bytes += len(t.Spec.Versions[i].Data.Raw)
	}
	if len(t.Spec.Versions) >= maxVersions || bytes > maxBytes {
		return awsfault.Errorf("MaxTemplateVersionLimitExceeded", "%s", fmt.Sprintf("The launch template %s has %d versions: Muster keeps at most %d, of %d KiB together. Delete old versions first",
			t.Name, len(t.Spec.Versions), maxVersions, maxBytes>>10))
	}
	return nil
}
