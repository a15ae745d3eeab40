// SPDX-License-Identifier: Apache-2.0

package kinddefinitions

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Whoever established a kind, nobody waits for its being new.
func TestServed(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	condition := func(kind apiextensionsv1.CustomResourceDefinitionConditionType, age time.Duration) apiextensionsv1.CustomResourceDefinitionCondition {
		return apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-age))}
	}
	names := condition(apiextensionsv1.NamesAccepted, 0)
	for name, test := range map[string]struct {
		conditions []apiextensionsv1.CustomResourceDefinitionCondition
		written    bool
	}{
		"its names are accepted":    {[]apiextensionsv1.CustomResourceDefinitionCondition{names}, true},
		"it was established now":    {[]apiextensionsv1.CustomResourceDefinitionCondition{names, condition(apiextensionsv1.Established, 0)}, true},
		"it was established before": {[]apiextensionsv1.CustomResourceDefinitionCondition{names, condition(apiextensionsv1.Established, time.Hour)}, false},
	} {
		definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"}}
		definition.Status.Conditions = test.conditions
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(definition).WithStatusSubresource(definition).Build()
		before := &apiextensionsv1.CustomResourceDefinition{}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(definition), before); err != nil {
			t.Fatal(err)
		}
		if err := served(t.Context(), api, definition); err != nil {
			t.Fatal(err)
		}
		after := &apiextensionsv1.CustomResourceDefinition{}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(definition), after); err != nil {
			t.Fatal(err)
		}
		established := after.Status.Conditions[len(after.Status.Conditions)-1]
		if written := before.ResourceVersion != after.ResourceVersion; written != test.written || established.Type != apiextensionsv1.Established ||
			established.Status != apiextensionsv1.ConditionTrue || time.Since(established.LastTransitionTime.Time) < newFor {
			t.Errorf("%s: written %v, %+v", name, written, after.Status.Conditions)
		}
	}
}

// A kind whose names another one has is told, and not waited for without a word.
func TestServedWithoutItsNames(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	definition := things("v1")
	definition.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionFalse, Reason: "KindConflict", Message: `"Thing" is already in use`},
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse, Reason: "NotAccepted", Message: "not all names are accepted"},
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(definition).WithStatusSubresource(definition).Build()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := served(ctx, api, definition); err == nil || err.Error() != `establishing kind Thing: its names are not accepted: "Thing" is already in use` {
		t.Errorf("error %v", err)
	}
}

// Each kind is asked for until the server has heard of it, in the version that is stored; another answer is an error.
func TestBegin(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	asked := map[string]int{}
	unheard, refusal := 2, error(nil)
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			mutex.Lock()
			defer mutex.Unlock()
			kind := into.GetObjectKind().GroupVersionKind().String()
			asked[kind]++
			if asked[kind] <= unheard {
				return apierrors.NewNotFound(schema.GroupResource{}, "")
			}
			return refusal
		},
	})
	other := things("v1")
	other.Spec.Names.Kind = "Other"
	definitions := []*apiextensionsv1.CustomResourceDefinition{things("v1alpha1"), other}
	if err := Begin(t.Context(), api, definitions); err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"muster.dev/v1, Kind=ThingList": 3, "muster.dev/v1, Kind=OtherList": 3}; !maps.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
	refusal = apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	if err := Begin(t.Context(), api, definitions[:1]); err == nil || !strings.Contains(err.Error(), "asking for the first object of kind Thing: ") {
		t.Errorf("error %v", err)
	}
	refusal, unheard = nil, 1_000_000
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := Begin(ctx, api, definitions); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	synctest.Test(t, func(t *testing.T) { // a kind that is never served is told, and not waited for without a word
		began := time.Now()
		if err := Begin(t.Context(), api, definitions); !apierrors.IsNotFound(err) || time.Since(began) > heardIn+time.Second {
			t.Errorf("error %v after %v", err, time.Since(began))
		}
	})
}
