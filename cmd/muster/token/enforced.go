// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"muster.dev/muster/cmd/muster/plane"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/token"
)

const (
	// ownBinding is in every cluster of muster's own, where upstream's csrapproving is off (package baseline).
	ownBinding = "muster:node-autoapprove-bootstrap"
	// approves is the role whose members csrapproving approves, for any node (pkg/controller/certificates/approver).
	approves = "system:certificates.k8s.io:certificatesigningrequests:nodeclient"
	// everyToken is a group that all bootstrap tokens are in.
	everyToken = "system:bootstrappers"
)

// unenforced returns why the binding of a token may mean nothing in the cluster, or "" if nothing suggests so. It must be enforced by
// muster's certificate controller; upstream's knows no such groups.
func (c *tokenCommand) unenforced(ctx context.Context, p *plane.Client, b token.Bootstrap) string {
	var bindings []rbacv1.ClusterRoleBinding
	err := p.Within(ctx, func(ctx context.Context) (err error) { bindings, err = c.bindings(ctx, c.Options); return err })
	if err != nil {
		return fmt.Sprintf("whether anything in this cluster enforces it cannot be seen: %v", err)
	}
	opens, own := opening(bindings, b.Groups)
	if opens == "" || own {
		return ""
	}
	var entries []issued.Entry
	err = p.Within(ctx, func(ctx context.Context) (err error) { entries, err = c.issued(ctx, c.Options); return err })
	if slices.ContainsFunc(entries, func(e issued.Entry) bool { return e.Signer == pki.SignerKubeletClient }) {
		return ""
	}
	why := "it has recorded no node's certificate"
	if err != nil {
		why = err.Error()
	}
	return fmt.Sprintf("nothing shows that muster's certificate controller decides here (%s), and ClusterRoleBinding %s has upstream's approve this token for any node; --groups= leaves out the group that it is about", why, opens)
}

// opening is a binding that has csrapproving approve a token in these groups, "" if there is none, and reports whether the cluster is
// muster's own.
func opening(bindings []rbacv1.ClusterRoleBinding, groups []string) (opens string, own bool) {
	for _, binding := range bindings {
		if binding.RoleRef.Name != approves {
			continue
		}
		if binding.Name == ownBinding {
			own = true
		}
		for _, s := range binding.Subjects {
			if s.Kind == rbacv1.GroupKind && opens == "" && (s.Name == everyToken || slices.Contains(groups, s.Name)) {
				opens = binding.Name
			}
		}
	}
	return opens, own
}
