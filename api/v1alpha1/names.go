// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// MaxClusterSecurityGroups is the maximum number of security groups of a cluster, without its own.
	MaxClusterSecurityGroups = 5
	// MaxClusterName is EKS's limit of a cluster's spec.name, in characters.
	MaxClusterName = 100
	// MaxNodeGroupName is EKS's limit of a node group's spec.name, in characters.
	MaxNodeGroupName = 63

	maxSlug    = 63 // of a DNS label
	slugDigits = 10 // of the hash
	slugHash   = "--"
)

// ClusterSlug returns the name that a Cluster and its namespace have in the management plane, from spec.name: spec.name itself if it is a
// DNS label without "--" and not a namespace that the API server or Muster owns, or else a slug with a hash. It is a DNS label, and so a
// value of a label, for every input.
func ClusterSlug(name string) string {
	if plain(name) && !reserved(name) {
		return name
	}
	return hashed(name, reserved)
}

// NodeGroupSlug returns the name that a NodeGroup has in the namespace of its cluster, from spec.name: spec.name itself if it is a DNS
// label without "--", or else a slug with a hash. No name is reserved: a namespace holds the node groups of one cluster only.
func NodeGroupSlug(name string) string {
	if plain(name) {
		return name
	}
	return hashed(name, func(string) bool { return false })
}

// plain reports whether a name is used as it is. "--" is left to slugs, so that no plain name is the slug of another.
func plain(name string) bool {
	return len(name) <= maxSlug && dnsLabelPattern.MatchString(name) && !strings.Contains(name, slugHash)
}

// reserved reports whether a namespace is not for a cluster: those that the API server makes, and those that Muster makes.
func reserved(namespace string) bool {
	return namespace == "default" || strings.HasPrefix(namespace, "kube-") || strings.HasPrefix(namespace, "muster-")
}

// hashed returns what is readable of a name, "--", and the beginning of the SHA-256 of the name.
func hashed(name string, reserved func(string) bool) string {
	sum := sha256.Sum256([]byte(name))
	suffix := slugHash + hex.EncodeToString(sum[:])[:slugDigits]
	var base strings.Builder
	for _, r := range strings.ToLower(name) {
		if r < '0' || r > '9' && r < 'a' || r > 'z' {
			r = '-'
		}
		if r != '-' || base.Len() > 0 && !strings.HasSuffix(base.String(), "-") { // without - at the beginning, and never two
			base.WriteRune(r)
		}
		if base.Len() == maxSlug-len(suffix) {
			break
		}
	}
	readable := strings.TrimSuffix(base.String(), "-")
	switch {
	case readable == "": // no valid name comes here
		readable = "x"
	case reserved(readable + suffix):
		readable = strings.TrimSuffix(("x-" + readable)[:min(len(readable)+2, maxSlug-len(suffix))], "-")
	}
	return readable + suffix
}

// validateClusterNames checks spec.name, and that metadata.name and the namespace are those that follow from it. A document without a
// namespace is one that the command line has not completed yet: the API server gives every object one.
func validateClusterNames(c *Cluster) field.ErrorList {
	errs := validateSpecName(c.Spec.Name, MaxClusterName)
	if len(errs) > 0 {
		return errs
	}
	slug := ClusterSlug(c.Spec.Name)
	metadata := field.NewPath("metadata")
	if c.Name != slug {
		errs = append(errs, field.Invalid(metadata.Child("name"), c.Name, fmt.Sprintf("must be %q, which follows from spec.name %q", slug, c.Spec.Name)))
	}
	if c.Namespace != "" && c.Namespace != slug {
		errs = append(errs, field.Invalid(metadata.Child("namespace"), c.Namespace, fmt.Sprintf("must be %q: each cluster has a namespace of its own", slug)))
	}
	return errs
}

// validateNodeGroupNames checks spec.name, and that metadata.name follows from it.
func validateNodeGroupNames(g *NodeGroup) field.ErrorList {
	errs := validateSpecName(g.Spec.Name, MaxNodeGroupName)
	if len(errs) > 0 {
		return errs
	}
	if slug := NodeGroupSlug(g.Spec.Name); g.Name != slug {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), g.Name, fmt.Sprintf("must be %q, which follows from spec.name %q", slug, g.Spec.Name)))
	}
	return errs
}

// validateSpecName checks a name by EKS's rule for clusters and node groups.
func validateSpecName(name string, limit int) field.ErrorList {
	path := field.NewPath("spec", "name")
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "say what it is called")}
	case len(name) > limit || !eksNamePattern.MatchString(name):
		return field.ErrorList{field.Invalid(path, name,
			fmt.Sprintf("must begin with a letter or digit and be of at most %d letters, digits, - and _", limit))}
	}
	return nil
}
