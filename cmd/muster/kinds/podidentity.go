// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// PodIdentityAssociations is the kind PodIdentityAssociation. They also go by their service account, NAMESPACE/NAME.
func PodIdentityAssociations() Kind {
	return Kind{
		Singular: "podidentityassociation", Plural: "podidentityassociations", Aliases: []string{"pia"}, group: v1alpha1.GroupVersion.Group,
		List: func() client.ObjectList { return &v1alpha1.PodIdentityAssociationList{} },
		columns: []column{
			columnName(),
			col("SERVICE-ACCOUNT", ServiceAccountOf),
			col("ROLE", func(p *v1alpha1.PodIdentityAssociation) string { return p.Spec.RoleARN }),
			columnAge(),
			col("TARGET-ROLE", func(p *v1alpha1.PodIdentityAssociation) string { return p.Spec.TargetRoleARN }).onlyWide(),
			col(headingCluster, func(p *v1alpha1.PodIdentityAssociation) string { return p.Spec.ClusterName }).onlyWide(),
		},
		also: func(object client.Object) []string {
			return []string{ServiceAccountOf(object.(*v1alpha1.PodIdentityAssociation))}
		},
	}
}

// ServiceAccountOf is the service account of an association, NAMESPACE/NAME.
func ServiceAccountOf(p *v1alpha1.PodIdentityAssociation) string {
	return p.Spec.Namespace + "/" + p.Spec.ServiceAccount
}
