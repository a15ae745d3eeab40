// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// Stacks is the kind Stack, which is the account's.
func Stacks() Kind {
	reason := col("REASON", func(s *v1alpha1.Stack) string { return s.Status.Reason })
	reason.ifAny = true
	return Kind{
		Singular: "stack", Plural: "stacks", group: v1alpha1.GroupVersion.Group, ofAccount: true,
		List: func() client.ObjectList { return &v1alpha1.StackList{} },
		columns: []column{
			columnName(),
			col("STATUS", func(s *v1alpha1.Stack) string { return s.Status.Status }),
			col("RESOURCES", func(s *v1alpha1.Stack) string { return strconv.Itoa(len(s.Status.Resources)) }),
			columnAge(),
			col("ID", func(s *v1alpha1.Stack) string { return s.Name }).onlyWide(),
			reason,
		},
	}
}
