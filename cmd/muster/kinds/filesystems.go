// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
)

// FileSystems is the kind FileSystem, which is the account's.
func FileSystems() Kind {
	return Kind{
		Singular: "filesystem", Plural: "filesystems", Aliases: []string{"efs"}, group: v1alpha1.GroupVersion.Group, ofAccount: true,
		List: func() client.ObjectList { return &v1alpha1.FileSystemList{} },
		columns: []column{
			columnName(),
			col("ID", func(f *v1alpha1.FileSystem) string { return f.Name }),
			col("STATUS", func(f *v1alpha1.FileSystem) string { return readiness.Word(f, f.Status.Conditions) }),
			col("CLUSTERS", func(f *v1alpha1.FileSystem) string { return cmp.Or(strings.Join(f.Spec.Clusters, ","), "all") }),
			columnAge(),
			columnMessage(func(f *v1alpha1.FileSystem) []metav1.Condition { return f.Status.Conditions }),
		},
		also: func(object client.Object) []string { return []string{object.GetName()} },
	}
}
