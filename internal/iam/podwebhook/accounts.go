// SPDX-License-Identifier: Apache-2.0

package podwebhook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/internal/iam/podpatch"
	"muster.dev/muster/internal/platform/watchretry"
)

const (
	// configMapName is the ConfigMap that names roles, and configKey the key in it.
	configMapName, configKey = "pod-identity-webhook", "config"
	// asksPerSecond and asksAtOnce bound what is asked of the API server about service accounts that are not known, as
	// in the original.
	asksPerSecond, asksAtOnce = 10, 20
	askTimeout                = time.Second
)

type accountKey struct{ namespace, name string }

// accounts is what is known of service accounts, by watches.
type accounts struct {
	client   kubernetes.Interface
	defaults podpatch.Defaults
	log      *slog.Logger
	limiter  *rate.Limiter
	services *watchretry.Informer
	config   *watchretry.Informer // nil if no ConfigMap is read

	mu         sync.Mutex
	entries    map[accountKey]podpatch.Entry
	configured map[string]podpatch.Entry
	waiting    map[accountKey][]chan struct{}
}

func newAccounts(client kubernetes.Interface, configNamespace string, d podpatch.Defaults, log *slog.Logger) *accounts {
	a := &accounts{
		client: client, defaults: d, log: log, limiter: rate.NewLimiter(asksPerSecond, asksAtOnce),
		entries: map[accountKey]podpatch.Entry{}, waiting: map[accountKey][]chan struct{}{},
	}
	services := client.CoreV1().ServiceAccounts(metav1.NamespaceAll)
	a.services = watchretry.NewInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return services.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return services.Watch(ctx, o)
		},
	}, &corev1.ServiceAccount{})
	a.services.Handle(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { a.heard(o.(*corev1.ServiceAccount)) },
		UpdateFunc: func(_, now any) { a.heard(now.(*corev1.ServiceAccount)) },
		DeleteFunc: func(o any) {
			if s, ok := o.(*corev1.ServiceAccount); ok {
				a.gone(s)
			}
		},
	})
	if configNamespace == "" {
		return a
	}
	maps := client.CoreV1().ConfigMaps(configNamespace)
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, configMapName).String()
	a.config = watchretry.NewInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			return maps.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return maps.Watch(ctx, o)
		},
	}, &corev1.ConfigMap{})
	a.config.Handle(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { a.configure(o.(*corev1.ConfigMap)) },
		UpdateFunc: func(_, now any) { a.configure(now.(*corev1.ConfigMap)) },
		DeleteFunc: func(any) { a.configure(&corev1.ConfigMap{}) },
	})
	return a
}

func (a *accounts) run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { a.services.Run(ctx) })
	if a.config != nil {
		group.Go(func() { a.config.Run(ctx) })
	}
	group.Wait()
}

func (a *accounts) synced() bool {
	return a.services.HasSynced() && (a.config == nil || a.config.HasSynced())
}

// heard takes what the watch tells.
func (a *accounts) heard(s *corev1.ServiceAccount) { a.learn(s, false) }

// learn takes a service account as it is, or, if that is only an answer, as it was when somebody asked: what the watch
// told meanwhile is newer.
func (a *accounts) learn(s *corev1.ServiceAccount, answer bool) {
	e, warnings := podpatch.ReadAccount(s.Annotations, a.defaults)
	for _, w := range warnings {
		a.log.Warn("an annotation of a service account is not as it should be", "namespace", s.Namespace, "service_account", s.Name, "problem", w)
	}
	key := accountKey{s.Namespace, s.Name}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.entries[key]; known && answer {
		return
	}
	a.entries[key] = e
	for _, told := range a.waiting[key] {
		close(told)
	}
	delete(a.waiting, key)
}

func (a *accounts) gone(s *corev1.ServiceAccount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.entries, accountKey{s.Namespace, s.Name})
}

func (a *accounts) configure(m *corev1.ConfigMap) {
	text := m.Data[configKey]
	if m.Name != configMapName || text == "" {
		text = "{}"
	}
	entries, err := podpatch.ReadConfigMap(text, a.defaults)
	if err != nil {
		a.log.Warn("the ConfigMap pod-identity-webhook is not as it should be: what it said before holds", "error", err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.configured = entries
}

// view is what is known now.
func (a *accounts) view() podpatch.Accounts {
	a.mu.Lock()
	defer a.mu.Unlock()
	return podpatch.Accounts{Configured: a.configured, Account: func(namespace, name string) (podpatch.Entry, bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		e, ok := a.entries[accountKey{namespace, name}]
		return e, ok
	}}
}

// find finds the entry of a service account, and waits for one that is not known. Known is false if it stayed so.
func (a *accounts) find(ctx context.Context, namespace, name string, grace time.Duration) (podpatch.Entry, bool) {
	if e, known := a.view().Find(namespace, name); known || grace <= 0 {
		return e, known
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	told := a.await(accountKey{namespace, name})
	go a.ask(namespace, name) //nolint:contextcheck,gosec // G118: what it learns is for the pods that follow, too
	select {
	case <-told:
	case <-ctx.Done():
		a.forget(accountKey{namespace, name}, told)
	}
	return a.view().Find(namespace, name)
}

func (a *accounts) await(key accountKey) chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	told := make(chan struct{})
	if _, known := a.entries[key]; known { // it came meanwhile
		close(told)
		return told
	}
	a.waiting[key] = append(a.waiting[key], told)
	return told
}

func (a *accounts) forget(key accountKey, told chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := a.waiting[key][:0]
	for _, w := range a.waiting[key] {
		if w != told {
			left = append(left, w)
		}
	}
	if a.waiting[key] = left; len(left) == 0 {
		delete(a.waiting, key)
	}
}

// ask asks the API server for a service account that the watch has not told of. Others do the same work for the same
// pod's siblings at most as often as the limit lets them.
func (a *accounts) ask(namespace, name string) {
	if !a.limiter.Allow() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	s, err := a.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		a.log.Debug("a service account that is not known was asked for", "namespace", namespace, "service_account", name, "error", err)
		return
	}
	a.learn(s, true)
}
