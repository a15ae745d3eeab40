// SPDX-License-Identifier: Apache-2.0

package readcache

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ client.Client = (*Cache)(nil)

// Get reads an object.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	k := c.objects[reflect.TypeOf(into)]
	if len(options) > 0 || !c.ready(ctx, k) {
		return c.Client.Get(ctx, key, into, options...)
	}
	name := key.Name
	if key.Namespace != "" {
		name = key.Namespace + "/" + key.Name
	}
	o, there, err := k.informer.Store().GetByKey(name)
	if err != nil {
		return fmt.Errorf("reading the copy of %s %s: %w", k.resource, name, err)
	}
	if !there {
		return apierrors.NewNotFound(k.resource, key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.(runtime.Object).DeepCopyObject()).Elem())
	return nil
}

// List reads objects, by their namespace or labels; a read that asks for anything else is the API server's. Objects are copies, unless
// client.UnsafeDisableDeepCopy is among the options: then the reader changes nothing that they refer to.
func (c *Cache) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	k := c.lists[reflect.TypeOf(into)]
	if asked.FieldSelector != nil || asked.Limit != 0 || asked.Continue != "" || asked.Raw != nil || !c.ready(ctx, k) {
		return c.Client.List(ctx, into, options...)
	}
	var chosen []client.Object
	for _, o := range k.informer.Store().List() {
		object := o.(client.Object)
		if asked.Namespace != "" && object.GetNamespace() != asked.Namespace {
			continue
		}
		if asked.LabelSelector == nil || asked.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			chosen = append(chosen, object)
		}
	}
	slices.SortFunc(chosen, func(a, b client.Object) int { // as the API server has them
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	shared := asked.UnsafeDisableDeepCopy != nil && *asked.UnsafeDisableDeepCopy
	copies := make([]runtime.Object, 0, len(chosen))
	for _, object := range chosen {
		if shared {
			copies = append(copies, object)
			continue
		}
		copies = append(copies, object.DeepCopyObject())
	}
	return meta.SetList(into, copies)
}
