// SPDX-License-Identifier: Apache-2.0

package authenticatorserver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/internal/iam/accesspolicy"
	"muster.dev/muster/internal/platform/leaderlease"
)

// accessLease is the lease by which replicas agree which one writes: the status of entries, and the RBAC of access
// policies.
const accessLease = "muster-access-policies"

// leading is what one replica does for all. All of them answer the API servers.
type leading struct {
	cluster   *rest.Config
	namespace string // of the lease
	identity  string // this process among replicas
	status    func(context.Context) error
	policies  bool
	alone     bool // there are no others to agree with
	patience  time.Duration
	times     leaseTimes
	tenure    *leaderlease.Tenure
	logger    *slog.Logger
}

// leaseTimes are those of upstream's programs, if 0.
type leaseTimes struct {
	duration time.Duration // after which a leader that says nothing has lost; 15 s
	renew    time.Duration // in which it must have renewed; 10 s
	retry    time.Duration // between attempts; 2 s
}

func (t leaseTimes) orDefault() leaseTimes {
	return leaseTimes{cmp.Or(t.duration, 15*time.Second), cmp.Or(t.renew, 10*time.Second), cmp.Or(t.retry, 2*time.Second)}
}

// leadAgain is the pause between two tries to lead.
const leadAgain = 2 * time.Second

// keep does it, as long as this replica leads, until ctx is done. A failure does not keep tokens from being answered:
// the work is begun again, and the failure told once.
func (l leading) keep(ctx context.Context) {
	told, start := "", time.Now()
	for ctx.Err() == nil {
		began := time.Now()
		err := l.run(ctx)
		if time.Since(began) > time.Minute { // it went well for a while
			told = ""
		}
		early := apierrors.IsForbidden(err) && time.Since(start) < l.patience
		if err != nil && !early && err.Error() != told && ctx.Err() == nil {
			l.logger.Warn("status of entries and access policies not kept for now", withFix(err, fixPolicyRights)...)
			told = err.Error()
		}
		sleep(ctx, leadAgain)
	}
}

// run leads once the lease is this replica's, until ctx is done or the lease is seen to be another's. Whatever the
// leader writes it writes through a fence, which lets nothing pass on a lease that has run out.
func (l leading) run(ctx context.Context) error {
	if err := l.allowed(ctx); err != nil {
		return err
	}
	ctx, lost := context.WithCancel(ctx)
	defer lost()
	scheme := runtime.NewScheme()
	for group, add := range map[string]func(*runtime.Scheme) error{
		corev1.SchemeGroupVersion.String(): corev1.AddToScheme, rbacv1.SchemeGroupVersion.String(): rbacv1.AddToScheme,
		accessv1alpha1.GroupVersion.String(): accessv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("registering kinds of %s: %w", group, err)
		}
	}
	times := l.times.orDefault()
	again := true // the controller's name is the same in each life
	options := ctrl.Options{
		Scheme: scheme, Logger: logr.FromSlogHandler(l.logger.Handler()), Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: !l.alone, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &times.duration, RenewDeadline: &times.renew, RetryPeriod: &times.retry,
	}
	if !l.alone {
		leases, err := coordinationv1client.NewForConfig(l.cluster)
		if err != nil {
			return fmt.Errorf("making a client of leases: %w", err)
		}
		// With an identity that lasts as long as the process, one that lost its own lease in an outage need not wait
		// until it ends.
		lock := &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: accessLease}, Client: leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: l.identity},
		}
		options.LeaderElectionResourceLockInterface = &leaderlease.Lock{
			Interface: lock, Duration: times.duration, Renewed: l.tenure.Renewed,
			Lost: func(ctx context.Context, holder string) {
				l.logger.WarnContext(ctx, "the lease was lost: this replica stops keeping the status of entries and access policies", "lease", lock.Describe(), "holder", holder)
				lost()
			},
		}
	}
	options.Controller.SkipNameValidation = &again
	mgr, err := ctrl.NewManager(l.tenure.Fence(l.cluster), options)
	if err != nil {
		return fmt.Errorf("making the manager of access policies: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(l.status)); err != nil {
		return fmt.Errorf("adding the status of access entries to the manager: %w", err)
	}
	if l.policies {
		if err := accesspolicy.Add(mgr, accesspolicy.Config{Log: l.logger, Now: time.Now}); err != nil {
			return err
		}
	}
	return mgr.Start(ctx)
}
