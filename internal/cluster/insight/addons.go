// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"fmt"
	"slices"
)

// addons looks for add-ons whose version does not fit a minor. The add-on kube-proxy may be as old as kube-proxy itself,
// and keeps no cluster from the minor before: it has no objects, and what machines run is looked at by itself.
func addons(f Facts, minor string, category Category) Insight {
	i := Insight{
		Name: "EKS add-on version compatibility", Category: category, Minor: minor,
		Description:    "Compares the versions of EKS add-ons with those that fit Kubernetes v" + minor,
		Recommendation: "Update the add-ons to a version that fits both minors, or remove them: aws eks update-addon",
	}
	if f.Addons.Unknown != "" {
		return i.unknown(f.Addons.Unknown)
	}
	if len(f.Addons.Is) > 0 && !slices.ContainsFunc(f.Addons.Is, func(a Addon) bool { return len(a.Versions[minor]) > 0 }) {
		return i.unknown(fmt.Sprintf("This Muster knows no versions of add-ons for Kubernetes v%s", minor))
	}
	to, _ := minorNumber(minor)
	var resources []Resource
	for _, a := range f.Addons.Is {
		fit := a.Versions[minor]
		i.Addons = append(i.Addons, Compatible{a.Name, fit})
		is, numbered := minorNumber(a.Version)
		switch {
		case slices.Contains(fit, a.Version), a.Name == "kube-proxy" && (category == RollbackReadiness || numbered && is <= to):
			continue
		case !a.known():
			resources = append(resources, Resource{Finding{Warning, fmt.Sprintf("Version %q of the add-on %s is not one of this Muster's", a.Version, a.Name)}, "addon/" + a.Name})
		default:
			resources = append(resources, Resource{Finding{Error, fmt.Sprintf("Version %s of the add-on %s does not fit %s: %q do", a.Version, a.Name, minor, fit)}, "addon/" + a.Name})
		}
	}
	return i.of(resources, "All add-ons fit", fmt.Sprintf("%d of %d add-ons do not fit", len(resources), len(f.Addons.Is)))
}

// known reports whether the add-on's version is one that there is.
func (a Addon) known() bool {
	for _, versions := range a.Versions {
		if slices.Contains(versions, a.Version) {
			return true
		}
	}
	return false
}
