// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/internal/platform/watchretry"
)

// configMapKey is the key of the list in a ConfigMap.
const configMapKey = "machines.yaml"

// StaticConfigMapConfig says where the list is.
type StaticConfigMapConfig struct {
	Name      string // of the source; "static" if empty
	Client    kubernetes.Interface
	Namespace string
	ConfigMap string
	// StaleAfter is how long the watch may be broken, Answers fail, or the ConfigMap be gone, before answers become
	// Unknown; 5 s if 0.
	StaleAfter time.Duration
	// Answers asks the API server for something small, as that of a WatchConfig.
	Answers func(context.Context) error
	// OnChange is called after each change. It must be quick.
	OnChange func(Change)
	Now      func() time.Time // time.Now if nil
	Logger   *slog.Logger
}

// StaticConfigMap is the source "static" in the key machines.yaml of a ConfigMap, in the format of a StaticFile. A
// version that cannot be read changes nothing; a ConfigMap that is gone for 5 seconds makes every answer Unknown. Its
// writers decide which machines are nodes: keep it where nodes cannot write.
type StaticConfigMap struct {
	static
	key      string
	informer cache.SharedIndexInformer
	missing  *health
	answers  func(context.Context) error // nil if nobody need ask
}

var _ Source = (*StaticConfigMap)(nil)

// NewStaticConfigMap makes one. It may be there later.
func NewStaticConfigMap(c StaticConfigMapConfig) (*StaticConfigMap, error) {
	switch {
	case c.Client == nil || c.Namespace == "" || c.ConfigMap == "":
		return nil, errors.New("a static inventory needs a client, and the namespace and name of a ConfigMap")
	case c.Logger == nil || c.OnChange == nil:
		return nil, errors.New("a static inventory needs a logger and somebody to tell about changes")
	}
	if c.Name == "" {
		c.Name = "static"
	}
	if c.StaleAfter <= 0 {
		c.StaleAfter = staleAfter
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &StaticConfigMap{key: c.Namespace + "/" + c.ConfigMap, answers: c.Answers}
	s.prepare(c.Name, fmt.Sprintf("the ConfigMap %s/%s", c.Namespace, c.ConfigMap), c.Now, c.StaleAfter, c.OnChange, c.Logger)
	s.missing = &health{now: c.Now, staleAfter: c.StaleAfter, logger: s.logger, recovered: func() { c.OnChange(Change{All: true}) }}
	s.table.current = s.current
	s.informer = cache.NewSharedIndexInformer(watchretry.New(watched{oneConfigMap(c), s.health}), &corev1.ConfigMap{}, 0, cache.Indexers{})
	silent := func(_ context.Context, _ *cache.Reflector, err error) {
		s.logger.Debug("inventory watch ended", "error", err)
	}
	_, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: s.see, UpdateFunc: func(_, o any) { s.see(o) }, DeleteFunc: s.gone,
	})
	if err := errors.Join(err, s.informer.SetWatchErrorHandlerWithContext(silent)); err != nil {
		return nil, fmt.Errorf("preparing the source %s: %w", c.Name, err)
	}
	return s, nil
}

// oneConfigMap lists and watches a ConfigMap alone: the controller may read no other.
func oneConfigMap(c StaticConfigMapConfig) cache.ListerWatcher {
	maps := c.Client.CoreV1().ConfigMaps(c.Namespace)
	only := fields.OneTermEqualSelector("metadata.name", c.ConfigMap).String()
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			return maps.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return maps.Watch(ctx, o)
		},
	}, c.Client)
}

// Run watches until ctx is done.
func (s *StaticConfigMap) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if cache.WaitForCacheSync(ctx.Done(), s.informer.HasSynced) {
			s.gone(nil)
		}
	}()
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		if s.answers != nil {
			s.health.listen(ctx, s.answers)
		}
	}()
	s.informer.RunWithContext(ctx)
	<-done
	<-listening
}

// Status reports a newest version that cannot be read, and of a ConfigMap that is gone.
func (s *StaticConfigMap) Status() SourceStatus {
	status := s.static.Status()
	if age, problem := s.missing.status(); status.Age == 0 && problem != "" {
		status.Age, status.Problem = age, problem
	}
	return status
}

func (s *StaticConfigMap) current() (at time.Time, why string) {
	since, stale := s.missing.since()
	_, absent := s.missing.status()
	if absent != "" && (stale || !s.HasSynced()) {
		return since, absent
	}
	if at, why = s.static.current(); why != "" {
		return at, why
	}
	if since.Before(at) {
		at = since
	}
	return at, why
}

// gone notes that it is, unless it is back already.
func (s *StaticConfigMap) gone(any) {
	if _, ok, err := s.informer.GetStore().GetByKey(s.key); !ok && err == nil {
		s.missing.report(fmt.Errorf("%s does not exist", s.what))
	}
}

func (s *StaticConfigMap) see(o any) {
	m, ok := o.(*corev1.ConfigMap)
	if !ok || m.Namespace+"/"+m.Name != s.key {
		return
	}
	text, ok := m.Data[configMapKey]
	if !ok {
		s.missing.report(fmt.Errorf("%s has no key %s", s.what, configMapKey))
		return
	}
	s.missing.report(nil)
	s.update([]byte(text))
}
