// SPDX-License-Identifier: Apache-2.0

package authenticatorserver

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/internal/iam/authenticator"
)

// rightsTime is how long the cluster may take to give the authenticator its rights: both may start at once.
const rightsTime = 15 * time.Second

// The fix for missing rights: the manifests have them all.
const (
	fixRights       = "give it the rights in deploy/manifests/authenticator.yaml; it goes on by itself then"
	fixPolicyRights = "give it the rights in deploy/manifests/authenticator-access-policies.yaml; it goes on by itself then"
)

// follow reads the mappings once the mode is recorded: nobody is let in by a mode that the cluster has left. It ends
// the program if it has, and tries again while the API server cannot be asked.
func (p *authenticatorParts) follow(ctx context.Context, stop context.CancelCauseFunc) {
	if p.recordMode != nil && !p.admitted(ctx, stop) {
		return
	}
	close(p.recorded)
	p.sources.Run(ctx)
}

// admitted waits until the mode is recorded and every source may be read, and says once what is missing if that takes
// long.
func (p *authenticatorParts) admitted(ctx context.Context, stop context.CancelCauseFunc) bool {
	told, began, pause := false, time.Now(), 50*time.Millisecond
	for {
		err := p.recordMode(ctx)
		if err == nil {
			err = readable(ctx, p.from)
		}
		switch {
		case err == nil:
			if told {
				p.Logger.Info("the authentication mode is recorded, and mappings are read")
			}
			return true
		case errors.Is(err, authenticator.ErrMode):
			stop(err)
			return false
		case !told && time.Since(began) > p.patience:
			p.Logger.Warn("nobody is let in until the authentication mode is recorded and mappings can be read", withFix(err, fixRights)...)
			told = true
		}
		if !sleep(ctx, pause) {
			return false
		}
		pause = min(2*pause, time.Second)
	}
}

// readable reports whether sources may be listed. A kind that there is not has no entries.
func readable(ctx context.Context, sources []cache.ListerWatcher) error {
	for _, from := range sources {
		_, err := cache.ToListerWatcherWithContext(from).ListWithContext(ctx, metav1.ListOptions{Limit: 1})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// allowed reports whether the authenticator may do what one does for all. The parts that do it would be refused, and
// say so, again and again.
func (l leading) allowed(ctx context.Context) error {
	api, err := kubernetes.NewForConfig(l.cluster)
	if err != nil {
		return err
	}
	one := metav1.ListOptions{Limit: 1}
	if !l.alone {
		_, err = api.CoordinationV1().Leases(l.namespace).Get(ctx, accessLease, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			err = nil
		}
	}
	if err == nil && l.policies {
		_, err = api.CoreV1().Namespaces().List(ctx, one)
	}
	if err == nil && l.policies {
		_, err = api.RbacV1().ClusterRoleBindings().List(ctx, one)
	}
	if err == nil && l.policies {
		_, err = api.RbacV1().RoleBindings(metav1.NamespaceAll).List(ctx, one)
	}
	return err
}

// withFix is what a line of the log says of an error.
func withFix(err error, fix string) []any {
	if apierrors.IsForbidden(err) {
		return []any{"error", err, "fix", fix}
	}
	return []any{"error", err}
}

// sleep waits, and reports whether there is still something to wait for.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
