// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/internal/accesspolicy"
)

// accessPoliciesLease is by which replicas agree who keeps RBAC.
const accessPoliciesLease = "muster-access-policies"

// keepAccessPolicies keeps RBAC as access entries' policies say, until ctx is done. What goes wrong keeps nobody from being told who
// somebody is: it is begun again.
func keepAccessPolicies(ctx context.Context, cluster *rest.Config, namespace string, logger *slog.Logger) {
	for ctx.Err() == nil {
		if err := runAccessPolicies(ctx, cluster, namespace, logger); err != nil && ctx.Err() == nil {
			logger.Warn("access policies not kept for now", "error", err)
		}
		timer := time.NewTimer(2 * time.Second)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

func runAccessPolicies(ctx context.Context, cluster *rest.Config, namespace string, logger *slog.Logger) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, accessv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("registering kinds: %w", err)
		}
	}
	again := true // the controller's name is the same in each life
	options := ctrl.Options{
		Scheme: scheme, Logger: logr.FromSlogHandler(logger.Handler()), Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: accessPoliciesLease, LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
	}
	options.Controller.SkipNameValidation = &again
	manager, err := ctrl.NewManager(cluster, options)
	if err != nil {
		return fmt.Errorf("preparing to keep access policies: %w", err)
	}
	if err := accesspolicy.Add(manager, accesspolicy.Config{Log: logger, Now: time.Now}); err != nil {
		return err
	}
	return manager.Start(ctx)
}
