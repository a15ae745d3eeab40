// SPDX-License-Identifier: Apache-2.0

package kinddefinitions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// things defines a kind with two versions, the second of which is stored.
func things(stored ...string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.muster.dev", UID: "1"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "muster.dev", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Thing", Plural: "things"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true}, {Name: "v1", Served: true, Storage: true}},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: stored},
	}
}

// TestMoveToStored has a server list three objects in pages of two, and counts what is written. A real API server shows
// in test/stories that this moves them.
func TestMoveToStored(t *testing.T) {
	changed := errors.New("it changes")
	for name, c := range map[string]struct {
		stored  []string
		patched []string
		after   []string
		fails   string // the object that cannot be written
		gone    string // the object that is deleted meanwhile
		other   string // another version that is stored meanwhile
		race    int    // how often somebody else writes the definition first
		err     string
	}{
		"stored so":                      {stored: []string{"v1"}, after: []string{"v1"}},
		"some are stored in another":     {stored: []string{"v1alpha1", "v1"}, patched: []string{"a", "b", "c"}, after: []string{"v1"}},
		"none is stored so":              {stored: []string{"v1alpha1"}, patched: []string{"a", "b", "c"}, after: []string{"v1"}},
		"deleted meanwhile":              {stored: []string{"v1alpha1", "v1"}, gone: "b", patched: []string{"a", "c"}, after: []string{"v1"}},
		"written by somebody else":       {stored: []string{"v1alpha1", "v1"}, race: 2, patched: []string{"a", "b", "c"}, after: []string{"v1"}},
		"an object that is refused":      {stored: []string{"v1alpha1", "v1"}, fails: "b", patched: []string{"a"}, after: []string{"v1alpha1", "v1"}, err: "moving objects of kind Thing to the version that is stored: writing blue/b: it changes"},
		"another is stored by meanwhile": {stored: []string{"v1alpha1", "v1"}, other: "v2", patched: []string{"a", "b", "c"}, after: []string{"v1alpha1", "v1"}, err: "the definition changed meanwhile"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scheme := runtime.NewScheme()
				if err := errors.Join(apiextensionsv1.AddToScheme(scheme), metav1.AddMetaToScheme(scheme)); err != nil {
					t.Fatal(err)
				}
				definition := things(c.stored...)
				var patched []string
				races := c.race
				api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(definition).WithStatusSubresource(definition).Build(), interceptor.Funcs{
					List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
						return list(into, options)
					},
					Patch: func(ctx context.Context, api client.WithWatch, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
						if data, err := patch.Data(o); err != nil || string(data) != "{}" || o.GetObjectKind().GroupVersionKind().String() != "muster.dev/v1, Kind=Thing" {
							t.Errorf("%s of %s is changed: %s, %v", o.GetName(), o.GetObjectKind().GroupVersionKind(), data, err)
						}
						switch o.GetName() {
						case c.fails:
							return changed
						case c.gone:
							return apierrors.NewNotFound(schema.GroupResource{Group: "muster.dev", Resource: "things"}, o.GetName())
						}
						patched = append(patched, o.GetName())
						if c.other == "" {
							return nil
						}
						is := things()
						err := api.Get(ctx, client.ObjectKeyFromObject(is), is)
						is.Spec.Versions[1].Name = c.other
						return errors.Join(err, api.Update(ctx, is))
					},
					SubResourceUpdate: func(ctx context.Context, api client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
						if races--; races >= 0 {
							return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), changed)
						}
						return api.SubResource(sub).Update(ctx, o, options...)
					},
				})
				begun := time.Now()
				err := MoveToStored(t.Context(), api, []*apiextensionsv1.CustomResourceDefinition{things()})
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("got the error %v, want %q", err, c.err)
				}
				if took := time.Since(begun); (took >= hears) != (len(c.patched) > 0) {
					t.Errorf("it took %s; an API server needs %s to hear of another stored version", took, hears)
				}
				is := things()
				if err := api.Get(t.Context(), client.ObjectKeyFromObject(is), is); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(patched, c.patched) || !slices.Equal(is.Status.StoredVersions, c.after) {
					t.Errorf("written were %v, and stored are %v", patched, is.Status.StoredVersions)
				}
			})
		})
	}
}

// list answers as a server does that has three objects, two at a time.
func list(into client.ObjectList, options []client.ListOption) error {
	page, ok := into.(*metav1.PartialObjectMetadataList)
	var asked client.ListOptions
	asked.ApplyOptions(options)
	if !ok || page.GroupVersionKind().String() != "muster.dev/v1, Kind=ThingList" || asked.Limit != pageSize {
		return fmt.Errorf("a list of %s with %+v", page.GroupVersionKind(), asked)
	}
	names := []string{"a", "b"}
	if page.Continue = "more"; asked.Continue == "more" {
		names, page.Continue = []string{"c"}, ""
	}
	for _, name := range names {
		page.Items = append(page.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: name}})
	}
	return nil
}
