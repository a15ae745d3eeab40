// SPDX-License-Identifier: Apache-2.0

package awsresource

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
)

// Every write asks IAM again, the first of a request once, and a refusal answers the request whatever the action says.
func TestWritesAskAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(context.Context, client.Client, *v1alpha1.VPC) error{
		"create": func(ctx context.Context, c client.Client, _ *v1alpha1.VPC) error {
			return c.Create(ctx, &v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: "new"}})
		},
		"delete":        func(ctx context.Context, c client.Client, v *v1alpha1.VPC) error { return c.Delete(ctx, v) },
		"delete all of": func(ctx context.Context, c client.Client, v *v1alpha1.VPC) error { return c.DeleteAllOf(ctx, v) },
		"update": func(ctx context.Context, c client.Client, v *v1alpha1.VPC) error {
			v.Labels = map[string]string{"a": "b"}
			return c.Update(ctx, v)
		},
		"patch": func(ctx context.Context, c client.Client, v *v1alpha1.VPC) error {
			before := v.DeepCopy()
			v.Labels = map[string]string{"a": "b"}
			return c.Patch(ctx, v, client.MergeFrom(before))
		},
		"apply": func(ctx context.Context, c client.Client, v *v1alpha1.VPC) error {
			return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": v1alpha1.GroupVersion.String(), "kind": "VPC", "metadata": map[string]any{"name": v.Name, "labels": map[string]any{"a": "b"}},
			}}), client.FieldOwner("test"))
		},
	} {
		for _, allowed := range []bool{true, false} {
			plane := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: "v"}}).Build()
			before := versions(t, plane)
			gate := &awsfronttest.Gate{}
			front := awsfronttest.New(t, gate, nil)
			awsfront.Register(front, "ec2", "DescribeVpcs", awsfront.Spec[struct{}, struct{}]{
				Do: func(ctx context.Context, _ *awsfront.Call, _ *struct{}) (*struct{}, error) {
					gate.Denies = !allowed // while the action waited
					c := Allowed(plane)
					v := &v1alpha1.VPC{}
					if err := c.Get(ctx, client.ObjectKey{Name: "v"}, v); err != nil {
						return nil, err
					}
					if err := write(ctx, c, v); (err == nil) != allowed {
						t.Errorf("%s: %v", name, err)
					}
					if err := c.Create(ctx, &v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: "second"}}); (err == nil) != allowed {
						t.Errorf("a second write: %v", err)
					}
					return nil, nil
				},
			})
			handler, err := front.Handler("ec2")
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("Action=DescribeVpcs&Version=2016-11-15"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, r)
			if want := map[bool]int{true: 200, false: 403}[allowed]; answer.Code != want || len(gate.Asked) != 2 || gate.Asked[0] != gate.Asked[1] {
				t.Errorf("%s, allowed %v: %d %s, IAM was asked %q", name, allowed, answer.Code, answer.Body, gate.Asked)
			}
			if changed := versions(t, plane) != before; changed != allowed {
				t.Errorf("%s, allowed %v: the plane has %s", name, allowed, versions(t, plane))
			}
		}
	}
	if err := awsfront.StillAllowed(t.Context()); err != nil {
		t.Errorf("outside of requests: %v", err)
	}
}

// versions are the VPCs of a plane.
func versions(t *testing.T, plane client.Client) string {
	t.Helper()
	var all v1alpha1.VPCList
	if err := plane.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, v := range all.Items {
		text += v.Name + " " + v.ResourceVersion + "\n"
	}
	return text
}
