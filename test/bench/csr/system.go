// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	rbacv1 "k8s.io/api/rbac/v1"

	"muster.dev/muster/test/plane"
)

// userController is who muster's controller and the floor are: the same, so that the API server treats them alike.
const userController = "muster:certificate-controller"

// system is something that approves and signs.
type system struct {
	name  string
	slow  bool // it gets smaller loads and fewer rounds
	start func(context.Context, *bench, *plane.Plane) (*plane.Process, error)
}

// takes reports whether it approves such requests at all.
func (s system) takes(kind string) bool {
	return kind != "mixed" || s.name != "kcm" && s.name != "kcm-raised"
}

func systems() []system {
	return []system{
		{name: "floor-16", start: floor(16)},
		{name: "floor-64", start: floor(64)},
		{name: "kcm", slow: true, start: func(_ context.Context, _ *bench, p *plane.Plane) (*plane.Process, error) {
			return p.RunControllerManager()
		}},
		{name: "kcm-raised", start: func(_ context.Context, b *bench, p *plane.Plane) (*plane.Process, error) {
			qps := b.options.raised
			return p.RunControllerManager(fmt.Sprintf("--kube-api-qps=%d", qps), fmt.Sprintf("--kube-api-burst=%d", 2*qps))
		}},
		{name: "muster", start: muster},
	}
}

func systemOf(name string) (system, bool) {
	for _, s := range systems() {
		if s.name == name {
			return s, true
		}
	}
	return system{}, false
}

func systemNames() (names []string) {
	for _, s := range systems() {
		names = append(names, s.name)
	}
	return names
}

// floor runs this program again, as the floor.
func floor(workers int) func(context.Context, *bench, *plane.Plane) (*plane.Process, error) {
	return func(ctx context.Context, _ *bench, p *plane.Plane) (*plane.Process, error) {
		kubeconfig, err := controllerUser(ctx, p)
		if err != nil {
			return nil, err
		}
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding this program: %w", err)
		}
		return p.Run("floor", self, "floor", "-kubeconfig", kubeconfig, "-ca", p.CA(), "-ca-key", p.CAKey(), "-workers", fmt.Sprint(workers))
	}
}

// controllerUser makes the user, allows it what the policy needs, and returns its kubeconfig.
func controllerUser(ctx context.Context, p *plane.Plane) (string, error) {
	err := p.Grant(ctx, userController, rbacv1.UserKind, userController,
		rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"get", "list", "watch", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests/approval", "certificatesigningrequests/status"}, Verbs: []string{"update", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, ResourceNames: []string{signerClient, signerServing}, Verbs: []string{"approve", "sign"}},
		rbacv1.PolicyRule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch"}},
	)
	if err != nil {
		return "", err
	}
	// Upstream has no rule for serving certificates, so somebody must say that nodes may have them.
	if err := p.Grant(ctx, "selfnodeserver", rbacv1.GroupKind, plane.GroupNodes, rbacv1.PolicyRule{
		APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests/selfnodeserver"}, Verbs: []string{"create"},
	}); err != nil {
		return "", err
	}
	return p.Kubeconfig(userController)
}
