// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/internal/platform/watchretry"
)

// The errors of [Watch.Find].
var (
	// ErrNotReady means that the API server has not been listed yet.
	ErrNotReady = errors.New("the pods of the cluster are not known yet")
	// ErrNoPod means that there is no such pod, or that its service account is not the one that is asked about any
	// more.
	ErrNoPod = errors.New("there is no such pod")
)

// Subject is a pod and its service account, as a token that is bound to the pod names them.
type Subject struct {
	Namespace, Pod, PodUID            string
	ServiceAccount, ServiceAccountUID string
}

// Pod is what is known of a pod.
type Pod struct {
	// Node is the name of the node that it is assigned to; empty while it waits for one.
	Node string
	// HostNetwork is set where the pod has its node's network.
	HostNetwork bool
}

// Watch is the watch of one cluster. It is safe for use by many at once.
type Watch struct {
	pods, accounts *watchretry.Informer
	open           open // watches of both
	direct         direct
}

// NewForConfig makes a watch of the API server of a connection, see [New].
func NewForConfig(connection *rest.Config, changed func()) (*Watch, error) {
	c := rest.CopyConfig(connection)
	watchretry.Wrap(c)
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("making a client for the pods of the cluster: %w", err)
	}
	return New(client, changed), nil
}

// New makes a watch that knows nothing until Run has listed. changed, which may be nil, is called after a pod or a
// service account is gone; it must not wait.
func New(client kubernetes.Interface, changed func()) *Watch {
	w := &Watch{direct: newDirect(client), open: open{now: time.Now}}
	w.pods, w.accounts = podsOf(client, &w.open), accountsOf(client, &w.open)
	if changed != nil {
		gone := cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { changed() }}
		w.pods.Handle(gone)
		w.accounts.Handle(gone)
	}
	return w
}

func podsOf(client kubernetes.Interface, watches *open) *watchretry.Informer {
	return watchretry.NewInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				list.Items[i] = *slimPod(&list.Items[i])
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return watches.count(slimmed(client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, o)))
		},
	}, &corev1.Pod{})
}

func accountsOf(client kubernetes.Interface, watches *open) *watchretry.Informer {
	return watchretry.NewInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := client.CoreV1().ServiceAccounts(metav1.NamespaceAll).List(ctx, o)
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				list.Items[i] = *slimAccount(&list.Items[i])
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return watches.count(slimmed(client.CoreV1().ServiceAccounts(metav1.NamespaceAll).Watch(ctx, o)))
		},
	}, &corev1.ServiceAccount{})
}

// Run watches until the context ends.
func (w *Watch) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { w.pods.Run(ctx) })
	group.Go(func() { w.accounts.Run(ctx) })
	group.Wait()
}

// HasSynced reports whether everything has been listed once.
func (w *Watch) HasSynced() bool { return w.pods.HasSynced() && w.accounts.HasSynced() }

// Find returns a pod if it is there, is of that service account, and the service account is there; otherwise the error
// wraps ErrNoPod and says which of them is not so, or is ErrNotReady. An empty ServiceAccountUID stands for any. A pod
// that is being deleted is there until it is gone: it may need its identity to end in good order.
func (w *Watch) Find(s Subject) (Pod, error) {
	if !w.HasSynced() {
		return Pod{}, ErrNotReady
	}
	object, ok, err := w.pods.Store().GetByKey(s.Namespace + "/" + s.Pod)
	if err != nil {
		return Pod{}, fmt.Errorf("looking up pod %s/%s: %w", s.Namespace, s.Pod, err)
	}
	pod, _ := object.(*corev1.Pod)
	switch {
	case !ok || pod == nil || s.PodUID == "":
		return Pod{}, fmt.Errorf("%w: %s/%s is not in the cluster", ErrNoPod, s.Namespace, s.Pod)
	case string(pod.UID) != s.PodUID:
		return Pod{}, fmt.Errorf("%w: %s/%s has the UID %s, not %s: it was deleted and made again", ErrNoPod, s.Namespace, s.Pod, pod.UID, s.PodUID)
	case pod.Spec.ServiceAccountName != s.ServiceAccount:
		return Pod{}, fmt.Errorf("%w: %s/%s has the service account %s, not %s", ErrNoPod, s.Namespace, s.Pod, pod.Spec.ServiceAccountName, s.ServiceAccount)
	}
	if err := w.account(s); err != nil {
		return Pod{}, err
	}
	return Pod{Node: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork}, nil
}

func (w *Watch) account(s Subject) error {
	object, ok, err := w.accounts.Store().GetByKey(s.Namespace + "/" + s.ServiceAccount)
	if err != nil {
		return fmt.Errorf("looking up service account %s/%s: %w", s.Namespace, s.ServiceAccount, err)
	}
	account, _ := object.(*corev1.ServiceAccount)
	switch {
	case !ok || account == nil:
		return fmt.Errorf("%w: its service account %s/%s is not in the cluster", ErrNoPod, s.Namespace, s.ServiceAccount)
	case s.ServiceAccountUID != "" && string(account.UID) != s.ServiceAccountUID:
		return fmt.Errorf("%w: its service account %s/%s has the UID %s, not %s: it was deleted and made again", ErrNoPod, s.Namespace, s.ServiceAccount, account.UID, s.ServiceAccountUID)
	}
	return nil
}

// slimmed leaves of each object of a watch what is kept.
func slimmed(from watch.Interface, err error) (watch.Interface, error) {
	if err != nil {
		return nil, err
	}
	return watch.Filter(from, func(in watch.Event) (watch.Event, bool) {
		switch object := in.Object.(type) {
		case *corev1.Pod:
			in.Object = slimPod(object)
		case *corev1.ServiceAccount:
			in.Object = slimAccount(object)
		}
		return in, true
	}), nil
}

func slimPod(p *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: slimMeta(p.ObjectMeta),
		Spec:       corev1.PodSpec{NodeName: p.Spec.NodeName, ServiceAccountName: p.Spec.ServiceAccountName, HostNetwork: p.Spec.HostNetwork},
	}
}

func slimAccount(a *corev1.ServiceAccount) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: slimMeta(a.ObjectMeta)}
}

func slimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
}
