// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
)

// fieldOwner is the name under which the API server remembers which fields of a status are the authenticator's.
const fieldOwner = "muster-authenticator"

// ApplyStatus applies the status of an object, which has nothing else in it but what it is.
type ApplyStatus func(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) error

// StatusOf applies in a cluster. Conditions that others write stay as they are.
func StatusOf(config *rest.Config) (ApplyStatus, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for status: %w", err)
	}
	return func(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
		_, err := client.Resource(resource).ApplyStatus(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldOwner, Force: true})
		return err
	}, nil
}

// made is what the mappings that count now were made of.
type made struct {
	entries  []*accessv1alpha1.AccessEntry
	mappings []*iamv1alpha1.IAMIdentityMapping
	problems map[identity.Source]map[string][]identity.Problem // by entry
	trusts   map[string]identity.Trust                         // by access entry
}

// learned are the principals that came by IAMIdentityMapping objects last, by the objects' names.
type learned struct {
	mu       sync.Mutex
	visitors map[string]visitor
}

// visitor is a principal that came by a mapping that named this ARN then.
type visitor struct{ arn, id string }

// Learn notes the principal that came by a mapping.
func (s *Sources) Learn(d Decision) {
	if d.Source != identity.SourceIdentityMapping || d.Identity == nil || d.Identity.UserID == "" {
		return
	}
	if s.mappings == nil || slices.Contains(s.config.Options.Scrubbed, d.Identity.Account) {
		return
	}
	o, there, err := s.mappings.GetStore().GetByKey(d.Entry)
	m, ok := o.(*iamv1alpha1.IAMIdentityMapping)
	if err != nil || !there || !ok {
		return
	}
	named, err := arn.Parse(m.Spec.ARN)
	if err != nil || !strings.EqualFold(named.WithoutPath().String(), d.Identity.CanonicalARN.WithoutPath().String()) { // it names another by now
		return
	}
	came := visitor{m.Spec.ARN, d.Identity.UserID}
	s.learned.mu.Lock()
	defer s.learned.mu.Unlock()
	if s.learned.visitors[d.Entry] != came {
		s.learned.visitors[d.Entry] = came
		s.tellStatus()
	}
}

// forgetVisitors drops what was learned of mappings that are gone.
func (s *Sources) forgetVisitors(there []*iamv1alpha1.IAMIdentityMapping) {
	s.learned.mu.Lock()
	defer s.learned.mu.Unlock()
	if len(s.learned.visitors) <= len(there) {
		return
	}
	kept := make(map[string]visitor, len(there))
	for _, m := range there {
		if v, ok := s.learned.visitors[m.Name]; ok {
			kept[m.Name] = v
		}
	}
	s.learned.visitors = kept
}

func (s *Sources) tellStatus() {
	select {
	case s.stale <- struct{}{}:
	default: // it is told already
	}
}

// How long status waits: between two rounds, and the first and the last time that one could not be written.
const (
	betweenRounds = 100 * time.Millisecond
	firstPause    = time.Second
	lastPause     = 5 * time.Minute
)

// KeepStatus writes the status of access entries and IAMIdentityMapping objects, until ctx is done. Only one of several
// replicas runs it.
func (s *Sources) KeepStatus(ctx context.Context, apply ApplyStatus) {
	k := statusKeeper{sources: s, apply: apply, applied: map[string]applied{}}
	s.tellStatus()
	failed := time.Duration(0)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select { // a failure is not retried faster because something changes
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if failed == 0 {
			select {
			case <-ctx.Done():
				return
			case <-s.stale:
			}
		}
		err := k.all(ctx)
		switch {
		case err == nil:
			failed = 0
			timer.Reset(betweenRounds)
			continue
		case ctx.Err() != nil:
			return
		case failed == 0:
			s.config.Logger.Warn("what is made of entries cannot be written into their status; it is tried again", "error", err)
		}
		failed = min(max(2*failed, firstPause), lastPause)
		timer.Reset(failed)
	}
}

// statusKeeper remembers the statuses that it wrote, since a watch reports them only a while later.
type statusKeeper struct {
	sources *Sources
	apply   ApplyStatus
	applied map[string]applied
}

