// SPDX-License-Identifier: Apache-2.0

package identity

import (
	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamauthenticatorv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
)

// FromAccessEntry is the entry that an object holds.
func FromAccessEntry(object *accessv1alpha1.AccessEntry) AccessEntry {
	e := AccessEntry{
		Name:         object.Name,
		PrincipalARN: object.Spec.PrincipalARN,
		PrincipalID:  object.Spec.PrincipalID,
		Type:         EntryType(object.Spec.Type),
		Username:     object.Spec.Username,
		Groups:       object.Spec.KubernetesGroups,
	}
	for _, policy := range object.Spec.AccessPolicies {
		e.Policies = append(e.Policies, policy.PolicyARN)
	}
	return e
}

// FromIAMIdentityMapping is the mapping that an object holds.
func FromIAMIdentityMapping(object *iamauthenticatorv1alpha1.IAMIdentityMapping) Mapping {
	return Mapping{
		Source:   SourceIdentityMapping,
		Entry:    object.Name,
		Kind:     KindRole, // or a user: its ARN says which
		ARN:      object.Spec.ARN,
		Username: object.Spec.Username,
		Groups:   object.Spec.Groups,
	}
}
