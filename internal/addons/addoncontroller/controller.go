// SPDX-License-Identifier: Apache-2.0

package addoncontroller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/node/bootreport"
)

const (
	// movingAgain is the time between two looks at an add-on that is on its way.
	movingAgain = time.Second
	// healthyAgain is the time between two looks at one that is healthy.
	healthyAgain = 10 * time.Second
	// failedAgain is the time until another try with one that failed.
	failedAgain = time.Minute
	// soon is the time until a look with a newer cache.
	soon = 50 * time.Millisecond
	// patience is the time after which one that does not become healthy is degraded.
	patience = time.Minute
	// lost is the time without an answer of the API server after which nothing is known.
	lost = 30 * time.Second
)

// Config is what the controller needs.
type Config struct {
	// ClusterName is the spec.name of the cluster.
	ClusterName string
	// Cluster reads and writes the objects of the cluster, past any cache.
	Cluster client.Client
	// Catalogue returns the add-ons for a cluster whose API server is of a version; "" if it never said which.
	Catalogue func(version string) addon.Catalogue
	// Objects are those that an add-on has without a configuration.
	Objects func(name string) ([]*unstructured.Unstructured, error)
	// Kinds are the CustomResourceDefinitions that an add-on brings along. They stay when it goes: whatever people made
	// of these kinds would go with them. It may be nil.
	Kinds func(name string) ([]*unstructured.Unstructured, error)
	// Load gives the machines of the cluster the images of an add-on that they do not have by themselves, and Unload
	// takes them away again. They may be nil.
	Load, Unload func(ctx context.Context, name string) error
	// Absent says why an add-on cannot run in this cluster. Empty means that it can. It may be nil.
	Absent func(name string) string
	// Report is what the agent of a machine reports, if it reports anything. It may be nil.
	Report func(m *v1alpha1.Machine) (bootreport.Report, bool)
	// PodIdentity says why the EKS Pod Identity agent of a machine does not answer; nil if it does. It may be nil
	// itself.
	PodIdentity func(ctx context.Context, m *v1alpha1.Machine) error
}

// Add adds the controller to a manager of the management plane that sees the Addons of one namespace.
func Add(mgr manager.Manager, c Config) error {
	if c.ClusterName == "" || c.Cluster == nil || c.Catalogue == nil || c.Objects == nil {
		return errors.New("the controller of add-ons needs the name of its cluster, a client of it, a catalogue, and the objects of add-ons")
	}
	r := &addons{Config: c, api: mgr.GetClient(), now: time.Now, answered: map[string]time.Time{}}
	if err := builder.ControllerManagedBy(mgr).Named("addons").For(&v1alpha1.Addon{}).Complete(r); err != nil {
		return fmt.Errorf("adding the controller of add-ons: %w", err)
	}
	return nil
}

// addons reconciles Addons.
type addons struct {
	Config

	api client.Client
	now func() time.Time

	mu       sync.Mutex
	answered map[string]time.Time // when the cluster answered last about an add-on
}

// Reconcile implements [reconcile.Reconciler].
func (r *addons) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	a := &v1alpha1.Addon{}
	if err := r.api.Get(ctx, request.NamespacedName, a); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !a.DeletionTimestamp.IsZero() {
		return r.remove(ctx, a)
	}
	if controllerutil.AddFinalizer(a, v1alpha1.FinalizerAddon) {
		if err := r.api.Update(ctx, a); err != nil {
			return settle(fmt.Errorf("adding the finalizer of add-on %s: %w", a.Name, err))
		}
	}
	if moving := a.Phase(); moving != a.Status.Phase { // so that everybody sees that it is on its way
		return lookAgain(soon, r.write(ctx, a, func(s *v1alpha1.AddonStatus) {
			s.Phase, s.ObservedGeneration, s.Issues = moving, a.Generation, nil
		}))
	}
	found, err := r.look(ctx, a)
	if err != nil {
		return r.unanswered(ctx, a, err)
	}
	r.heard(a.Name)
	if err := r.write(ctx, a, func(s *v1alpha1.AddonStatus) { found.into(s, a.Generation, r.now()) }); err != nil {
		return settle(err)
	}
	switch {
	case found.failed:
		return reconcile.Result{RequeueAfter: failedAgain}, nil
	case len(found.issues) > 0:
		return reconcile.Result{RequeueAfter: movingAgain}, nil
	}
	return reconcile.Result{RequeueAfter: healthyAgain}, nil
}

