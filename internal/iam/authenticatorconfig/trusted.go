// SPDX-License-Identifier: Apache-2.0

package authenticatorconfig

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
)

// maxTrusted is how many roles may be trusted, and how many names of each.
const maxTrusted = 100

// validateTrusted wants each role once, whatever its path and case: IAM has no two of one name.
func (c Configuration) validateTrusted(k *check) {
	path := field.NewPath("mapping", "trustedSessionNames")
	if n := len(c.Mapping.TrustedSessionNames); n > maxTrusted {
		k.add(field.TooMany(path, n, maxTrusted))
		return
	}
	seen := map[string]bool{}
	for n, t := range c.Mapping.TrustedSessionNames {
		at := path.Index(n)
		role, err := arn.Parse(t.Role)
		if err == nil {
			err = identity.CheckTrustedRole(role)
		}
		once := strings.ToLower(role.WithoutPath().String())
		switch {
		case err != nil:
			k.add(field.Invalid(at.Child("role"), t.Role, err.Error()))
		case role.Partition != c.Partition:
			k.add(field.Invalid(at.Child("role"), t.Role, fmt.Sprintf("must be of the partition %s", c.Partition)))
		case seen[once]:
			k.add(field.Duplicate(at.Child("role"), t.Role))
		}
		seen[once] = true
		t.validateNames(k, at.Child("names"))
	}
}

func (t TrustedSessionNames) validateNames(k *check, path *field.Path) {
	switch n := len(t.Names); {
	case n == 0:
		k.add(field.Required(path, "the names that its sessions have, such as mi-*"))
	case n > maxTrusted:
		k.add(field.TooMany(path, n, maxTrusted))
		return
	}
	for n, name := range t.Names {
		if err := identity.CheckTrustedName(name); err != nil {
			k.add(field.Invalid(path.Index(n), name, err.Error()))
		} else if slices.Contains(t.Names[:n], name) {
			k.add(field.Duplicate(path.Index(n), name))
		}
	}
}
