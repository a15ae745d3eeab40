// SPDX-License-Identifier: Apache-2.0

package awsrecord

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
)

type gateway struct {
	VPC string `json:"vpc,omitempty"`
}

var (
	gateways = Kind[gateway]{Type: "internet-gateway"}
	others   = Kind[struct{}]{Type: "log-group"}
)

func plane(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).Build()
}

func TestLifeOfARecord(t *testing.T) {
	ctx, api := t.Context(), plane(t)
	made := &Record[gateway]{ID: "igw-1", Tags: v1alpha1.Tags{"team": "a"}, Labels: map[string]string{"l": "1"}}
	if err := errors.Join(gateways.Create(ctx, api, made), others.Create(ctx, api, &Record[struct{}]{ID: others.NameOf("/aws/EKS"), Name: "/aws/EKS"})); err != nil {
		t.Fatal(err)
	}
	if err := gateways.Create(ctx, api, made); !apierrors.IsAlreadyExists(err) {
		t.Errorf("made twice: %v", err)
	}
	changed, err := gateways.Update(ctx, api, "igw-1", func(r *Record[gateway]) error {
		r.Data.VPC, r.Tags["team"] = "vpc-1", "b"
		return nil
	})
	if err != nil || changed.Data.VPC != "vpc-1" {
		t.Fatalf("%+v, %v", changed, err)
	}
	if _, err := gateways.Update(ctx, api, "igw-1", func(r *Record[gateway]) error { r.Data.VPC = ""; return errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a change that is refused: %v", err)
	}
	got, err := gateways.Get(ctx, api, "igw-1")
	want := &Record[gateway]{ID: "igw-1", Data: gateway{"vpc-1"}, Tags: v1alpha1.Tags{"team": "b"}, Labels: map[string]string{"l": "1"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	if all, err := gateways.List(ctx, api); err != nil || len(all) != 1 || all[0].ID != "igw-1" {
		t.Errorf("%+v, %v", all, err)
	}
	if groups, err := others.List(ctx, api); err != nil || len(groups) != 1 || groups[0].Name != "/aws/EKS" {
		t.Errorf("%+v, %v", groups, err)
	}
	if _, err := others.Get(ctx, api, "igw-1"); !apierrors.IsNotFound(err) {
		t.Errorf("a record of another type: %v", err)
	}
	if err := others.Delete(ctx, api, "igw-1"); !apierrors.IsNotFound(err) {
		t.Errorf("deleted by another type: %v", err)
	}
	if err := gateways.Delete(ctx, api, "igw-1"); err != nil {
		t.Error(err)
	}
	if _, err := gateways.Get(ctx, api, "igw-1"); !apierrors.IsNotFound(err) {
		t.Errorf("deleted: %v", err)
	}
}

// Another change between reading and writing is not lost.
func TestTwoChangesAtOnce(t *testing.T) {
	ctx, api := t.Context(), plane(t)
	if err := gateways.Create(ctx, api, &Record[gateway]{ID: "igw-1"}); err != nil {
		t.Fatal(err)
	}
	calls := 0
	got, err := gateways.Update(ctx, api, "igw-1", func(r *Record[gateway]) error {
		if calls++; calls == 1 {
			if _, err := gateways.Update(ctx, api, "igw-1", func(r *Record[gateway]) error { r.Tags = v1alpha1.Tags{"a": "1"}; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		r.Data.VPC = "vpc-1"
		return nil
	})
	if err != nil || calls != 2 || got.Tags["a"] != "1" || got.Data.VPC != "vpc-1" {
		t.Errorf("after %d calls: %+v, %v", calls, got, err)
	}
}

func TestDataIsReadStrictly(t *testing.T) {
	ctx, api := t.Context(), plane(t)
	for id, data := range map[string]string{"igw-1": `{"vcp":"vpc-1"}`, "igw-2": `{"vpc":1}`, "igw-3": `{} {}`} {
		object := &v1alpha1.AWSRecord{}
		object.Name, object.Spec.Type, object.Spec.Data.Raw = id, gateways.Type, []byte(data)
		if _, err := gateways.decode(object); err == nil || !strings.Contains(err.Error(), id) {
			t.Errorf("%s: %v", data, err)
		}
	}
	if _, err := gateways.Get(ctx, api, "igw-1"); !apierrors.IsNotFound(err) {
		t.Errorf("%v", err)
	}
}

func TestNames(t *testing.T) {
	if a, b := others.NameOf("/aws/EKS"), others.NameOf("/aws/eks"); a == b || len(a) != len("log-group-")+hashed || strings.ToLower(a) != a {
		t.Errorf("%s, %s", a, b)
	}
}
