// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
)

// Addons is the kind Addon.
func Addons() Kind {
	return Kind{
		Singular: "addon", Plural: "addons", group: v1alpha1.GroupVersion.Group,
		List: func() client.ObjectList { return &v1alpha1.AddonList{} },
		columns: []column{
			columnName(),
			col("VERSION", func(a *v1alpha1.Addon) string { return terminal.Or(a.Status.Version, a.Spec.Version) }),
			col("STATUS", func(a *v1alpha1.Addon) string { return string(a.Phase()) }),
			columnAge(),
			col("CONFLICTS", func(a *v1alpha1.Addon) string {
				return terminal.Or(string(a.Spec.ResolveConflicts), string(v1alpha1.ConflictsNone))
			}).onlyWide(),
			col("NAMESPACE", func(a *v1alpha1.Addon) string { return a.Namespace }).onlyWide(),
			columnMessage(func(a *v1alpha1.Addon) []metav1.Condition { return a.Status.Conditions }),
		},
	}
}
