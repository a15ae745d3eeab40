// SPDX-License-Identifier: Apache-2.0

package terminated_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/terminated"
)

func newClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func TestRemember(t *testing.T) {
	api := newClient(t)
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "i-0123456789abcdef0", Finalizers: []string{v1alpha1.FinalizerMachine}},
		Spec:       v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal, UserData: []byte("secret"), InstanceType: "m5.large"},
	}
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for range 2 {
		if err := terminated.Remember(t.Context(), api, m, now); err != nil {
			t.Fatal(err)
		}
	}
	all, err := terminated.List(t.Context(), api)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if got := all[0].Machine; got.Name != m.Name || got.Spec.InstanceType != "m5.large" || got.Spec.UserData != nil || got.Finalizers != nil || !all[0].At.Time.Equal(now) {
		t.Errorf("remembered %+v", all[0])
	}
	if m.Spec.UserData == nil {
		t.Error("the machine itself was changed")
	}
}

func TestSweep(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	record := func(name, kind string, age time.Duration) *v1alpha1.AWSRecord {
		r := &v1alpha1.AWSRecord{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))}}
		r.Spec.Type, r.Spec.Data.Raw = kind, []byte("{}")
		return r
	}
	objects := []client.Object{record("old", v1alpha1.RecordTerminatedInstance, 61*time.Minute), record("other", "key-pair", 48*time.Hour)}
	for i := range terminated.Most + 3 {
		objects = append(objects, record(fmt.Sprintf("i-%04d", i), v1alpha1.RecordTerminatedInstance, time.Duration(i)*time.Second))
	}
	api := newClient(t, objects...)
	if err := terminated.Sweep(t.Context(), api, now); err != nil {
		t.Fatal(err)
	}
	var left v1alpha1.AWSRecordList
	if err := api.List(t.Context(), &left); err != nil || len(left.Items) != terminated.Most+1 {
		t.Fatalf("%d are left, %v; want %d", len(left.Items), err, terminated.Most+1)
	}
	for _, r := range left.Items {
		if r.Name == "old" || r.Name == fmt.Sprintf("i-%04d", terminated.Most) {
			t.Errorf("%s is left", r.Name)
		}
	}
}
