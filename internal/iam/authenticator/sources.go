// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/platform/watchretry"
)

// SourcesConfig says where mappings are. A source that is nil or empty is not read.
type SourcesConfig struct {
	Options          identity.Options
	AccessEntries    cache.ListerWatcher
	IdentityMappings cache.ListerWatcher
	AWSAuth          cache.ListerWatcher
	File             string
	// Poll is how often the file is looked at even if nothing tells that it changed; 10 s if 0.
	Poll time.Duration
	// Events, if not nil, tells of entries that are wrong, where they are objects.
	Events  record.EventRecorder
	Metrics *Metrics
	Logger  *slog.Logger
	Now     func() time.Time // time.Now if nil
}

// Sources are all mappings, followed. A change counts as soon as it is told.
type Sources struct {
	config SourcesConfig
	// The informers are nil where there is nothing to read.
	entries, mappings, awsAuth cache.SharedIndexInformer
	file                       *file
	table                      atomic.Pointer[identity.Table]
	changed                    chan struct{}
	reported                   map[string]identity.Problem // as they were told
	// The statuses of objects are computed from these fields.
	made    atomic.Pointer[made]
	learned learned
	stale   chan struct{}
}

// NewSources reads the file, and refuses one that cannot be read. The objects are read by Run.
func NewSources(c SourcesConfig) (*Sources, error) {
	if c.Metrics == nil || c.Logger == nil {
		return nil, errors.New("sources of mappings need metrics and a logger")
	}
	if c.AccessEntries == nil && c.IdentityMappings == nil && c.AWSAuth == nil && c.File == "" {
		return nil, errors.New("no source of mappings is configured, so nobody could log in: name a cluster or a file")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Sources{config: c, changed: make(chan struct{}, 1), stale: make(chan struct{}, 1), reported: map[string]identity.Problem{}}
	s.learned.visitors = map[string]visitor{}
	c.Metrics.sources(c.File != "", c.AccessEntries == nil && c.IdentityMappings == nil && c.AWSAuth == nil)
	for _, of := range []struct {
		into    *cache.SharedIndexInformer
		from    cache.ListerWatcher
		example runtime.Object
		failed  func()
	}{
		{&s.entries, c.AccessEntries, &accessv1alpha1.AccessEntry{}, func() {}},
		{&s.mappings, c.IdentityMappings, &iamv1alpha1.IAMIdentityMapping{}, func() {}},
		{&s.awsAuth, c.AWSAuth, &corev1.ConfigMap{}, c.Metrics.configMapFailures.Inc},
	} {
		if of.from == nil {
			continue
		}
		informer, err := s.informer(of.from, of.example, of.failed)
		if err != nil {
			return nil, fmt.Errorf("preparing to watch mappings: %w", err)
		}
		*of.into = informer
	}
	if c.File != "" {
		var err error
		if s.file, err = newFile(c.File, c.Poll, s.change, c.Metrics.fileFailures.Inc, c.Logger); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// informer follows objects.
func (s *Sources) informer(from cache.ListerWatcher, example runtime.Object, failed func()) (cache.SharedIndexInformer, error) {
	kind := fmt.Sprintf("%T", example)
	source := &followed{inner: cache.ToListerWatcherWithContext(from), kind: kind, failed: failed, now: s.config.Now, logger: s.config.Logger}
	requests := &optional{inner: cache.ToListerWatcherWithContext(watchretry.New(source.listWatch()))}
	informer := cache.NewSharedIndexInformer(requests, example, 0, cache.Indexers{})
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { s.change() }, DeleteFunc: func(any) { s.change() },
		UpdateFunc: func(before, after any) {
			if sameSpec(before, after) {
				s.tellStatus()
				return
			}
			s.change()
		},
	})
	return informer, errors.Join(err,
		informer.SetTransform(func(o any) (any, error) {
			if m, ok := o.(metav1.Object); ok {
				m.SetManagedFields(nil)
			}
			return o, nil
		}),
		informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
			s.config.Logger.Debug("watch of mappings ended, it is begun again", "kind", kind, "error", err) // followed tells of what lasts
		}))
}

func (s *Sources) change() {
	select {
	case s.changed <- struct{}{}:
	default: // it is told already
	}
}

// Table returns the mappings as they are now, or nil while they have not all been read: the first match decides, so
// half of them could make somebody another user.
func (s *Sources) Table() *identity.Table { return s.table.Load() }

// InstanceMatters reports whether an entry would make a node of a principal, were it proven to be an instance.
func (s *Sources) InstanceMatters(p identity.Principal) bool {
	table := s.Table()
	return table != nil && table.Map(p).Rule == identity.RuleInstance
}

