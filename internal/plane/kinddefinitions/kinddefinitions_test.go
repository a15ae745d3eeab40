// SPDX-License-Identifier: Apache-2.0

package kinddefinitions

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
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
