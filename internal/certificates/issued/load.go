// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
)

// Load reads the certificates on record, oldest first, for people to look at. If segments are damaged it returns what
// can be read, and an error that names them.
func Load(ctx context.Context, client kubernetes.Interface, namespace string) ([]Entry, error) {
	var all []Entry
	var damage []error
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().ConfigMaps(namespace).List(ctx, o)
	})
	p.PageSize = 20
	err := p.EachListItem(ctx, metav1.ListOptions{LabelSelector: selector}, func(o runtime.Object) error {
		cm, ok := o.(*corev1.ConfigMap)
		if !ok {
			return fmt.Errorf("a %T among ConfigMaps", o)
		}
		c, problems := read(cm)
		all = append(all, c.entries...)
		for _, problem := range problems {
			damage = append(damage, fmt.Errorf("ConfigMap %s/%s is damaged: %s", namespace, cm.Name, problem))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the register of issued certificates in namespace %s: %w", namespace, err)
	}
	return sorted(all), errors.Join(damage...)
}
