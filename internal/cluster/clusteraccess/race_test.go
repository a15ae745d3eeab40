// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
)

// Two parts of the service let the role of nodes in at the same time.
func TestNodesThatAreLetInMeanwhile(t *testing.T) {
	t.Parallel()
	for name, theirs := range map[string]string{"the same": "arn:aws:iam::000000000000:role/workers", "another": "arn:aws:iam::000000000000:role/team/workers"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccess(t, v1alpha1.AuthenticationAPI)
			raced := false
			a.cluster = fake.NewClientBuilder().WithScheme(a.cluster.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
					if !raced {
						raced = true
						other := &accessv1alpha1.AccessEntry{ObjectMeta: metav1.ObjectMeta{Name: "workers"}, Spec: accessv1alpha1.AccessEntrySpec{PrincipalARN: theirs}}
						if err := c.Create(ctx, other); err != nil {
							return err
						}
					}
					return c.Create(ctx, object, opts...)
				},
			}).Build()
			err := a.nodes(t.Context(), iamRole("/", "workers", "AROA1"))
			entries := entriesOf(t, a)
			if err != nil || errors.Is(err, errMeanwhile) || entries["workers"].PrincipalARN != theirs {
				t.Fatalf("%v, %v", err, entries)
			}
			if _, second := entries["workers-2"]; second != (name == "another") {
				t.Errorf("entries are %v", entries)
			}
		})
	}
}
