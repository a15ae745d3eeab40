// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// Updates is the kind Update.
func Updates() Kind {
	message := col(HeadingMessage, UpdateMessage)
	message.ifAny = true
	return Kind{
		Singular: "update", Plural: "updates", group: v1alpha1.GroupVersion.Group,
		List: func() client.ObjectList { return &v1alpha1.UpdateList{} },
		columns: []column{
			columnName(),
			col("TYPE", func(u *v1alpha1.Update) string { return string(u.Spec.Type) }),
			col("OF", updateTarget),
			col("STATUS", func(u *v1alpha1.Update) string { return string(u.Phase()) }),
			columnAge(),
			col("NAMESPACE", func(u *v1alpha1.Update) string { return u.Namespace }).onlyWide(),
			message,
		},
	}
}

// updateTarget is what an update changes.
func updateTarget(u *v1alpha1.Update) string {
	switch {
	case u.Spec.NodeGroup != "":
		return "nodegroup/" + u.Spec.NodeGroup
	case u.Spec.Addon != "":
		return "addon/" + u.Spec.Addon
	}
	return "cluster/" + u.Spec.ClusterName
}

// UpdateMessage is why an update failed, what one that goes on waits for, or what there is to know of one that
// succeeded.
func UpdateMessage(u *v1alpha1.Update) string {
	if len(u.Status.Errors) == 0 {
		return u.Status.Message
	}
	said := make([]string, 0, len(u.Status.Errors))
	for _, e := range u.Status.Errors {
		said = append(said, e.ErrorCode+": "+e.ErrorMessage)
	}
	return strings.Join(said, "; ")
}
