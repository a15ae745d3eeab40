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
	"muster.dev/muster/internal/node/bootstraptoken"
)

// unenforced returns why the binding of a token may mean nothing in the cluster, or "" if nothing suggests so. It must be enforced by
// muster's certificate controller; upstream's knows no such groups.
func (c *tokenCommand) unenforced(ctx context.Context, p *plane.Client, b token.Bootstrap) string {
	var bindings []rbacv1.ClusterRoleBinding
	err := p.Within(ctx, func(ctx context.Context) (err error) { bindings, err = c.bindings(ctx, c.Options); return err })
	if err != nil {
		return fmt.Sprintf("whether anything in this cluster enforces it cannot be seen: %v", err)
	}
	opens, own := bootstraptoken.ApprovedForAnyNode(bindings, b.Groups)
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
