// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/platform/watchretry"
)

// mirror keeps the segments of a Register equal to the ConfigMaps: a reflector calls it, one call at a time.
type mirror struct{ r *Register }

var _ cache.ReflectorStore = mirror{}

// reflect lists and watches segments until ctx is done. Failures are logged by the outage, once each time.
func (r *Register) reflect(ctx context.Context) {
	maps := r.config.Client.CoreV1().ConfigMaps(r.config.Namespace)
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			list, err := maps.List(ctx, o)
			r.requested(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			stream, err := maps.Watch(ctx, o)
			r.requested(ctx, err)
			return stream, err
		},
	}, r.config.Client)
	cache.NewReflectorWithOptions(watchretry.New(lw), &corev1.ConfigMap{}, mirror{r}, cache.ReflectorOptions{Name: "register"}).
		RunWithContext(klog.NewContext(ctx, klog.Logger{}))
}

// requested notes how a request of the reflector went.
func (r *Register) requested(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	switch broke, mended := r.watch.report(err); {
	case broke:
		r.config.Logger.Warn("register not readable", "namespace", r.config.Namespace, "error", err)
		r.fails(err)
	case mended:
		r.config.Logger.Info("register readable again")
		r.fails(nil)
		r.notify(facts.Change{All: true})
	}
}

// fails notes why reading does not end.
func (r *Register) fails(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.trouble = ""; err != nil {
		r.trouble = err.Error()
	}
}

func (m mirror) Add(o any) error    { return m.Update(o) }
func (m mirror) Resync() error      { return nil }
func (m mirror) Update(o any) error { return each([]any{o}, m.r.apply) }
func (m mirror) Delete(o any) error { return each([]any{o}, m.r.deleted) }

// Replace is what a new list calls.
func (m mirror) Replace(objects []any, revision string) error {
	there := map[string]bool{}
	if err := each(objects, func(cm *corev1.ConfigMap) {
		there[cm.Name] = true
		m.r.apply(cm)
	}); err != nil {
		return err
	}
	m.r.mu.Lock()
	var gone []*segment
	for _, s := range m.r.segments {
		if !there[s.name] && !newer(s.revision, revision) { // else it was made after the list
			gone = append(gone, s)
		}
	}
	m.r.mu.Unlock()
	for _, s := range gone {
		m.r.remove(s)
	}
	m.r.once.Do(func() { close(m.r.listed) })
	return nil
}

func each(objects []any, do func(*corev1.ConfigMap)) error {
	for _, o := range objects {
		cm, ok := o.(*corev1.ConfigMap)
		if !ok {
			return fmt.Errorf("a %T among ConfigMaps", o)
		}
		do(cm)
	}
	return nil
}

// apply takes over what a ConfigMap says, unless something newer is known already.
func (r *Register) apply(cm *corev1.ConfigMap) {
	r.mu.RLock()
	known := r.segments[cm.Name]
	stale := known != nil && known.uid == cm.UID && !newer(cm.ResourceVersion, known.revision)
	r.mu.RUnlock()
	if stale {
		return
	}
	c, damage := read(cm)
	s := newSegment()
	s.identify(cm)
	s.damage = damage

	r.mu.Lock()
	known = r.segments[cm.Name]
	if known != nil && known.uid == cm.UID && !newer(cm.ResourceVersion, known.revision) {
		r.mu.Unlock()
		return
	}
	r.fill(s, c)
	r.put(s)
	r.settle(s)
	// The entries of a segment before it was damaged are known, and are written elsewhere. Otherwise nobody knows what
	// it held.
	same := known != nil && known.uid == s.uid
	s.lost = damage != nil && (!same || known.lost)
	carried := 0
	if known != nil && (damage != nil || !same) {
		carried = r.carry(known)
	}
	change := facts.Change{All: r.cleared() && r.synced}
	for _, e := range s.entries {
		if isClient(e.Signer) && r.synced && (known == nil || !known.uids[e.UID]) {
			change.Nodes = append(change.Nodes, e.Node)
		}
	}
	r.mu.Unlock()

	if damage != nil {
		r.config.Logger.Error("register segment damaged: it is set aside and never written; repair it, or delete it to accept the loss",
			"configmap", r.config.Namespace+"/"+s.name, "problems", len(damage), "first", damage[0], "something_lost", s.lost, "written_elsewhere", carried)
	}
	r.notify(change)
}

// deleted is told that somebody deleted a segment.
func (r *Register) deleted(cm *corev1.ConfigMap) {
	r.mu.RLock()
	s := r.segments[cm.Name]
	r.mu.RUnlock()
	if s != nil && s.uid == cm.UID {
		r.remove(s)
	}
}

// remove drops a segment that is gone. Its entries are written again: a key belongs to its node forever.
func (r *Register) remove(s *segment) {
	r.mu.Lock()
	if r.segments[s.name] != s {
		r.mu.Unlock()
		return
	}
	r.drop(s.name)
	carried := r.carry(s)
	change := facts.Change{All: r.cleared() && r.synced}
	r.mu.Unlock()
	if carried > 0 {
		r.config.Logger.Warn("register segment deleted by somebody: writing again what it held",
			"configmap", r.config.Namespace+"/"+s.name, "certificates", len(s.entries), "keys", len(s.retired))
	}
	r.notify(change)
}

// newer reports whether a resource version comes after another of the same resource.
func newer(a, b string) bool {
	n, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil && a != b || n > 0
}

// outage knows since when requests have failed.
type outage struct {
	now func() time.Time

	mu     sync.Mutex
	broken time.Time
}

// at is when the segments were last known to be as they are in memory.
func (o *outage) at() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken.IsZero() {
		return o.now()
	}
	return o.broken
}

func (o *outage) report(err error) (broke, mended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.broken
	switch {
	case err == nil:
		o.broken = time.Time{}
	case was.IsZero():
		o.broken = o.now()
	}
	return err != nil && was.IsZero(), err == nil && !was.IsZero()
}
