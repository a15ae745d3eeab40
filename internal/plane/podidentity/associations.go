// SPDX-License-Identifier: Apache-2.0

package podidentity

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/watchretry"
)

// Association is what a pod identity association gives the pods of a service account.
type Association struct {
	ID string
	// Role is an ARN, as is Target, the role that is assumed with the first one's session; Target is empty without one.
	Role, Target string
	// Policy is a session policy; empty without one.
	Policy string
	// Untagged leaves EKS's session tags out.
	Untagged bool
	// Grant is another for each other set of the above. Sessions end when it changes; the association's tags are not in
	// it.
	Grant string
}

func associationOf(p *v1alpha1.PodIdentityAssociation) Association {
	a := Association{ID: p.Name, Role: p.Spec.RoleARN, Target: p.Spec.TargetRoleARN, Policy: p.Spec.Policy, Untagged: p.Spec.DisableSessionTags}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%t\n%s", p.UID, a.Role, a.Target, a.Untagged, a.Policy))
	a.Grant = hex.EncodeToString(sum[:8])
	return a
}

// Associations are those of all clusters, by a watch of the management plane. It is safe for use by many at once.
type Associations struct {
	informer *watchretry.Informer
	changed  chan struct{}

	mu    sync.Mutex
	index map[account]Association // nil when objects have changed
}

// account is a service account; its cluster is named by its namespace in the management plane and by its name, which
// must both fit.
type account struct{ clusterNamespace, cluster, namespace, name string }

// NewAssociations makes a watch that knows nothing until Run has listed.
func NewAssociations(api client.WithWatch) *Associations {
	a := &Associations{changed: make(chan struct{}, 1), informer: watchretry.NewInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			into := &v1alpha1.PodIdentityAssociationList{}
			err := api.List(ctx, into, &client.ListOptions{Raw: &o})
			return into, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return api.Watch(ctx, &v1alpha1.PodIdentityAssociationList{}, &client.ListOptions{Raw: &o})
		},
	}, &v1alpha1.PodIdentityAssociation{})}
	a.informer.Handle(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { a.forget() }, UpdateFunc: func(any, any) { a.forget() }, DeleteFunc: func(any) { a.forget() },
	})
	return a
}

// Run watches until the context ends.
func (a *Associations) Run(ctx context.Context) { a.informer.Run(ctx) }

// HasSynced reports whether all have been listed once.
func (a *Associations) HasSynced() bool { return a.informer.HasSynced() }

func (a *Associations) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.index = nil
	select {
	case a.changed <- struct{}{}:
	default: // a notice is waiting
	}
}

// Changed gives a value after associations came, went or changed. It is for one listener.
func (a *Associations) Changed() <-chan struct{} { return a.changed }

// ServiceAccount is one of a cluster, in the form in which the pod identity webhook is told.
type ServiceAccount struct {
	Namespace string `json:"namespace"`
	Name      string `json:"serviceAccount"`
}

// ServiceAccounts are those of a cluster that have an association, sorted. The error is ErrNotReady.
func (a *Associations) ServiceAccounts(c Cluster) ([]ServiceAccount, error) {
	if !a.HasSynced() {
		return nil, ErrNotReady
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.index == nil {
		a.index = indexed(a.informer.Store().List())
	}
	var all []ServiceAccount
	for key := range a.index {
		if key.clusterNamespace == c.Namespace && key.cluster == c.Name {
			all = append(all, ServiceAccount{key.namespace, key.name})
		}
	}
	slices.SortFunc(all, func(a, b ServiceAccount) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// Of returns the association of a service account; ok is false if it has none. An association that is being deleted
// does not count. The error is ErrNotReady.
func (a *Associations) Of(c Cluster, namespace, serviceAccount string) (found Association, ok bool, err error) {
	if !a.HasSynced() {
		return Association{}, false, ErrNotReady
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.index == nil {
		a.index = indexed(a.informer.Store().List())
	}
	found, ok = a.index[account{c.Namespace, c.Name, namespace, serviceAccount}]
	return found, ok, nil
}

func indexed(objects []any) map[account]Association {
	all := make([]*v1alpha1.PodIdentityAssociation, 0, len(objects))
	for _, object := range objects {
		if p, ok := object.(*v1alpha1.PodIdentityAssociation); ok && p.DeletionTimestamp.IsZero() {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *v1alpha1.PodIdentityAssociation) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	index := make(map[account]Association, len(all))
	for _, p := range all {
		key := account{p.Namespace, p.Spec.ClusterName, p.Spec.Namespace, p.Spec.ServiceAccount}
		if _, twice := index[key]; !twice {
			index[key] = associationOf(p)
		}
	}
	return index
}
