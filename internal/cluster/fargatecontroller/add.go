// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/fargate"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/clusternetwork"
)

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
	// workers is how many pods are brought forward at once.
	workers = 4
)

// Roles prepares pod execution roles.
type Roles interface {
	// PrepareFargate returns the name of the instance profile that gives machines a role, by its ARN, and makes the entry
	// by which the cluster takes them for nodes. The error is a *fargate.RoleProblem if the role cannot be used; any other
	// error passes.
	PrepareFargate(ctx context.Context, arn string) (instanceProfile string, err error)
	// Tidy removes what PrepareFargate made for profiles that are gone.
	Tidy(ctx context.Context) error
}

// Config is what the controllers need.
type Config struct {
	// ClusterName is the spec.name of the cluster.
	ClusterName string
	// Region is the name of the account's region.
	Region string
	// User is the name by which API has the rights to bind pods to machines of Fargate.
	User string
	// ImageID is the machine image of new machines.
	ImageID string
	// BetaPolicies reports whether MutatingAdmissionPolicies are a beta of the cluster's minor.
	BetaPolicies bool
	// Network is the cluster's, and Usage lists the subnets of its VPC as they are now.
	Network clusternetwork.Network
	Usage   func() ([]machine.Usage, error)
	// Room is what the host offers local machines. Nil: all that are asked for.
	Room *hostroom.Room
	// Public finds the route table and the internet gateway that a subnet of a VPC has a route to; empty for a private subnet.
	// Nil: all are private.
	Public func(ctx context.Context, vpc, subnet string) (table, gateway string, err error)
	// Roles are the cluster's.
	Roles Roles
	// API reads and writes the cluster's objects, and has no cache. Pods has the pods of the fargate-scheduler. Open makes both.
	API  client.Client
	Pods cache.Cache
	// Recorder writes Events of the cluster, as the fargate-scheduler.
	Recorder events.EventRecorder
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Open makes a client of a cluster, and a cache of its pods of the fargate-scheduler, without asking the cluster for its
// kinds. Add starts the cache.
func Open(connection *rest.Config, scheme *runtime.Scheme) (client.Client, cache.Cache, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Pod", "PersistentVolumeClaim", "Event", "ConfigMap"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PodList"), meta.RESTScopeNamespace) // a cache asks for lists by this name
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolume"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	for _, kind := range []string{fargate.MutatingKind, fargate.MutatingBindingKind, fargate.ValidatingKind, fargate.ValidatingBindingKind} {
		for _, version := range []string{fargate.MutatingVersion(true), fargate.MutatingVersion(false)} {
			mapper.Add(schema.GroupVersionKind{Group: fargate.PolicyGroup, Version: version, Kind: kind}, meta.RESTScopeRoot)
		}
	}
	api, err := client.New(connection, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, nil, fmt.Errorf("making a client of the cluster for Fargate: %w", err)
	}
	pods, err := cache.New(connection, cache.Options{
		Scheme: scheme, Mapper: mapper, DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Field: fields.OneTermEqualSelector("spec.schedulerName", v1alpha1.FargateScheduler)}},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("making a cache of the cluster's pods for Fargate: %w", err)
	}
	return api, pods, nil
}

// Add adds the controllers to a manager of the management plane.
func Add(mgr manager.Manager, config Config) error {
	if config.ClusterName == "" || config.API == nil || config.Pods == nil || config.Roles == nil || config.Usage == nil || config.Recorder == nil || config.User == "" {
		return errors.New("the controllers of Fargate need a cluster, a client and the pods of it, its roles, its network, and a recorder of Events")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if err := mgr.Add(config.Pods); err != nil {
		return fmt.Errorf("adding the cache of pods of Fargate: %w", err)
	}
	w := world{Config: config, management: mgr.GetClient(), live: mgr.GetAPIReader(), told: mgr.GetEventRecorder("muster")}
	if err := addProfiles(mgr, w); err != nil {
		return fmt.Errorf("adding the controller of Fargate profiles: %w", err)
	}
	if err := addPods(mgr, w); err != nil {
		return fmt.Errorf("adding the fargate-scheduler: %w", err)
	}
	return nil
}

// world is what both controllers have.
type world struct {
	Config

	management client.Client        // reads from the cache
	live       client.Reader        // of the management plane, not from the cache
	told       events.EventRecorder // of the management plane
}

func (w world) namespace() string { return v1alpha1.ClusterSlug(w.ClusterName) }

// ours reports whether a machine is one of Fargate of the cluster.
func (w world) ours(m *v1alpha1.Machine) bool {
	return m.Spec.Fargate != nil && m.Spec.ClusterName == w.ClusterName
}

// profiles are those of the cluster.
func (w world) profiles(ctx context.Context, reader client.Reader) ([]v1alpha1.FargateProfile, error) {
	var all v1alpha1.FargateProfileList
	if err := reader.List(ctx, &all, client.InNamespace(w.namespace())); err != nil {
		return nil, fmt.Errorf("listing the Fargate profiles of the cluster: %w", err)
	}
	return all.Items, nil
}

// machines are the machines of Fargate of the cluster that a function takes.
func (w world) machines(ctx context.Context, reader client.Reader, take func(*v1alpha1.Machine) bool) ([]v1alpha1.Machine, error) {
	var all v1alpha1.MachineList
	if err := reader.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing machines of Fargate: %w", err)
	}
	var taken []v1alpha1.Machine
	for i := range all.Items {
		if m := &all.Items[i]; w.ours(m) && take(m) {
			taken = append(taken, *m)
		}
	}
	return taken, nil
}

func options(parallel int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: parallel, RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// addProfiles adds the controller of profiles. Its one request is the cluster: the admission policies are about all
// profiles together.
func addProfiles(mgr manager.Manager, w world) error {
	own := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: w.namespace(), Name: w.namespace()}}
	look := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{own} })
	ofMachines := predicate.NewPredicateFuncs(func(object client.Object) bool {
		m, ok := object.(*v1alpha1.Machine)
		return ok && w.ours(m)
	})
	return builder.ControllerManagedBy(mgr).Named("fargateprofile").
		WithOptions(options(1)).
		Watches(&v1alpha1.FargateProfile{}, look, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Cluster{}, look, builder.WithPredicates(predicate.GenerationChangedPredicate{})). // also at the start
		Watches(&v1alpha1.Machine{}, look, builder.WithPredicates(ofMachines, predicate.Funcs{              // the end of one lets a profile go
			CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
		})).
		Complete(&profiles{world: w})
}

// addPods adds the fargate-scheduler. A request is a pod, whether it is there or not: a machine leads to its pod.
func addPods(mgr manager.Manager, w world) error {
	r := &pods{world: w}
	key := func(namespace, name string) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
	}
	return builder.ControllerManagedBy(mgr).Named("fargatescheduler").
		WithOptions(options(workers)).
		WatchesRawSource(source.Kind(w.Pods, &corev1.Pod{}, handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, p *corev1.Pod) []reconcile.Request {
			return key(p.Namespace, p.Name)
		}))).
		Watches(&v1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
			if m, ok := object.(*v1alpha1.Machine); ok && w.ours(m) {
				return key(m.Spec.Fargate.PodNamespace, m.Spec.Fargate.PodName)
			}
			return nil
		})).
		Watches(&v1alpha1.FargateProfile{}, handler.EnqueueRequestsFromMapFunc(r.waiting)).
		Complete(r)
}