type applied struct {
	uid, version string // of the object as it was then
	status       any
}

// all writes every status that is not as it should be. A failure does not keep other statuses from being written; the
// first failure is returned.
func (k *statusKeeper) all(ctx context.Context) error {
	m := k.sources.made.Load()
	if m == nil {
		return nil
	}
	if len(k.applied) > 2*(len(m.entries)+len(m.mappings)) { // most of them are gone
		clear(k.applied)
	}
	var first error
	note := func(err error) {
		if err != nil && first == nil {
			first = err
		}
	}
	for _, e := range m.entries {
		note(k.entry(ctx, e, m))
	}
	for _, e := range m.mappings {
		note(k.mapping(ctx, e, m.problems[identity.SourceIdentityMapping][e.Name]))
	}
	return first
}

func (k *statusKeeper) entry(ctx context.Context, judged *accessv1alpha1.AccessEntry, m *made) error {
	now, ok := current(k.sources.entries, judged)
	if !ok {
		return nil
	}
	want := accepted(now, k.sources.mode(), m, k.sources.config.Now())
	if have := apimeta.FindStatusCondition(now.Status.Conditions, want.Type); have != nil && equality.Semantic.DeepEqual(*have, want) {
		return nil
	}
	known := want
	known.LastTransitionTime = metav1.Time{}
	status := accessv1alpha1.AccessEntryStatus{Conditions: []metav1.Condition{want}}
	return k.write(ctx, accessv1alpha1.GroupVersion.WithResource("accessentries"), "AccessEntry", now, &status, known)
}

func (k *statusKeeper) mapping(ctx context.Context, judged *iamv1alpha1.IAMIdentityMapping, problems []identity.Problem) error {
	now, ok := current(k.sources.mappings, judged)
	if !ok {
		return nil
	}
	k.sources.learned.mu.Lock()
	came := k.sources.learned.visitors[now.Name]
	k.sources.learned.mu.Unlock()
	want := mappingStatus(now, problems, came)
	if now.Status == want {
		return nil
	}
	return k.write(ctx, iamv1alpha1.GroupVersion.WithResource("iamidentitymappings"), "IAMIdentityMapping", now, &want, want)
}

// write applies a status. known is what of it reports whether it was applied before.
func (k *statusKeeper) write(ctx context.Context, resource schema.GroupVersionResource, kind string, to metav1.Object, status, known any) error {
	key := resource.Resource + "/" + to.GetName()
	this := applied{uid: string(to.GetUID()), version: to.GetResourceVersion(), status: known}
	if k.applied[key] == this {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return fmt.Errorf("rendering a status: %w", err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	object.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
	object.SetName(to.GetName())
	object.SetUID(to.GetUID()) // another that was made under its name meanwhile is not told
	err = k.apply(ctx, resource, object)
	switch {
	case err == nil:
		k.applied[key] = this
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // it is gone, or another; its watch tells the rest
		return nil
	default:
		return fmt.Errorf("%s %s: %w", kind, to.GetName(), err)
	}
	return nil
}

// current is an object as it is now, if it still is the one that was judged.
func current[T metav1.Object](informer cache.SharedIndexInformer, judged T) (T, bool) {
	o, there, err := informer.GetStore().GetByKey(judged.GetName())
	now, ok := o.(T)
	return now, err == nil && there && ok && now.GetUID() == judged.GetUID() && now.GetGeneration() == judged.GetGeneration()
}

// mode is the mode that is asked in.
func (s *Sources) mode() identity.Mode {
	if s.config.Options.Mode == "" {
		return identity.ModeAPIAndConfigMap
	}
	return s.config.Options.Mode
}

// sameSpec reports whether an update is about nothing that a mapping is made of: an API server counts generations of
// specifications.
func sameSpec(before, after any) bool {
	a, ok := before.(metav1.Object)
	b, too := after.(metav1.Object)
	return ok && too && a.GetUID() == b.GetUID() && a.GetGeneration() != 0 && a.GetGeneration() == b.GetGeneration()
}
