// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// changeCluster sets in a cluster what an update of a name asks for.
func changeCluster(c *v1alpha1.Cluster, name string, change v1alpha1.UpdateChange) {
	if step := change.KubeletAuthority; step != nil {
		c.Spec.KubeletAuthority = &v1alpha1.KubeletAuthorityRequest{ID: name, Step: step.Step, Authority: step.Authority}
	}
	if change.AuthenticationMode != "" {
		c.Spec.AccessConfig.AuthenticationMode = change.AuthenticationMode
	}
	if change.Version != "" {
		c.Spec.Version = change.Version
		delete(c.Annotations, v1alpha1.AnnotationForceVersion)
		if change.Force {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationForceVersion, change.Version)
		}
	}
	if change.Components != nil {
		changeSettings(c, *change.Components)
	}
	if change.DeletionProtection != nil {
		c.Spec.DeletionProtection = *change.DeletionProtection
	}
	if change.ZonalShiftEnabled != nil {
		c.Spec.ZonalShift = &v1alpha1.ClusterZonalShift{Enabled: *change.ZonalShiftEnabled}
	}
	if change.Compute != nil {
		c.Spec.Compute = change.Compute
	}
	if change.Logging != nil {
		c.Spec.EKS.LoggingTypes = change.Logging.Types
	}
	if change.SecurityGroups != nil {
		c.Spec.SecurityGroupIDs = change.SecurityGroups.IDs
	}
	if change.SupportType != "" {
		c.Spec.EKS.SupportType = change.SupportType
	}
	if change.EncryptionKeyARN != "" {
		c.Spec.EKS.EncryptionKeyARN = change.EncryptionKeyARN
	}
	if change.Endpoint != nil {
		if change.Endpoint.PublicAccess != nil {
			c.Spec.EKS.Endpoint.PublicAccess = change.Endpoint.PublicAccess
		}
		if change.Endpoint.PrivateAccess != nil {
			c.Spec.EKS.Endpoint.PrivateAccess = change.Endpoint.PrivateAccess
		}
	}
}

// changeAddon sets in an add-on what an update asks for.
func changeAddon(a *v1alpha1.Addon, change v1alpha1.UpdateChange) {
	if change.Addon == nil {
		return
	}
	for _, setting := range []struct{ from, into *string }{
		{change.Addon.Version, &a.Spec.Version},
		{change.Addon.ConfigurationValues, &a.Spec.ConfigurationValues},
		{change.Addon.ServiceAccountRoleARN, &a.Spec.ServiceAccountRoleARN},
	} {
		if setting.from != nil {
			*setting.into = *setting.from
		}
	}
	a.Spec.ResolveConflicts = change.Addon.ResolveConflicts
	if a.Spec.ResolveConflicts == "" {
		a.Spec.ResolveConflicts = v1alpha1.ConflictsNone
	}
}