// Ready says what has not been read yet.
func (s *Sources) Ready() error {
	for _, of := range []struct {
		name     string
		informer cache.SharedIndexInformer
	}{{"access entries", s.entries}, {"IAMIdentityMapping objects", s.mappings}, {"the ConfigMap kube-system/aws-auth", s.awsAuth}} {
		if of.informer != nil && !of.informer.HasSynced() {
			return fmt.Errorf("%s have not been read yet", of.name)
		}
	}
	if s.table.Load() == nil {
		return errors.New("the mappings have not been put together yet")
	}
	return nil
}

// together is how long changes are gathered after one of them counted.
const together = 20 * time.Millisecond

// Run follows all sources until ctx is done.
func (s *Sources) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	var synced []cache.InformerSynced
	for _, informer := range []cache.SharedIndexInformer{s.entries, s.mappings, s.awsAuth} {
		if informer != nil {
			group.Go(func() { informer.RunWithContext(ctx) })
			synced = append(synced, informer.HasSynced)
		}
	}
	if s.file != nil {
		group.Go(func() { s.file.run(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return
	}
	s.change()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		}
		s.build()
		pause.Reset(together)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// build puts the mappings together and makes them count.
func (s *Sources) build() {
	var entries []identity.AccessEntry
	from := &made{entries: objectsOf[*accessv1alpha1.AccessEntry](s.entries), mappings: objectsOf[*iamv1alpha1.IAMIdentityMapping](s.mappings)}
	for _, e := range from.entries {
		entries = append(entries, entryOf(e))
	}
	var mappings []identity.Mapping
	for _, m := range from.mappings {
		mappings = append(mappings, mappingOf(m))
	}
	var problems []identity.Problem
	for _, m := range objectsOf[*corev1.ConfigMap](s.awsAuth) {
		more, wrong := identity.ParseAWSAuth(m.Data)
		mappings, problems = append(mappings, more...), append(problems, wrong...)
	}
	if s.file != nil {
		more, wrong := s.file.mappings()
		mappings, problems = append(mappings, more...), append(problems, wrong...)
	}
	table, wrong := identity.NewTable(s.config.Options, entries, mappings)
	problems = append(problems, wrong...)
	s.table.Store(&table)
	s.config.Metrics.built(table.Len(), problems, float64(s.config.Now().Unix()))
	s.report(problems)
	from.problems, from.trusts = byEntry(problems), trustsOf(table)
	s.forgetVisitors(from.mappings)
	s.made.Store(from)
	s.tellStatus()
}

func byEntry(problems []identity.Problem) map[identity.Source]map[string][]identity.Problem {
	out := map[identity.Source]map[string][]identity.Problem{}
	for _, p := range problems {
		if out[p.Source] == nil {
			out[p.Source] = map[string][]identity.Problem{}
		}
		out[p.Source][p.Entry] = append(out[p.Source][p.Entry], p)
	}
	return out
}

// trustsOf are the trusts of access entries, by their names.
func trustsOf(table identity.Table) map[string]identity.Trust {
	out := map[string]identity.Trust{}
	for _, t := range table.Trusts() {
		if t.Source == identity.SourceAccessEntry {
			out[t.Entry] = t
		}
	}
	return out
}

// objectsOf are the objects of an informer, the oldest first: one that is made later cannot take a principal from
// another. An object that is being deleted is gone, however long finalizers keep it.
func objectsOf[T metav1.Object](informer cache.SharedIndexInformer) []T {
	if informer == nil {
		return nil
	}
	var all []T
	for _, o := range informer.GetStore().List() {
		if typed, ok := o.(T); ok && typed.GetDeletionTimestamp() == nil {
			all = append(all, typed)
		}
	}
	slices.SortFunc(all, func(a, b T) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all
}

func entryOf(e *accessv1alpha1.AccessEntry) identity.AccessEntry {
	out := identity.AccessEntry{
		Name: e.Name, PrincipalARN: e.Spec.PrincipalARN, PrincipalID: e.Spec.PrincipalID, Type: identity.EntryType(e.Spec.Type),
		Username: e.Spec.Username, Groups: e.Spec.KubernetesGroups,
	}
	for _, p := range e.Spec.AccessPolicies {
		out.Policies = append(out.Policies, p.PolicyARN)
	}
	return out
}

func mappingOf(m *iamv1alpha1.IAMIdentityMapping) identity.Mapping {
	return identity.Mapping{
		Source: identity.SourceIdentityMapping, Entry: m.Name, Kind: kindOf(m.Spec.ARN), ARN: m.Spec.ARN, Username: m.Spec.Username, Groups: m.Spec.Groups,
	}
}