// look brings an add-on into the cluster if it is not there, and looks how it is. An error means that the cluster could
// not be asked.
func (r *addons) look(ctx context.Context, a *v1alpha1.Addon) (finding, error) {
	version, err := r.version(ctx, a.Namespace)
	if err != nil {
		return finding{}, err
	}
	known, ok := r.Catalogue(version).Find(a.Spec.AddonName)
	switch {
	case !ok:
		return failed("there is no add-on %s: `aws eks describe-addon-versions` lists those that there are", a.Spec.AddonName), nil
	case a.Spec.Version != "" && a.Spec.Version != known.Version && r.settled(a):
		return r.asItIs(ctx, a, known)
	case a.Spec.Version != "" && a.Spec.Version != known.Version:
		return failed("add-on %s has the version %s in this release of Muster, not %s", known.Name, known.Version, a.Spec.Version), nil
	}
	values, err := known.Read(a.Spec.ConfigurationValues)
	if err != nil {
		return failed("the configurationValues do not follow the schema of %s %s: %v", known.Name, known.Version, err), nil
	}
	if missing := r.missing(known); missing != "" {
		return finding{version: known.Version, degraded: true, issues: insufficient(known.Name, "%s", missing)}, nil
	}
	if known.OnMachines != "" {
		issues, err := r.onMachines(ctx, known)
		return finding{version: known.Version, applied: known.Version, issues: issues}, err
	}
	base, err := r.Objects(known.Name)
	if err != nil {
		return finding{}, err
	}
	kinds, err := r.kinds(known.Name)
	if err != nil {
		return finding{}, err
	}
	objects, err := known.Objects(slices.Concat(kinds, base), values, a.Spec.ServiceAccountRoleARN)
	if err != nil {
		return failed("%v", err), nil
	}
	if r.Load != nil {
		if err := r.Load(ctx, known.Name); err != nil {
			return finding{version: known.Version, applied: a.Status.Applied, issues: insufficient(known.Name, "%v", err)}, nil
		}
	}
	return r.inCluster(ctx, a, known, objects)
}

func (r *addons) kinds(name string) ([]*unstructured.Unstructured, error) {
	if r.Kinds == nil {
		return nil, nil
	}
	return r.Kinds(name)
}

// version is the version that the API server of the cluster says. While the cluster is upgraded it is the one before, so
// that no add-on is newer than the API server.
func (r *addons) version(ctx context.Context, namespace string) (string, error) {
	cluster := &v1alpha1.Cluster{}
	err := r.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: namespace}, cluster)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the cluster of namespace %s: %w", namespace, err)
	}
	return cluster.Status.Version, nil
}

// settled reports whether an add-on is in the cluster as its spec says.
func (r *addons) settled(a *v1alpha1.Addon) bool {
	return a.Status.Version == a.Spec.Version && (a.Status.Phase == v1alpha1.AddonActive || a.Status.Phase == v1alpha1.AddonDegraded)
}

// asItIs is look for an add-on of an earlier release, whose objects stay until its version is changed.
func (r *addons) asItIs(ctx context.Context, a *v1alpha1.Addon, known addon.Addon) (finding, error) {
	found := finding{version: a.Spec.Version, applied: a.Status.Applied}
	if missing := r.missing(known); missing != "" {
		found.degraded, found.issues = true, insufficient(known.Name, "%s", missing)
		return found, nil
	}
	if known.OnMachines != "" {
		var err error
		found.issues, err = r.onMachines(ctx, known)
		return found, err
	}
	base, err := r.Objects(known.Name)
	if err == nil {
		found.issues, err = r.health(ctx, base)
	}
	return found, err
}

// inCluster is look for an add-on of objects.
func (r *addons) inCluster(ctx context.Context, a *v1alpha1.Addon, known addon.Addon, objects []*unstructured.Unstructured) (finding, error) {
	hash, err := hashOf(objects, a.Spec.ResolveConflicts)
	if err != nil {
		return finding{}, err
	}
	found := finding{version: known.Version, applied: hash}
	gone, err := r.gone(ctx, objects)
	if err != nil {
		return found, err
	}
	if a.Status.Applied != hash || gone {
		if err := r.markManaged(ctx, known.Name); err != nil {
			return found, err
		}
		issue, err := r.apply(ctx, a, objects)
		if err != nil || issue != nil {
			return finding{failed: true, issues: listOf(issue)}, err
		}
		if err := r.removeOthers(ctx, known, objects); err != nil {
			return found, err
		}
		found.appliedNow = true
	}
	found.issues, err = r.health(ctx, objects)
	return found, err
}

// missing says why an add-on does not run here, whatever is configured.
func (r *addons) missing(known addon.Addon) string {
	if r.Absent == nil {
		return ""
	}
	return r.Absent(known.Name)
}

// unanswered keeps what is known of an add-on for a while when the cluster does not answer.
func (r *addons) unanswered(ctx context.Context, a *v1alpha1.Addon, err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	r.mu.Lock()
	last, ok := r.answered[a.Name]
	if !ok {
		last = r.now()
		r.answered[a.Name] = last
	}
	r.mu.Unlock()
	if r.now().Sub(last) < lost {
		return reconcile.Result{}, err
	}
	found := finding{unknown: true, issues: []v1alpha1.AddonIssue{{Code: issueUnreachable, Message: err.Error()}}}
	return reconcile.Result{}, errors.Join(err, r.write(ctx, a, func(s *v1alpha1.AddonStatus) { found.into(s, a.Generation, r.now()) }))
}

func (r *addons) heard(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered[name] = r.now()
}

// write changes the status of an add-on, if anything changes.
func (r *addons) write(ctx context.Context, a *v1alpha1.Addon, change func(*v1alpha1.AddonStatus)) error {
	before := a.DeepCopy()
	change(&a.Status)
	if equality.Semantic.DeepEqual(before.Status, a.Status) {
		return nil
	}
	err := r.api.Status().Patch(ctx, a, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of add-on %s: %w", a.Name, err)
	}
	return nil
}

// settle makes of a conflict another look: the cache was behind.
func settle(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{}, err
}

// lookAgain has another look after a time, or sooner if the cache was behind.
func lookAgain(after time.Duration, err error) (reconcile.Result, error) {
	result, err := settle(err)
	if err == nil && result.RequeueAfter == 0 {
		result.RequeueAfter = after
	}
	return result, err
}

func moment(t time.Time) *metav1.Time { return new(metav1.NewTime(t)) }
